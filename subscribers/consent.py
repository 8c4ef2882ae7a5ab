"""What a person wants, as it becomes known: confirming, leaving, and never again.

Leaving is the one change of mind that nothing may delay: when a verb here has committed, no
hand-over that begins later sends to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from . import hooks
from .models import Account, Membership, MembershipChange, Segment, Subscriber, Suppression
from .read_committed import read_committed
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


def leave(memberships: Iterable[Membership], *, source: str = "") -> list[Membership]:
    """These people leave these segments; returns the memberships that had not ended before.

    One transaction: give it some hundreds, not a million. Open rows of running campaigns that
    reach them through these segments alone are withdrawn once it has committed. Safe to repeat:
    the first end stays on record. ``source`` says in words what showed the wish.
    """
    chosen = {membership.pk: membership for membership in memberships}
    with read_committed():
        # The locks make one compare-and-set of the two statements, in an order all agree on. Those
        # that have ended are locked, too: they may begin again at this moment.
        locked = Membership.objects.filter(pk__in=list(chosen)).order_by("pk")
        ends = locked.select_for_update(of=("self",)).values_list("pk", "left_at")
        left = [chosen[pk] for pk, left_at in ends if left_at is None]
        Membership.objects.filter(pk__in=[one.pk for one in left]).update(left_at=Now())
        _note(left, MembershipChange.Kind.LEFT, source)
        people = sorted({membership.subscriber_id for membership in left})
        if people:
            transaction.on_commit(lambda: hooks.withdraw_leavers(people), robust=True)
    return left


def rejoin(subscriber: Subscriber, segments: Iterable[Segment], *, source: str) -> list[Membership]:
    """A person joins these segments, for the first time or again; returns the memberships that
    began by this. Only for what the person did: a confirmed double opt-in, or their own page.

    One transaction, safe to repeat and in a race with ``leave``: whichever commits last holds.
    It confirms nobody and lifts no suppression. A person deleted meanwhile joins nothing. Raises
    ``ValueError`` without a source, and for a segment of another account.
    """
    if not source.strip():
        raise ValueError("say what showed that they want to join")
    wanted = sorted({segment.pk: segment for segment in segments}.items())
    with read_committed():
        # Held until the end, so that the person is not deleted between the statements.
        person = (
            Subscriber.objects.select_for_update(no_key=True, of=("self",))
            .filter(pk=subscriber.pk)
            .first()
        )
        if person is None or not wanted:
            return []
        for _, segment in wanted:
            if segment.account_id != person.account_id:
                raise ValueError(f"the segment {segment.slug} is another account's")
        mine = Membership.objects.filter(subscriber=person, segment__in=[pk for pk, _ in wanted])
        before = set(mine.values_list("segment_id", flat=True))
        Membership.objects.bulk_create(
            [
                Membership(subscriber=person, segment=segment)
                for pk, segment in wanted
                if pk not in before
            ],
            ignore_conflicts=True,
        )
        # As in ``leave``: those that are present may be ending.
        rows = list(mine.order_by("pk").select_for_update(of=("self",)))
        ended = [one for one in rows if one.left_at is not None]
        Membership.objects.filter(pk__in=[one.pk for one in ended]).update(left_at=None)
        _note(ended, MembershipChange.Kind.JOINED, source)
        return [one for one in rows if one in ended or one.segment_id not in before]


def pause(subscriber: Subscriber, until: datetime) -> bool:
    """No campaign reaches this person until then; ``True`` if they are subscribed.

    When it has committed, no hand-over that begins later sends to them, and open rows of running
    campaigns are withdrawn. The last wish holds: a second pause replaces the first. ``until`` is
    aware. Raises ``ValueError`` for a time that is naive or past by this machine's clock.
    """
    if timezone.is_naive(until) or until <= timezone.now():
        raise ValueError(f"{until} is no time in the future")
    with read_committed():
        paused = bool(
            Subscriber.objects.filter(pk=subscriber.pk)
            .exclude(status=Subscriber.Status.UNSUBSCRIBED)
            .update(paused_until=until)
        )
        if paused:
            transaction.on_commit(lambda: hooks.withdraw_leavers([subscriber.pk]), robust=True)
    return paused


def resume(subscriber: Subscriber) -> bool:
    """The pause is over; ``True`` if there was one. What was withdrawn meanwhile stays so."""
    return bool(
        Subscriber.objects.filter(pk=subscriber.pk, paused_until__isnull=False).update(
            paused_until=None
        )
    )


def unsubscribe(subscriber: Subscriber, *, evidence: str) -> bool:
    """Unsubscribe a person from the account, for good; ``True`` if they were subscribed.

    One transaction: when it has committed, no hand-over that begins later sends to them. Safe
    to repeat: the suppression is there afterwards in any case. ``evidence`` says in words what
    showed the wish (a link, a reply, a note). A person deleted meanwhile is no error.
    """
    with read_committed():
        # Locked also where there is nothing to update: a confirmation that is being written would
        # else end in somebody who is confirmed and suppressed.
        mine = Subscriber.objects.filter(pk=subscriber.pk)
        locked = mine.select_related("account").select_for_update(of=("self",), no_key=True)
        now = locked.first()
        if now is None:
            return False
        changed = bool(
            mine.exclude(status=Subscriber.Status.UNSUBSCRIBED).update(
                status=Subscriber.Status.UNSUBSCRIBED, unsubscribed_at=Now()
            )
        )
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


def _note(memberships: Iterable[Membership], kind: MembershipChange.Kind, source: str) -> None:
    MembershipChange.objects.bulk_create(
        [
            MembershipChange(
                segment_id=one.segment_id,
                subscriber_id=one.subscriber_id,
                kind=kind,
                source=source[:200],
            )
            for one in memberships
        ]
    )
