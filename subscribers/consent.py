"""Leaving: the one change of a person's mind that nothing may delay."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from . import hooks
from .models import Subscriber, Suppression
from .suppression import suppress


def unsubscribe(subscriber: Subscriber, *, evidence: str) -> bool:
    """Unsubscribe a person from the account, for good; ``True`` if they were subscribed.

    One transaction: when it has committed, no hand-over that begins later sends to them. Safe
    to repeat: the suppression is there afterwards in any case. ``evidence`` says in words what
    showed the wish (a link, a reply, a note). A person deleted meanwhile is no error.
    """
    with transaction.atomic():
        changed = bool(
            Subscriber.objects.filter(pk=subscriber.pk)
            .exclude(status=Subscriber.Status.UNSUBSCRIBED)
            .update(status=Subscriber.Status.UNSUBSCRIBED, unsubscribed_at=Now())
        )
        # Read after the update: it holds the row, so the address can't change under us.
        now = Subscriber.objects.select_related("account").filter(pk=subscriber.pk).first()
        if now is None:
            return False
        suppress(now.account, now.email, Suppression.Reason.UNSUBSCRIBED, evidence=evidence)
        transaction.on_commit(lambda: hooks.withdraw_leavers([now.pk]), robust=True)
    return changed
