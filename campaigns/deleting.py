"""Deleting a campaign: only one that nobody ever approved, so that no record of mail goes."""

from __future__ import annotations

from django.db import connection, transaction

from .errors import WrongState
from .gate import enter_exclusive
from .models import Campaign

NEVER_APPROVED = "draft that was never approved"


def is_deletable(campaign: Campaign) -> bool:
    """Is it a draft without an approval, standing or voided?"""
    return campaign.status == Campaign.Status.DRAFT and not campaign.approvals.exists()


def delete(campaign: Campaign) -> None:
    """Delete a draft that was never approved. Raises ``WrongState``."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Nobody approves it between the look and the deletion.
            enter_exclusive(cursor, campaign.pk)
        found = Campaign.objects.filter(pk=campaign.pk).first()
        if found is None:
            raise WrongState("delete", "deleted", (NEVER_APPROVED,))
        if not is_deletable(found):
            status = f"{found.status}, and was approved before"
            raise WrongState("delete", status, (f"a {NEVER_APPROVED}",))
        found.delete()
