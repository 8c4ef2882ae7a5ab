"""Link tokens: who a link is for, unforgeable and unreadable without the key, for ever valid.

A token is 32 URL-safe characters, 24 bytes: one byte of header, 11 bytes of ciphertext, 12
bytes (96 bits) of MAC. The MAC also seeds the keystream (synthetic IV, the construction of
RFC 5297): equal links give equal tokens, so a retry of a message is the same message, and
nobody reads ids or counts out of a link. There is nothing to store and nothing expires; a link
in a mail of last year works as long as its key is among ``conf.signing_keys()``.

Header byte: version in the upper four bits; four bits of the key's fingerprint in the lower
ones, so that with several keys most are skipped without a MAC.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from django.urls import reverse
from django.utils.encoding import force_bytes

from .conf import conf
from .macs import Mac

VERSION = 1
_TAG_BYTES = 12
_ID_BITS = 42
_BODY_BYTES = 11
_SHAPE = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)


class Kind(IntEnum):
    """What a link does. Numbers are in mail already sent: never change one, never reuse one."""

    UNSUBSCRIBE = 1
    PREFERENCES = 2
    WEB = 3
    #: ``subscriber_id`` is the id of a ``Signup``.
    CONFIRM = 4


@dataclass(frozen=True)
class Token:
    """A token that was made with one of our keys. ``campaign_id`` is ``None`` outside campaigns."""

    kind: Kind
    subscriber_id: int
    campaign_id: int | None


@dataclass(frozen=True, slots=True)
class _Key:
    mac: Mac
    stream: Mac
    header: bytes


@lru_cache(maxsize=32)
def _derived(secret: str) -> _Key:
    def derive(purpose: bytes) -> bytes:
        return hmac.digest(force_bytes(secret), b"sendonce-link-" + purpose, "sha256")

    header = bytes([VERSION << 4 | derive(b"fingerprint")[0] & 0x0F])
    return _Key(Mac(derive(b"mac")), Mac(derive(b"stream")), header)


def make_token(kind: Kind, subscriber_id: int, campaign_id: int | None) -> str:
    """32 characters of ``A-Z a-z 0-9 _ -``, always the same for the same arguments and key.

    Raises ``ValueError`` for ids that are negative or need more than 42 bits.
    """
    return _made(_derived(conf.signing_keys()[0]), kind, subscriber_id, campaign_id or 0)


def _made(key: _Key, kind: int, subscriber_id: int, campaign_id: int) -> str:
    if subscriber_id >> _ID_BITS or campaign_id >> _ID_BITS:  # -1 for those below 0
        raise ValueError(f"A link token can't hold the ids {(subscriber_id, campaign_id)}.")
    number = kind << 2 * _ID_BITS | subscriber_id << _ID_BITS | campaign_id
    tag = key.mac.digest(key.header + number.to_bytes(_BODY_BYTES, "big"))[:_TAG_BYTES]
    sealed = _crypt(key, tag, number).to_bytes(_BODY_BYTES, "big")
    return urlsafe_b64encode(key.header + sealed + tag).decode()


def read_token(token: str) -> Token | None:
    """The token's content, or ``None`` for anything that no key of ours made."""
    if not _SHAPE.fullmatch(token):
        return None
    raw = urlsafe_b64decode(token)
    header, sealed, tag = raw[:1], raw[1 : 1 + _BODY_BYTES], raw[1 + _BODY_BYTES :]
    for key in map(_derived, conf.signing_keys()):
        if key.header != header:  # another version, or another key
            continue
        number = _crypt(key, tag, int.from_bytes(sealed, "big"))
        body = number.to_bytes(_BODY_BYTES, "big")
        if hmac.compare_digest(key.mac.digest(header + body)[:_TAG_BYTES], tag):
            return _unpack(number)
    return None


class Links:
    """Links as ``unsubscribe_url`` and ``preferences_url`` make them, for many people: the
    route and the key are looked up once, which is most of the work. Make a new one when settings
    change. Each raises ``ValueError`` as ``make_token`` does."""

    def __init__(self) -> None:
        self._before, self._after = link("-TOKEN-").split("-TOKEN-")
        self._key = _derived(conf.signing_keys()[0])

    def unsubscribe(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(Kind.UNSUBSCRIBE, subscriber_id, campaign_id)

    def preferences(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(Kind.PREFERENCES, subscriber_id, campaign_id)

    def web(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(Kind.WEB, subscriber_id, campaign_id)

    def _link(self, kind: int, subscriber_id: int, campaign_id: int | None) -> str:
        token = _made(self._key, kind, subscriber_id, campaign_id or 0)
        return f"{self._before}{token}{self._after}"


#: Stands where a token stands, in previews and test messages: it is nobody's.
TEST = "test"


def nobodys_link() -> str:
    """What previews and test messages have in place of a person's links: its page says so."""
    return link(TEST)


def link(token: str) -> str:
    """The absolute URL of a token's page, at most 76 characters for ordinary base URLs."""
    return conf.BASE_URL + reverse("sendonce:link", args=[token])


def unsubscribe_url(subscriber_id: int, campaign_id: int | None) -> str:
    """The link of ``List-Unsubscribe`` and of ``{{ unsubscribe_url }}``."""
    return link(make_token(Kind.UNSUBSCRIBE, subscriber_id, campaign_id))


def preferences_url(subscriber_id: int, campaign_id: int | None) -> str:
    """The link of ``{{ preferences_url }}``."""
    return link(make_token(Kind.PREFERENCES, subscriber_id, campaign_id))


def web_url(subscriber_id: int, campaign_id: int | None) -> str:
    """The link of ``{{ web_url }}``."""
    return link(make_token(Kind.WEB, subscriber_id, campaign_id))


def _crypt(key: _Key, tag: bytes, number: int) -> int:
    stream = key.stream.digest(key.header + tag)[:_BODY_BYTES]
    return number ^ int.from_bytes(stream, "big")


def _unpack(number: int) -> Token | None:
    mask = (1 << _ID_BITS) - 1
    try:
        kind = Kind(number >> 2 * _ID_BITS)
    except ValueError:
        return None
    return Token(kind, number >> _ID_BITS & mask, number & mask or None)
