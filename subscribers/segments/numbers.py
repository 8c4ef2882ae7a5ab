"""What there is to know of a segment: how many, who for example, and how it came to that."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from ..models import Membership, MembershipChange, Segment, Subscriber
from .big_counts import PAUSED, SUPPRESSED, merging, one_snapshot, present

_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table
_CHANGE = MembershipChange._meta.db_table

#: People that a sample names, and members up to which it is drawn from all of them.
SAMPLE = 10
_ALL = 200

_PRESENT = f"""
SELECT segment_id, count(*) FROM {_MEMBERSHIP}
WHERE segment_id = ANY(%(segments)s) AND left_at IS NULL GROUP BY segment_id"""

_BY_STATUS = f"""
SELECT p.status, count(*), count(*) FILTER (WHERE {PAUSED})
FROM {_SUBSCRIBER} p JOIN {_MEMBERSHIP} m
    ON m.segment_id = %(segment)s AND m.subscriber_id = p.id AND m.left_at IS NULL
WHERE p.account_id = %(account)s GROUP BY p.status"""

_SUPPRESSED = f"""
SELECT count(*), count(*) FILTER (WHERE {PAUSED}) FROM {_SUBSCRIBER} p
WHERE p.account_id = %(account)s AND p.status = 'confirmed' AND {SUPPRESSED}
    AND {present("%(segment)s")}"""

_FIRST = f"""
SELECT subscriber_id FROM {_MEMBERSHIP}
WHERE segment_id = %(segment)s AND left_at IS NULL ORDER BY subscriber_id LIMIT %(limit)s"""

_LAST = f"""
SELECT max(subscriber_id) FROM {_MEMBERSHIP} WHERE segment_id = %(segment)s AND left_at IS NULL"""

_PROBE = f"""
SELECT DISTINCT found.subscriber_id FROM unnest(%(places)s::bigint[]) AS place
CROSS JOIN LATERAL (
    SELECT m.subscriber_id FROM {_MEMBERSHIP} m
    WHERE m.segment_id = %(segment)s AND m.left_at IS NULL AND m.subscriber_id >= place
    ORDER BY m.subscriber_id LIMIT 1) AS found"""

_MOVES = f"""
SELECT period::date, sum(joined)::bigint, sum(came_back)::bigint, sum(gone)::bigint FROM (
    SELECT date_trunc(%(unit)s, joined_at AT TIME ZONE %(zone)s) AS period,
        1 AS joined, 0 AS came_back, 0 AS gone
    FROM {_MEMBERSHIP} WHERE segment_id = %(segment)s AND joined_at >= %(since)s
    UNION ALL
    SELECT date_trunc(%(unit)s, at AT TIME ZONE %(zone)s), 0,
        CASE WHEN kind = 'joined' THEN 1 ELSE 0 END, CASE WHEN kind = 'left' THEN 1 ELSE 0 END
    FROM {_CHANGE} WHERE segment_id = %(segment)s AND at >= %(since)s) AS moves
GROUP BY period"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The present members, each counted in one place: those a campaign would reach now, and why
    it would not reach the others. Suppressed and paused are confirmed people; who is both is
    suppressed."""

    reachable: int = 0
    suppressed: int = 0
    paused: int = 0
    pending: int = 0
    unsubscribed: int = 0

    @property
    def confirmed(self) -> int:
        return self.reachable + self.suppressed + self.paused

    @property
    def present(self) -> int:
        return self.confirmed + self.pending + self.unsubscribed


@dataclass(frozen=True, slots=True)
class Move:
    """What happened in one day or one week. ``joined``: for the first time."""

    since: date
    joined: int = 0
    came_back: int = 0
    left: int = 0


#: What a history shows: its unit, in days, and how many of them.
PERIODS = {"day": (1, 30), "week": (7, 26)}


def present_in(segment_ids: Iterable[int]) -> dict[int, int]:
    """``{segment id: present members}``, in one statement; a segment without any is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, {"segments": list(segment_ids)})
        return dict(cursor.fetchall())


def numbers(segment: Segment) -> Numbers:
    """Count the segment's present members now, exactly, in one snapshot."""
    parameters = {"segment": segment.pk, "account": segment.account_id}
    with one_snapshot() as cursor:
        with merging(cursor):
            cursor.execute(_BY_STATUS, parameters)
            found = {status: (people, paused) for status, people, paused in cursor.fetchall()}
        cursor.execute(_SUPPRESSED, parameters)
        suppressed, both = cursor.fetchone()
    confirmed, paused = found.get(Subscriber.Status.CONFIRMED, (0, 0))
    return Numbers(
        reachable=confirmed - suppressed - (paused - both),
        suppressed=suppressed,
        paused=paused - both,
        pending=found.get(Subscriber.Status.PENDING, (0, 0))[0],
        unsubscribed=found.get(Subscriber.Status.UNSUBSCRIBED, (0, 0))[0],
    )


def sample(segment: Segment, size: int = SAMPLE, *, dice: random.Random | None = None) -> list[Any]:
    """Some present members by chance, by id; all of them when there are not more.

    Of a large segment those that lie behind a gap in the ids are likelier: they are found by
    probing at random ids, so that a million members are not read.
    """
    dice = dice or random.SystemRandom()
    where: dict[str, Any] = {"segment": segment.pk}
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, {**where, "limit": _ALL})
        first = [person for (person,) in cursor.fetchall()]
        if len(first) < _ALL:
            chosen = set(dice.sample(first, min(size, len(first))))
        else:
            cursor.execute(_LAST, where)
            last = cursor.fetchone()[0] or first[0]
            places = [dice.randint(first[0], max(first[0], last)) for _ in range(2 * size)]
            cursor.execute(_PROBE, {**where, "places": places})
            found = sorted(person for (person,) in cursor.fetchall())
            chosen = set(dice.sample(found, min(size, len(found))))
            # All probes met the same few: the ids have a great gap.
            chosen.update(first[: size - len(chosen)] if len(chosen) < size else ())
    people = Subscriber.objects.filter(pk__in=chosen)
    return list(people.only("email", "status", "created", "account_id").order_by("pk"))


def history(segment: Segment, unit: str, zone: ZoneInfo, now: datetime) -> list[Move]:
    """Joins and leaves of the last days or weeks (Monday is the first day), oldest first, with
    those in which nothing happened. ``unit`` is a key of ``PERIODS``."""
    starts = list(_starts(unit, now.astimezone(zone).date()))
    since = datetime.combine(starts[0], datetime.min.time(), zone)
    with connection.cursor() as cursor:
        cursor.execute(
            _MOVES, {"segment": segment.pk, "unit": unit, "zone": str(zone), "since": since}
        )
        found = {row[0]: Move(*row) for row in cursor.fetchall()}
    return [found.get(start, Move(start)) for start in starts]


def latest_changes(segment: Segment, limit: int = 10) -> list[MembershipChange]:
    """Who left or came back last, newest first."""
    changes = MembershipChange.objects.filter(segment=segment).order_by("-at", "-id")
    return list(changes.select_related("subscriber")[:limit])


def _starts(unit: str, today: date) -> Iterator[date]:
    days, count = PERIODS[unit]
    newest = today - timedelta(days=today.weekday()) if unit == "week" else today
    for back in reversed(range(count)):
        yield newest - timedelta(days=days * back)
