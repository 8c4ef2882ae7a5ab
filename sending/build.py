"""The build: a campaign's people become rows, in chunks along the subscriber id.

Any worker goes on where another stopped: the cursor moves by compare-and-set in the chunk's
own transaction, and an insert that is repeated adds nothing. Draining starts with the first
chunk. The end is "no subscriber beyond the cursor", never "nothing inserted".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction

from campaigns.gate import try_shared
from campaigns.models import Campaign

from . import sql

log = logging.getLogger("sendonce.sender")

#: A sparse segment of a large account: chunks of ids grow up to this many times the setting.
LARGEST_FACTOR = 64
#: Seconds that a chunk should take at most, and how small that makes it at the most.
LONGEST_CHUNK = 0.1
LEAST_SIZE = 500


@dataclass(frozen=True, slots=True)
class Progress:
    """What one step of the build did. ``inserted``: rows made; ``done``: nothing is left."""

    inserted: int
    done: bool


def next_size(size: int, inserted: int, smallest: int, seconds: float = 0.0) -> int:
    """How many subscriber ids the next chunk spans, after one of ``size`` that made ``inserted``
    rows in ``seconds``: more while few of them are in the audience, the setting (``smallest``)
    again when many are, and less than that where it takes long: whoever builds does other things
    between two chunks, such as beginning a campaign that has just been approved."""
    if seconds > LONGEST_CHUNK:
        return max(min(size, LEAST_SIZE), size // 2)
    if inserted * 4 < size:
        wider = min(size * 4, smallest * LARGEST_FACTOR)
        return wider if seconds * 4 < LONGEST_CHUNK else size
    if inserted * 2 > size and size > smallest:
        return max(smallest, size // 4)
    if size < smallest and seconds * 2 < LONGEST_CHUNK:
        return min(smallest, size * 2)
    return size


#: SQLSTATEs: somebody whom the chunk found was deleted before it could commit; or has a row
#: already, such as two people who swapped addresses while the build ran.
_GONE = "23503"
_THERE = "23505"


def build_chunk(campaign_id: int, *, size: int) -> Progress | None:
    """Build the next chunk of at most ``size`` subscriber ids, or the closing sweep.

    None when there is nothing for this worker to do: the campaign is not ``sending``, is built
    already, somebody decides about it, or another worker moved the cursor first. One
    transaction behind the gate (shared); one in which somebody was erased or deleted meanwhile, or
    has a row already, is rolled back and repeated.
    """
    insert = sql.CHUNK_INSERT
    while True:  # but for one, each round means that one more person was deleted
        try:
            return _build_chunk(campaign_id, size, insert)
        except IntegrityError as error:
            state = getattr(error.__cause__, "sqlstate", None)
            if state == _THERE and insert is sql.CHUNK_INSERT:
                insert = sql.CHUNK_INSERT_BESIDE
                continue
            if state != _GONE:
                raise
            log.info(
                "somebody was deleted while a chunk was built, building it again",
                extra={"event": "build_again", "campaign": campaign_id},
            )


def _build_chunk(campaign_id: int, size: int, insert: str) -> Progress | None:
    with transaction.atomic(), connection.cursor() as cursor:
        # Not durable by itself: rows and cursor are lost together or not at all, and no hand-over
        # of a row can be on disk (or on a standby) without the chunk that made it, being later.
        cursor.execute(sql.RELAXED)
        if try_shared(cursor, [campaign_id]):
            return None
        found = (
            Campaign.objects.filter(
                pk=campaign_id, status=Campaign.Status.SENDING, built_at__isnull=True
            )
            .values_list("account_id", "audience_cursor")
            .first()
        )
        if found is None:
            return None
        account_id, after = found
        cursor.execute(sql.SEGMENTS, {"campaign": campaign_id})
        include, exclude = cursor.fetchone()
        place: dict[str, Any] = {
            "campaign": campaign_id,
            "account": account_id,
            "after": after,
            "include": include,
            "exclude": exclude,
        }
        cursor.execute(sql.CHUNK_END, {**place, "size": size})
        (upto,) = cursor.fetchone()
        if upto is None:
            return _sweep(cursor, place)
        place["upto"] = upto
        cursor.execute(sql.CHUNK_CURSOR, place)
        if cursor.rowcount == 0:
            return None
        cursor.execute(insert, place)
        (inserted, _people) = cursor.fetchone()
        return Progress(inserted=inserted, done=False)


def _sweep(cursor: Any, place: dict[str, Any]) -> Progress | None:
    # The cursor stays where it is, but its row lock keeps another builder from committing a
    # chunk of newcomers after this sweep's snapshot, which would then miss them in its count.
    cursor.execute(sql.CHUNK_CURSOR, {**place, "upto": place["after"]})
    if cursor.rowcount == 0:
        return None
    cursor.execute(sql.FOLLOW_ALL_MOVED, place)
    cursor.execute(sql.SWEEP, place)
    row = cursor.fetchone()
    if row is None:
        return None
    inserted, audience = row
    log.info(
        "campaign built",
        extra={"event": "built", "campaign": place["campaign"], "audience": audience},
    )
    return Progress(inserted=inserted, done=True)


def unbuilt() -> list[int]:
    """Ids of campaigns that are sending and not completely built."""
    return list(
        Campaign.objects.filter(status=Campaign.Status.SENDING, built_at__isnull=True)
        .order_by("id")
        .values_list("id", flat=True)
    )


def build(campaign_id: int, *, size: int) -> int:
    """Build all of a campaign; returns the rows made by this call. Others may help or finish."""
    made, span = 0, size
    while (step := build_chunk(campaign_id, size=span)) is not None:
        made += step.inserted
        span = next_size(span, step.inserted, size)
        if step.done:
            break
    return made
