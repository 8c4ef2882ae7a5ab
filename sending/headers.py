"""Header values as they stand on the wire: ASCII, folded where folding is allowed. Pure.

Python's own folding differs between versions and policies, encodes long URLs as RFC 2047 words
and has mangled commas in encoded names; a replay must be the same bytes after an upgrade. So
values are encoded here and written as they are.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from functools import lru_cache

import idna

from .smtp_envelope import ADDRESS_LIMIT, PLAIN

LINE = 76
MAX_LINE = 998
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ATEXT = r"-A-Za-z0-9!#$%&'*+/=?^_`{|}~"
_PHRASE = re.compile(rf"[{_ATEXT}]+(?: [{_ATEXT}]+)*\Z")
_ASCII_LOCAL = re.compile(rf"(?:[{_ATEXT}]+(?:\.[{_ATEXT}]+)*|\"(?:[ !#-\[\]-~]|\\[ -~])*\")\Z")
_UTF8_LOCAL = re.compile(rf"[{_ATEXT}\u00a1-\U0010ffff]+(?:\.[{_ATEXT}\u00a1-\U0010ffff]+)*\Z")
_DOMAIN = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\Z"
)
_LITERAL = re.compile(r"\[(?:[0-9.]{7,15}|IPv6:[0-9A-Fa-f:.]{2,45})\]\Z")
_URI = re.compile(r"https?://[!#-;=?-~]+\Z")


class MessageError(ValueError):
    """This message can't be built: a name, subject or address no header may hold."""


def refuse_unsafe(name: str, value: str) -> str:
    """``value``, or ``MessageError`` when it has line ends or control characters."""
    if _UNSAFE.search(value):
        raise MessageError(f"{name} contains a line end or a control character: {value[:100]!r}")
    return value


@lru_cache(maxsize=512)
def unstructured(name: str, value: str) -> str:
    """A free text such as a subject. Raises ``MessageError`` for control characters."""
    refuse_unsafe(name, value)
    if value.isascii() and "=?" not in value and value == value.strip(" "):
        folded = _fold(value, len(name) + 2)
        if folded is not None:
            return folded
    return encoded_words(value, len(name) + 2)


@lru_cache(maxsize=256)
def mailbox(name: str, display_name: str, address: str) -> str:
    """``Name <address>`` or the bare address. Raises ``MessageError``."""
    bare = wire_address(address)
    if not display_name.strip():
        return bare
    words = phrase(name, display_name.strip())
    last = len(words.rpartition("\n")[2]) + (len(name) + 2 if "\n" not in words else 0)
    gap = " " if last + len(bare) + 3 <= LINE else "\n "
    return f"{words}{gap}<{bare}>"


def phrase(name: str, text: str) -> str:
    """A display name: atoms, a quoted string or encoded words (RFC 5322, RFC 2047)."""
    refuse_unsafe(name, text)
    if not text.isascii() or "=?" in text or len(text) > MAX_LINE - 200:
        return encoded_words(text, len(name) + 2)
    if not _PHRASE.match(text):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        text = f'"{quoted}"'
    return _fold(text, len(name) + 2) or text


def encoded_words(text: str, taken: int) -> str:
    """RFC 2047 words of at most 75 characters, one a line, split between characters.

    ``taken``: how much of the first line is used already.
    """
    data = text.encode()
    words: list[str] = []
    start, room = 0, _room(taken)
    while not words or start < len(data):
        end = start + room
        while end < len(data) and data[end] & 0xC0 == 0x80:  # inside a character
            end -= 1
        words.append(_word(data[start:end]))
        start, room = end, _WHOLE_LINE
    return "\n ".join(words)


def wire_address(address: str) -> str:
    """A bare address as it stands in a header: the domain in ASCII (RFC 5891), the local part
    untouched, Unicode if it is (that needs SMTPUTF8). Raises ``MessageError``."""
    if len(address) <= ADDRESS_LIMIT and PLAIN.match(address):
        return address
    local, at, domain = address.rpartition("@")
    if not at or len(address.encode(errors="replace")) > 320:
        raise MessageError(f"{address[:100]!r} is not an e-mail address")
    good_local = _ASCII_LOCAL if local.isascii() else _UTF8_LOCAL
    if not good_local.match(local) or not local.isprintable():
        raise MessageError(f"{address!r} is not an e-mail address")
    return f"{local}@{ascii_domain(domain)}"


@lru_cache(maxsize=2048)
def ascii_domain(domain: str) -> str:
    """A domain in the ASCII form of IDNA 2008, as the DNS has it. Raises ``MessageError``."""
    if not domain.isascii():
        try:
            domain = idna.encode(domain, uts46=True).decode("ascii")
        except idna.IDNAError as error:
            raise MessageError(f"{domain[:100]!r} is not a domain: {error}") from error
    if not (_DOMAIN.match(domain) or _LITERAL.match(domain)):
        raise MessageError(f"{domain[:100]!r} is not a domain")
    return domain


def uri(name: str, url: str) -> str:
    """``<url>`` on one line however long: a folded or encoded one is not recognised by the
    providers' one-click (RFC 8058). Raises ``MessageError``."""
    if not _URI.match(url) or len(name) + len(url) + 4 > MAX_LINE:
        raise MessageError(f"{name}: {url[:100]!r} is no URL that a header can hold")
    return f"<{url}>"


@lru_cache(maxsize=256)
def list_id(name: str, label: str, domain: str) -> str:
    """``Name <label.domain>`` (RFC 2919), at most 255 octets; the name gives way."""
    identifier = f"<{label}.{domain}>"
    if len(identifier) > 255:
        raise MessageError(f"List-Id {identifier[:100]}... is longer than 255 octets")
    text = _UNSAFE.sub(" ", name).strip()
    while text:
        # On one line: some mail programs read the identifier off the first line only.
        value = f"{phrase('List-Id', text)} {identifier}".replace("\n", "")
        if len(value) <= 255:
            return value
        text = text[: len(text) * 3 // 4].rstrip()
    return identifier


def _room(taken: int) -> int:
    """Bytes of UTF-8 that fit into one word of what is left of the line."""
    return max(4, (min(75, LINE - taken) - len("=?utf-8?b??=")) // 4 * 3)


_WHOLE_LINE = _room(1)


def _word(chunk: bytes) -> str:
    return f"=?utf-8?b?{b2a_base64(chunk, newline=False).decode()}?="


def _fold(value: str, taken: int) -> str | None:
    """ASCII folded before single spaces; ``None`` when a word alone is too long for a line."""
    lines: list[str] = []
    line, room = "", LINE - taken
    for word in re.findall(r"\s*\S+", value):
        if len(word) > MAX_LINE - taken - 1:
            return None
        if line and len(line) + len(word) > room:
            lines.append(line)
            line, room = word, LINE
        else:
            line += word
    return "\n".join([*lines, line])
