"""What is left of rows that were pruned: how many they were."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from campaigns.models import Campaign

from .sends import Send


class ArchivedCount(models.Model):
    """So many rows of a campaign ended like this and were pruned since. Part of the ledger:
    ``sending.ledger`` adds them to the rows that are still there. See ``sending.pruning``."""

    campaign = models.ForeignKey(
        # As its rows: not to be deleted with it. Indexed by the constraint.
        Campaign,
        models.PROTECT,
        related_name="archived",
        db_index=False,
    )
    status = models.CharField(max_length=20, choices=Send.Status.choices)
    #: As ``Send.reason``.
    reason = models.CharField(max_length=40, blank=True)
    number = models.BigIntegerField()
    #: When rows were last added to it.
    at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-campaign", "status", "reason"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["campaign", "status", "reason"], name="sendonce_archived_once"
            ),
            models.CheckConstraint(
                # Nothing that is open or in doubt is ever pruned.
                condition=Q(
                    status__in=["sent", "bounced", "failed", "suppressed", "canceled"],
                    number__gt=0,
                ),
                name="sendonce_archived_closed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.status}, archived"
