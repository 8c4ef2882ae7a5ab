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


@dataclass(frozen=True)
class _Key:
    mac: bytes
    stream: bytes
    fingerprint: int


@lru_cache(maxsize=32)
def _derived(secret: str) -> _Key:
    def derive(purpose: bytes) -> bytes:
        return hmac.digest(force_bytes(secret), b"sendonce-link-" + purpose, "sha256")

    return _Key(derive(b"mac"), derive(b"stream"), derive(b"fingerprint")[0] & 0x0F)


def make_token(kind: Kind, subscriber_id: int, campaign_id: int | None) -> str:
    """32 characters of ``A-Z a-z 0-9 _ -``, always the same for the same arguments and key.

    Raises ``ValueError`` for ids that are negative or need more than 42 bits.
    """
    ids = (subscriber_id, campaign_id or 0)
    if any(not 0 <= number < 1 << _ID_BITS for number in ids):
        raise ValueError(f"A link token can't hold the ids {ids}.")
    key = _derived(conf.signing_keys()[0])
    body = (kind << 2 * _ID_BITS | ids[0] << _ID_BITS | ids[1]).to_bytes(_BODY_BYTES, "big")
    header = bytes([VERSION << 4 | key.fingerprint])
    tag = _tag(key, header, body)
    return urlsafe_b64encode(header + _crypt(key, header, tag, body) + tag).decode()


def read_token(token: str) -> Token | None:
    """The token's content, or ``None`` for anything that no key of ours made."""
    if not _SHAPE.fullmatch(token):
        return None
    raw = urlsafe_b64decode(token)
    header, sealed, tag = raw[:1], raw[1 : 1 + _BODY_BYTES], raw[1 + _BODY_BYTES :]
    if header[0] >> 4 != VERSION:
        return None
    for key in map(_derived, conf.signing_keys()):
        if key.fingerprint != header[0] & 0x0F:
            continue
        body = _crypt(key, header, tag, sealed)
        if hmac.compare_digest(_tag(key, header, body), tag):
            return _unpack(body)
    return None


class Links:
    """Links as ``unsubscribe_url`` and ``preferences_url`` make them, for many people: the
    route is looked up once, which is most of the work. Make a new one when settings change."""

    def __init__(self) -> None:
        self._before, self._after = link("-TOKEN-").split("-TOKEN-")

    def unsubscribe(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(make_token(Kind.UNSUBSCRIBE, subscriber_id, campaign_id))

    def preferences(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(make_token(Kind.PREFERENCES, subscriber_id, campaign_id))

    def web(self, subscriber_id: int, campaign_id: int | None) -> str:
        return self._link(make_token(Kind.WEB, subscriber_id, campaign_id))

    def _link(self, token: str) -> str:
        return f"{self._before}{token}{self._after}"


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


def _tag(key: _Key, header: bytes, body: bytes) -> bytes:
    return hmac.digest(key.mac, header + body, "sha256")[:_TAG_BYTES]


def _crypt(key: _Key, header: bytes, tag: bytes, body: bytes) -> bytes:
    stream = hmac.digest(key.stream, header + tag, "sha256")
    return bytes(a ^ b for a, b in zip(body, stream, strict=False))


def _unpack(body: bytes) -> Token | None:
    number = int.from_bytes(body, "big")
    mask = (1 << _ID_BITS) - 1
    try:
        kind = Kind(number >> 2 * _ID_BITS)
    except ValueError:
        return None
    return Token(kind, number >> _ID_BITS & mask, number & mask or None)
