"""Putting people into a segment and taking them out, as staff do it: thousands in one statement.

Who left a segment or unsubscribed is not brought back by anything here, whoever asks: only by
their own new confirmed sign-up (``consent.rejoin``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from .. import hooks
from ..addresses import AddressError, canonical, lower, normalize
from ..models import Membership, MembershipChange, Segment, Subscriber

_SEGMENT = Segment._meta.db_table
_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table
_CHANGE = MembershipChange._meta.db_table

#: People in one transaction: what waits for them waits for a fraction of a second.
CHUNK = 5_000
#: Seconds that one request works; whoever asked for more asks again, which goes on.
BUDGET = 20.0
#: Addresses that can be pasted at once; a file of more is imported.
PASTED = 10_000

#: What stands between commas and semicolons; those in quotes are part of it.
_BETWEEN = re.compile(r'(?:"[^"]*(?:"|\Z)|[^",;])+')

# Until the transaction ends the segment is not deleted.
_HOLD = f"SELECT 1 FROM {_SEGMENT} WHERE id = %(segment)s FOR KEY SHARE"

# The people stay until the transaction ends, so that one deleted meanwhile is no error; taken in
# ascending order, as an import does. A membership that ended is there, and stays as it is. By their
# ids (``+ 0``): right after a large import the planner would take all of the account's people.
_ADD = f"""
WITH people AS MATERIALIZED (
    SELECT p.id, p.status FROM {_SUBSCRIBER} p
    WHERE p.id = ANY(%(people)s) AND p.account_id + 0 = %(account)s
    ORDER BY p.id FOR KEY SHARE
), joined AS (
    INSERT INTO {_MEMBERSHIP} (segment_id, subscriber_id, joined_at)
    SELECT %(segment)s, id, statement_timestamp() FROM people
    WHERE status <> 'unsubscribed' ORDER BY id
    ON CONFLICT (segment_id, subscriber_id) DO NOTHING
    RETURNING subscriber_id
)
SELECT
    count(j.subscriber_id),
    count(*) FILTER (WHERE p.status = 'unsubscribed'),
    count(*) FILTER (WHERE p.status <> 'unsubscribed' AND m.left_at IS NOT NULL),
    count(*)
