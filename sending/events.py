"""What happened to a send, appended in the transaction in which it happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from . import sql


@dataclass(frozen=True, slots=True)
class Note:
    """One event to append; ``kind`` is the status reached. ``send_id`` None: the row was pruned.
    See ``models.DeliveryEvent``."""

    send_id: int | None
    account_id: int
    kind: str
    stage: str = ""
    code: int | None = None
    enhanced: str = ""
    text: str = ""
    reason: str = ""
    known: bool = True
    attempt: int | None = None
    by_name: str = ""
    #: What a provider told: its id of the event, stored once, and when it happened.
    event_id: str | None = None
    at: datetime | None = None


def record(cursor: Any, notes: Sequence[Note]) -> None:
    """Insert ``notes`` in the cursor's transaction."""
    if not notes:
        return
    cursor.execute(
        sql.EVENT_INSERT,
        {
            "ids": [n.send_id for n in notes],
            "accounts": [n.account_id for n in notes],
            "kinds": [n.kind for n in notes],
            "stages": [n.stage for n in notes],
            "codes": [n.code for n in notes],
            "enhanced": [n.enhanced for n in notes],
            "texts": [n.text[:500] for n in notes],
            "reasons": [n.reason for n in notes],
            "knowns": [n.known for n in notes],
            "attempts": [n.attempt for n in notes],
            "by_names": [n.by_name for n in notes],
            "event_ids": [n.event_id for n in notes],
            "ats": [n.at for n in notes],
        },
    )
