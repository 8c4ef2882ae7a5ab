"""How many rows of each status a campaign has, kept by the database as the rows change.

Triggers on the ledger (migration 0005) append a ``LedgerChange`` for each statement that changes
it, in its transaction: no path can forget it, nobody waits for anybody, and a crash loses both or
neither. ``sending.counters.compact`` rolls changes up into ``LedgerCount``. A number is the sum
over both tables in one statement, so of one snapshot, and so right at every moment.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from campaigns.models import Campaign


class Counted(models.IntegerChoices):
    """What is counted. Messages without a campaign are not."""

    #: Rows of the ledger and, after ``prune``, ``ArchivedCount``.
    ROWS = 0, "rows"
    #: Delivery events that are there, by the hour in which they happened.
    EVENTS = 1, "events"
    #: Delivery events that are gone, with their rows.
    GONE = 2, "events that are gone"


class _Count(models.Model):
    what = models.SmallIntegerField(choices=Counted.choices)
    #: The status of a row, or an event's kind.
    status = models.CharField(max_length=40)
    reason = models.CharField(max_length=40, blank=True)
    #: The beginning of an hour of UTC.
    hour = models.DateTimeField()
    #: So many more; negative: fewer.
    number = models.BigIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.number:+d} {self.status} of {self.hour:%Y-%m-%d %H:%M}"


class LedgerChange(_Count):
    """What one statement changed. Append-only; gone when it is rolled up, within seconds. No
    index but its key: behind the mark there are always few. Read it by the function
    ``sendonce_ledger_changes`` (migration 0005), which knows the mark."""

    campaign_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()


class LedgerCount(_Count):
    """Changes rolled up; only ``sending.counters`` writes it."""

    campaign = models.ForeignKey(
        Campaign,
        # A campaign that can be deleted has no rows: what is left is zeros. No constraint: it
        # would look at the campaign, and lock its row, for each count.
        models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            # Reads are by campaign and what.
            models.UniqueConstraint(
                fields=["campaign", "what", "status", "reason", "hour"],
                name="sendonce_count_once",
            ),
        ]


class LedgerMark(models.Model):
    """Up to which id every change was rolled up; one row, or none. Readers begin behind it: rows
    that were rolled up while somebody holds an old snapshot (a long export, ``pg_dump``) can't be
    cleared away, and there may be millions.

    What must hold: whoever sees ``rolled_up`` sees no change with an id up to it. But ids are not
    committed in their order, and one that is given out may come to light later. So it takes two
    roll-ups to move the mark:

    1. One writes down the highest id that it took, ``noted``, and ``writers``: the transactions
       that hold the lock which inserting into the table takes. Whoever was given an id up to
       ``noted`` took that lock before, and keeps it to its end: it has ended, or is among them.
    2. A later one sees that none of them holds the lock any more, nor any prepared transaction
       (whose locks have changed their name). Locks go after a transaction has become visible. So
       a statement that begins then sees all that will ever be there up to ``noted``; if it sees
       nothing, all of it has been rolled up, and ``rolled_up`` becomes ``noted``. Whoever sees
       this sees what that statement saw, and nothing more can come.

    The mark is an ordinary row, so that an older snapshot goes by an older mark. It holds for ids
    that a sequence gives out in order (no CACHE). 0, or no row, is always right.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    rolled_up = models.BigIntegerField()
    #: 0, or as much as ``rolled_up``: nothing is noted.
    noted = models.BigIntegerField()
    #: As ``pg_locks.virtualtransaction`` names them.
    writers = ArrayField(models.CharField(max_length=40))

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"all rolled up to {self.rolled_up}"