FROM people p
LEFT JOIN joined j ON j.subscriber_id = p.id
LEFT JOIN {_MEMBERSHIP} m ON m.segment_id = %(segment)s AND m.subscriber_id = p.id"""

# The locks make one compare-and-set of it, in the order in which ``consent.leave`` takes them:
# whoever left or came back while this waited is seen as they are then.
_REMOVE = f"""
WITH leaving AS MATERIALIZED (
    SELECT m.id FROM {_MEMBERSHIP} m
    WHERE m.segment_id = %(segment)s AND m.subscriber_id = ANY(%(people)s)
        AND m.left_at IS NULL
    ORDER BY m.id FOR UPDATE
), gone AS (
    UPDATE {_MEMBERSHIP} m SET left_at = statement_timestamp()
    FROM leaving WHERE m.id = leaving.id AND m.left_at IS NULL
    RETURNING m.subscriber_id
), noted AS (
    INSERT INTO {_CHANGE} (segment_id, subscriber_id, kind, at, source)
    SELECT %(segment)s, subscriber_id, 'left', statement_timestamp(), %(source)s FROM gone
)
SELECT subscriber_id FROM gone"""

_MEMBERS = f"""
SELECT subscriber_id FROM {_MEMBERSHIP}
WHERE segment_id = %(segment)s AND left_at IS NULL AND subscriber_id > %(after)s
ORDER BY subscriber_id LIMIT %(limit)s"""


class SegmentGone(LookupError):
    """The segment was deleted meanwhile; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What an addition or a removal did, in people; each person counts once.

    ``ended``: they had left the segment before. ``absent``: they were not in it. ``strangers``:
    of another account, or deleted.
    """

    added: int = 0
    already: int = 0
    ended: int = 0
    unsubscribed: int = 0
    removed: int = 0
    absent: int = 0
    strangers: int = 0

    def __add__(self, other: Done) -> Done:
        return Done(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def as_detail(self) -> dict[str, int]:
        """The numbers that are not 0, for the audit trail."""
        return {f.name: n for f in fields(self) if (n := getattr(self, f.name))}


@dataclass(frozen=True, slots=True)
class Pasted:
    """What a pasted list holds. ``people`` are ids in ascending order, ``unknown`` addresses that
    the account has no subscriber for, ``bad`` lines that are no address: number, text, why."""

    people: list[int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    bad: list[tuple[int, str, str]] = field(default_factory=list)
    repeated: int = 0


def add(segment: Segment, people: Iterable[int]) -> Done:
    """Put these subscribers (ids, some thousands) into the segment; one transaction.

    Raises ``SegmentGone``. Safe to repeat, and in a race with their leaving: a membership that
    began and ended stays ended.
    """
    chosen = sorted(set(people))
    with transaction.atomic(), connection.cursor() as cursor:
        _hold(cursor, segment)
        cursor.execute(
            _ADD, {"segment": segment.pk, "account": segment.account_id, "people": chosen}
        )
        added, unsubscribed, ended, known = cursor.fetchone()
    return Done(
        added=added,
        already=known - added - unsubscribed - ended,
        ended=ended,
        unsubscribed=unsubscribed,
        strangers=len(chosen) - known,
    )


def remove(segment: Segment, people: Iterable[int], *, source: str) -> Done:
    """Take these subscribers (ids, some thousands) out of the segment; one transaction.

    As ``consent.leave``: open rows of running campaigns that reach them through it alone are
    withdrawn once it has committed. ``source`` says in words who did it. Raises ``SegmentGone``.
    """
    chosen = sorted(set(people))
    with transaction.atomic(), connection.cursor() as cursor:
        _hold(cursor, segment)
        cursor.execute(_REMOVE, {"segment": segment.pk, "people": chosen, "source": source[:200]})
        left = sorted(person for (person,) in cursor.fetchall())
        if left:
            transaction.on_commit(lambda: hooks.withdraw_leavers(left), robust=True)
    return Done(removed=len(left), absent=len(chosen) - len(left))


def hold_to_delete(segment: Segment) -> bool:
    """Until the transaction ends nobody joins the segment and nothing begins to name it; whoever
    is at it is waited for. ``False``: it is gone."""
    locked = Segment.objects.select_for_update(of=("self",)).filter(pk=segment.pk)
    return locked.first() is not None


def delete(segment: Segment) -> None:
    """Delete the segment and who was in it. Whoever is being added is waited for, and whoever
    comes later finds it gone; without the lock the deletion would fail on them."""
    with transaction.atomic():
        if hold_to_delete(segment):
            segment.delete()


def members(segment: Segment, size: int | None = None) -> Iterator[list[int]]:
    """The ids of the present members in ascending order, in lists of at most ``size``
    (``CHUNK``). Each list is asked for by itself: whoever comes or goes meanwhile may be in it
    or not."""
    after = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                _MEMBERS, {"segment": segment.pk, "after": after, "limit": size or CHUNK}
            )
            found = [person for (person,) in cursor.fetchall()]
        if not found:
            return
        yield found
        after = found[-1]


def ids_of(people: QuerySet[Subscriber], size: int | None = None) -> Iterator[list[int]]:
    """The ids of a queryset in ascending order, in lists of at most ``size`` (``CHUNK``), along
    the id: no cursor stays open while each list is dealt with."""
    ordered = people.order_by("pk").values_list("pk", flat=True)
    after = 0
    while found := list(ordered.filter(pk__gt=after)[: size or CHUNK]):
        yield found
        after = found[-1]


def in_chunks(people: list[int], size: int | None = None) -> Iterator[list[int]]:
    step = size or CHUNK
    for start in range(0, len(people), step):
        yield people[start : start + step]


def work(
    chunks: Iterable[list[int]],
    act: Callable[[list[int]], Done],
    *,
    budget: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Done, bool]:
    """``act`` on one chunk after another, for at most ``budget`` seconds (``BUDGET``); what was
    done, and whether that is all. At least one chunk is dealt with. To ask again goes on: those
    who are dealt with are found to be so."""
    done, end = Done(), clock() + (BUDGET if budget is None else budget)
    for chunk in chunks:
        if done != Done() and clock() >= end:
            return done, False
        done += act(chunk)
    return done, True


def read_pasted(segment: Segment, text: str) -> Pasted:
    """The account's subscribers whom a pasted list names, one address a line, or several
    with commas or semicolons between them. Changes nothing.

    Raises ``ValueError`` for more than ``PASTED`` addresses.
    """
    given = [
        (number, part.strip())
        for number, line in enumerate(_lines(text), 1)
        for part in _BETWEEN.findall(line)
        if part.strip()
    ]
    if len(given) > PASTED:
        raise ValueError(
            f"At most {PASTED:,} addresses at once, not {len(given):,}. Import a file of more."
        )
    wanted: dict[str, tuple[int, str, str]] = {}
    repeated = 0
    for number, line in given:
        key, why = _understood(line)
        if key in wanted:
            repeated += 1
        else:
            wanted[key] = (number, line, why)
    found = _found(segment.account_id, list(wanted))
    rest = [entry for key, entry in wanted.items() if key not in found]
    return Pasted(
        people=sorted(found.values()),
        unknown=[line for _, line, why in rest if not why],
        bad=[entry for entry in rest if entry[2]],
        repeated=repeated,
    )


def _understood(line: str) -> tuple[str, str]:
    """What the line is looked up by, and why it is no address, if so. What the host's own code
    stored past every entrance is found all the same."""
    try:
        return lower(normalize(line)), ""
    except AddressError as error:
        return lower(canonical(line)).replace("\0", "\ufffd"), str(error)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _found(account_id: int, addresses: list[str]) -> dict[str, int]:
    people = Subscriber.objects.filter(account=account_id, email_lower__in=addresses)
    return dict(people.order_by().values_list("email_lower", "pk"))


def _hold(cursor: Any, segment: Segment) -> None:
    cursor.execute(_HOLD, {"segment": segment.pk})
    if cursor.fetchone() is None:
        raise SegmentGone(f"The segment {segment} is there no more.")
