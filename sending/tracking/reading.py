"""From an anymail tracking event to a ``ProviderEvent``: a pure reading, no database.

Whatever a provider (or whoever knows the secret) puts into an event, a row comes out that the
database takes: texts cleaned and bounded, a credible time, an id of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ..answers import clean_text
from ..models import ProviderEvent
from .bounce_kinds import HARD_BOUNCE, REJECTED, is_dead, kind_of_bounce, value_at

#: A kind of ours: one event of a request could not be read. It is kept, and nothing follows.
UNREADABLE = "unreadable"
#: The provider kept a replay back, since it had taken the message before; nothing follows.
DEDUPLICATED = "deduplicated"

_EARLIEST_YEAR = 2000
_AHEAD = timedelta(days=1)
_ID_LIMIT = 300
#: Anything like an address, in a raw event: nobody would find it there when a person is erased.
_ADDRESS = re.compile(r"[^\s<>\"'`,;:()\[\]{}=&\\]+@[^\s<>\"'`,;:()\[\]{}=&\\]+")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """``row`` is unsaved. ``odd_time``: the event's own time was missing or not credible."""

    row: ProviderEvent
    odd_time: bool


def read(event: Any, esp_name: str, *, received: datetime) -> Reading:
    """What an ``anymail.signals.AnymailTrackingEvent`` says, as far as we use it.

    ``received`` (aware) stands in for a time of event that is missing, naive, before the year
    2000 or more than a day ahead. Never raises for what an event may hold.
    """
    esp = clean_text(_esp(esp_name), limit=40)
    kind = _kind(esp, event)
    metadata = getattr(event, "metadata", None)
    metadata = metadata if isinstance(metadata, dict) else {}
    at, odd_time = _credible(getattr(event, "timestamp", None), received)
    message_id = _identifier(getattr(event, "message_id", None), _ID_LIMIT)
    recipient = _identifier(getattr(event, "recipient", None), 320).strip()
    raw = getattr(event, "esp_event", None)
    told = _identifier(getattr(event, "event_id", None), 10 * _ID_LIMIT)
    said = getattr(event, "mta_response", None) or getattr(event, "description", None)
    return Reading(
        ProviderEvent(
            event_id=_event_id(
                esp,
                # One notification of Amazon SES may speak of several recipients.
                [told, kind, recipient.lower()]
                if told
                else [kind, message_id, recipient.lower(), "" if odd_time else at.isoformat()],
                None if told else raw,
                names=recipient,
            ),
            esp=esp,
            kind=kind,
            job_id=_identifier(metadata.get("job_id"), _ID_LIMIT),
            installation=_identifier(metadata.get("installation"), 40),
            message_id=message_id,
            recipient=recipient,
            at=at,
            text=clean_text(said if isinstance(said, str | bytes) else ""),
            received=received,
        ),
        odd_time,
    )


def unreadable(raw: object, esp_name: str, *, received: datetime) -> ProviderEvent:
    """A row for an event that anymail could not make sense of, with the beginning of it, without
    addresses."""
    esp = clean_text(_esp(esp_name), limit=40)
    return ProviderEvent(
        event_id=_event_id(esp, [UNREADABLE], raw),
        esp=esp,
        kind=UNREADABLE,
        at=received,
        text=clean_text(_ADDRESS.sub("(address)", _canonical(raw)[:2000])),
        received=received,
    )


def _esp(name: object) -> str:
    # Its old name, under which anymail still serves the old addresses.
    return "Brevo" if name == "SendinBlue" else str(name)


def _kind(esp: str, event: Any) -> str:
    told = clean_text(getattr(event, "event_type", None), limit=40) or "unknown"
    raw = getattr(event, "esp_event", None)
    if esp == "Mailjet" and value_at(raw, "error") == "duplicate in campaign":
        return DEDUPLICATED
    if told == "bounced":
        return kind_of_bounce(esp, event)
    if esp == "Postal" and told == "failed" and is_dead(event):  # its HardFail
        return HARD_BOUNCE
    if esp == "Amazon SES" and told == "complained":
        # It did not send, because of a complaint (or a bounce) of before.
        subtype = value_at(raw, "complaint", "complaintSubType")
        if subtype == "OnAccountSuppressionList":
            return REJECTED
    return told


def _credible(told: object, received: datetime) -> tuple[datetime, bool]:
    if not isinstance(told, datetime) or told.utcoffset() is None:
        return received, True
    if not _EARLIEST_YEAR <= told.year <= received.year + 1:
        return received, True
    told = told.astimezone(UTC)
    if told.year < _EARLIEST_YEAR or told > received + _AHEAD:
        return received, True
    return told, False


def _identifier(told: object, limit: int) -> str:
    """A text that is compared as it stands; only what no column can hold is taken out."""
    if isinstance(told, bool) or not isinstance(told, str | int):
        return ""
    if isinstance(told, int) and told.bit_length() > 256:
        return ""
    return _UNSTORABLE.sub("", str(told))[:limit]


def _event_id(esp: str, parts: list[str], raw: object, *, names: str = "") -> str:
    """An id with an address in it (``names``) is hashed: it outlives a person's erasure."""
    plain = ":".join([esp, *parts])
    if raw is None and not names and len(plain) <= _ID_LIMIT:
        return plain
    text = "\0".join([plain, "" if raw is None else _canonical(raw)])
    return f"{esp}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _canonical(raw: object) -> str:
    """The raw event as one text, the same however its fields are ordered."""
    lists = getattr(raw, "lists", None)  # a form's fields, each of which may occur twice
    try:
        return json.dumps(
            dict(lists()) if callable(lists) else raw, sort_keys=True, default=str, skipkeys=True
        )
    except (TypeError, ValueError, RecursionError):
        return repr(raw)[:100_000]
