"""Backends of providers that need a hand to deduplicate: anymail's own, slightly changed.

Neither anymail nor requests is imported here: a backend in use brings its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID, uuid5

from .table import KeyTravels, provider_of

#: Of the message ids that anymail would draw at random for Unisender Go.
_MESSAGE_IDS = UUID("2b0d36d5-41a7-5d0e-8d0c-a5a1f3d3ab4e")


class KeyInHTTPHeader:
    """Resend: ``esp_extra["idempotency_key"]`` becomes the HTTP header ``Idempotency-Key``.

    anymail would put it into the JSON body, where Resend does not look.
    """

    def build_message_payload(self, message: Any, defaults: Any) -> Any:
        payload = super().build_message_payload(message, defaults)  # type: ignore[misc]
        key = payload.data.pop("idempotency_key", None)
        if key:
            payload.headers["Idempotency-Key"] = str(key)
        return payload


class MessageIdFromKey:
    """Unisender Go: the message id that anymail adds to each recipient's metadata, for tracking,
    derives from the key instead of chance, so that a replay has the same body."""

    def build_message_payload(self, message: Any, defaults: Any) -> Any:
        payload = super().build_message_payload(message, defaults)  # type: ignore[misc]
        key = payload.data.get("idempotence_key")
        if key:
            for recipient in payload.data["recipients"]:
                address = recipient["email"]
                payload.message_ids[address] = str(uuid5(_MESSAGE_IDS, f"{key}:{address}"))
        return payload


_CHANGES: dict[KeyTravels, type] = {
    KeyTravels.HTTP_HEADER: KeyInHTTPHeader,
    KeyTravels.BODY: MessageIdFromKey,
}


@cache
def keyed(kind: type) -> type:
    """``kind``, or a subclass of it that carries the deduplication key where it has to go.

    Raises ``TypeError`` for what is no class.
    """
    if not isinstance(kind, type):
        raise TypeError(f"{kind!r} is not a class")
    change = _CHANGES.get(provider_of(kind).key_travels)
    if change is None or issubclass(kind, change):
        return kind
    return type(kind.__name__, (change, kind), {"__module__": kind.__module__})
