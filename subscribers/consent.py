"""What a person wants, as it becomes known: confirming, leaving, and never again.

Leaving is the one change of mind that nothing may delay: when a verb here has committed, no
hand-over that begins later sends to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now

from . import hooks
from .models import Account, Membership, Subscriber, Suppression
from .suppression import suppress


def confirm(subscriber: Subscriber, *, source: str) -> bool:
    """A pending person has consented; ``True`` if they were pending.

    ``source`` says in words where the consent came from. Only ``pending`` becomes
    ``confirmed``: this does not lift an unsubscription, whoever asks for it. Raises
    ``ValueError`` without a source.
    """
    if not source.strip():
        raise ValueError("say where the consent came from")
    return bool(
        Subscriber.objects.filter(pk=subscriber.pk, status=Subscriber.Status.PENDING).update(
            status=Subscriber.Status.CONFIRMED, confirmed_at=Now(), consent_source=source
        )
    )


def leave(memberships: Iterable[Membership]) -> list[Membership]:
    """These people leave these segments; returns the memberships that had not ended before.

    One transaction: give it some hundreds, not a million. Open rows of running campaigns that
    reach them through these segments alone are withdrawn once it has committed. Safe to repeat:
    the first end stays on record.
    """
    chosen = {membership.pk: membership for membership in memberships}
    with transaction.atomic():
        present = Membership.objects.filter(pk__in=list(chosen), left_at__isnull=True)
        # The locks make one compare-and-set of the two statements, in an order all agree on.
        locked = list(
            present.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True)
        )
        Membership.objects.filter(pk__in=locked).update(left_at=Now())
        left = [chosen[pk] for pk in locked]
        people = sorted({membership.subscriber_id for membership in left})
        if people:
            transaction.on_commit(lambda: hooks.withdraw_leavers(people), robust=True)
    return left


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


def suppress_by_hand(
    account: Account | None,
    email: str,
    reason: Suppression.Reason | str,
    *,
    by: str,
    evidence: str = "",
    expires: datetime | None = None,
) -> Suppression:
    """``suppress`` what somebody on the staff decided: the evidence names them after what they
    wrote themselves. Returns what holds afterwards, for a stronger reason that stays, too."""
    signed = f"Added by {by}."
    return suppress(
        account,
        email,
        reason,
        evidence=f"{evidence.strip()}\n{signed}" if evidence.strip() else signed,
        expires=expires,
    )
