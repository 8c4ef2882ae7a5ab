"""How many rows of each status a campaign has, kept by the database as the rows change.

Triggers on the ledger (migration 0005) append a ``LedgerChange`` for each statement that changes
it, in its transaction: no path can forget it, nobody waits for anybody, and a crash loses both or
neither. ``sending.counters.compact`` rolls changes up into ``LedgerCount``. A number is the sum
over both tables in one statement, so of one snapshot, and so right at every moment.
"""

from __future__ import annotations

from typing import ClassVar

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
    index but its key: it is always small."""

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
