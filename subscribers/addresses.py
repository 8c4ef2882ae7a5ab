"""E-mail addresses: the one written form they are stored in, and how the database compares them.

Every entrance (import, sign-up, admin, suppression) stores ``normalize(raw)``; then the same
person is the same ``email_lower`` wherever the address came from.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import lru_cache

from email_validator import EmailNotValidError, validate_email

from .conf import conf
from .macs import Mac

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

#: Characters without ink that come along when an address is pasted from a spreadsheet, a web
#: page or a chat: soft hyphen, bidi marks and isolates, zero width space, word joiner and its
#: kin, byte-order mark, Mongolian vowel separator, interlinear annotation, Hangul fillers, tags.
_INVISIBLE = {
    code: None
    for start, end in (
        (0x00AD, 0x00AD),
        (0x061C, 0x061C),
        (0x115F, 0x1160),
        (0x180E, 0x180E),
        (0x200B, 0x200B),
        (0x200E, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0x3164, 0x3164),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF9, 0xFFFB),
        (0xE0000, 0xE007F),
    )
    for code in range(start, end + 1)
}
#: Zero width (non-)joiners: noise in a local part, but letters of some IDN labels (RFC 5892
#: appendix A), where dropping one would name another domain.
_JOINERS = {0x200C: None, 0x200D: None}

#: Full-width forms, as input methods for Chinese and Japanese write them: the same characters
#: (RFC 8265 3.3.2, width mapping).
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
#: What word processors make of plain signs, and selectors that only change how a character
#: looks: undone where nothing but ASCII is left, for elsewhere they may be meant.
_TYPOGRAPHY: dict[int, int | None] = {
    0x2010: 0x2D,
    0x2011: 0x2D,
    0x2018: 0x27,
    0x2019: 0x27,
    0x034F: None,
    **dict.fromkeys(range(0xFE00, 0xFE10)),
    **dict.fromkeys(range(0xE0100, 0xE01F0)),
}
#: Quotes around a whole address, and what separated it from the next one in a list.
_AROUND = (("<", ">"), ("'", "'"), ('"', '"'), ("\u2018", "\u2019"), ("\u201c", "\u201d"))
_BEHIND = ",; \t"

_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#: What nearly every address looks like; decided without the 28 microseconds of the library.
_PLAIN = re.compile(
    rf"({_ATEXT}+(?:\.{_ATEXT}+)*)@((?:{_LABEL}\.)+(?:[A-Za-z0-9-]{{0,62}}[A-Za-z]))\Z"
)
#: Names that mail can't be delivered to (RFC 6761, 6762, 7686); ``test`` and the example
#: domains stay usable for trials.
_RESERVED = ("arpa", "invalid", "local", "localhost", "onion")

_MAX_LENGTH = 254  # RFC 5321 4.5.3.1.3, less the angle brackets
_MAX_LOCAL = 64  # RFC 5321 4.5.3.1.1


class AddressError(ValueError):
    """Not an address that mail can be sent to; the message says why, in one plain sentence."""


def lower(email: str) -> str:
    """The address as ``email_lower`` holds it: ASCII letters lowered, all else untouched,
    just as ``lower(email COLLATE "C")`` does."""
    return email.translate(_ASCII_LOWER)


def normalize(raw: str) -> str:
    """The address in the form in which it is stored, at most 254 octets.

    Spaces around it and around the @, invisible characters, a ``mailto:`` before it, angle
    brackets or quotes around it and dots, commas and semicolons after it go; full-width
    characters and typographic apostrophes become plain ones. The domain becomes lower case and
    ASCII (A-labels, IDNA 2008): so a domain typed in either script is one domain, and no relay
    needs SMTPUTF8 for it. The local part keeps its case (RFC 5321 2.4) and becomes NFC (RFC 6532
    3.1); needless quotes around it go.

    Raises ``AddressError``: not an address, a name beside the address, an IP address or a
    reserved name as domain (``.local``, ``.invalid``; ``.test`` and ``example.org`` are fine).
    """
    plain = _PLAIN.match(raw) if len(raw) <= _MAX_LENGTH else None
    if plain is None:
        text = _clean(raw)
        if not text:
            raise AddressError("The address is empty.")
        if len(text) > _MAX_LENGTH + _MAX_LOCAL:
            raise AddressError(f"The address is too long ({len(text)} characters).")
        plain = _PLAIN.match(text)
        if plain is None:
            return _validated(text)
    local, domain = plain.groups()
    domain = domain.lower()
    if (
        len(local) <= _MAX_LOCAL
        and len(local) + len(domain) < _MAX_LENGTH
        and "--" not in domain
        and not domain.endswith(_RESERVED)
    ):
        return f"{local}@{domain}"
    return _validated(plain[0])


def canonical(raw: str) -> str:
    """``normalize(raw)``, or the cleaned text where that is no valid address.

    For looking up and for suppressing: what is not an address today may be stored from before.
    """
    try:
        return normalize(raw)
    except AddressError:
        return _clean(raw)


def erased_hashes(email: str) -> list[str]:
    """Keyed hashes of an address, one per signing key, newest first (hex, 64 characters).

    An erased person is known by the hash alone, so every entrance asks with all keys.
    """
    return erased_hashes_of([email])[0]


def erased_hashes_of(emails: Iterable[str]) -> list[list[str]]:
    """``erased_hashes`` of each, for many at once: the keys are read once."""
    macs = [_mac_of(key) for key in conf.signing_keys()]
    return [
        [mac.hexdigest(address) for mac in macs]
        for address in (lower(email).encode() for email in emails)
    ]


@lru_cache(maxsize=32)
def _mac_of(key: str) -> Mac:
    return Mac(b"sendonce-erased:" + key.encode())


def _clean(raw: str) -> str:
    text = raw.strip()
    if not text.isascii():
        text = text.translate(_INVISIBLE).translate(_FULL_WIDTH).strip()
        plain = text.strip("\u201c\u201d\u2018\u2019").translate(_TYPOGRAPHY)
        text = plain if plain.isascii() else text
    text = text.rstrip(_BEHIND)
    if text[:7].lower() == "mailto:":
        text = text[7:].lstrip()
    for before, after in _AROUND:
        if text.startswith(before) and text.endswith(after):
            text = text[1:-1].strip()
    local, at, domain = text.rpartition("@")
    if not at:
        return text
    local, domain = local.rstrip(), domain.strip().rstrip(". \u3002\uff0e")
    if not text.isascii():
        local = local.translate(_JOINERS).strip()
        bare = domain.translate(_JOINERS).strip()
        domain = bare if bare.isascii() else domain
    return f"{local}@{domain}"


def _validated(text: str) -> str:
    try:
        found = validate_email(
            text,
            allow_quoted_local=True,
            strict=True,
            check_deliverability=False,
            test_environment=True,
        )
    except EmailNotValidError as error:
        if text.endswith(">") and "<" in text:
            raise AddressError(
                "There is a name beside the address; only the address belongs here."
            ) from error
        raise AddressError(str(error)) from error
    if found.ascii_domain == "test":
        raise AddressError("The part after the @-sign is not valid. It should have a period.")
    return f"{found.local_part}@{found.ascii_domain}"
