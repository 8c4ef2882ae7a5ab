"""A person's new address: asked for, confirmed by its own mailbox, and the old one is told.

Mail is passed on, and with it the links in it. So the new mailbox says yes first, and the old one
learns what was done and how to undo it.
"""

from __future__ import annotations

from enum import Enum

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Collate, Now

from .. import hooks
from ..addresses import lower, normalize
from ..audit import record
from ..client_address import network
from ..consent import rejoin, unsubscribe
from ..joining.asking import Origin
from ..joining.limits import Verdict, attempt
from ..joining.window import left_since, still_confirms
from ..models import Account, Segment, Signup, Subscriber, Suppression
from ..read_committed import read_committed
from ..suppressing.releasing import lift, listed
from ..suppression import hold_erasing
from .address_mail import queue_confirmation, queue_notice

Reason = Suppression.Reason


class AddressChange(Enum):
    """What became of a confirmed wish to change an address."""

    CHANGED = "changed"
    #: The new address must not get mail, for a reason that is not its owner's to lift.
    REFUSED = "refused"
    #: The person has left, or is gone: there is nothing to move.
    ENDED = "ended"


def ask(person: Subscriber, typed: str, origin: Origin, *, language: str) -> Verdict:
    """Let a wish for another address wait for its confirmation and queue the mail to it, in one
    transaction; or do not, under the limits that sign-ups have. Nothing else is looked at, so no
    answer tells who else is known; callers may tell people of ``NETWORK`` and ``ACCOUNT`` only.

    Raises ``AddressError`` for what is no address.
    """
    email = normalize(typed)
    with read_committed():
        verdict = attempt(person.account, email, network(origin.address))
        if verdict in {Verdict.NETWORK, Verdict.ACCOUNT}:
            return verdict
        with transaction.atomic():
            queue_confirmation(_waiting(person, email) or _new(person, email, origin), language)
            # The same work, taken back: the time it takes must tell nothing.
            if verdict is not Verdict.MAILED or lower(email) == person.email_lower:
                transaction.set_rollback(True)
    return verdict


def change_address(signup: Signup) -> AddressChange:
    """Follow a wish of kind ``address`` that its mailbox has confirmed. Call it in the transaction
    that stores the confirmation; repeated, it changes nothing more.

    The person keeps everything but the address. Where the new one is another person's of the
    account, that one is confirmed and joins the segments, and the old one is unsubscribed. As
    any double opt-in it lifts what ``releasing.lift`` does. A notice to the old address is queued
    with it; rows of running campaigns follow the person, or are withheld as ``moved`` where they
    were claimed or tried already, or where this process dies before it comes to them.
    """
    if signup.subscriber_id is None or signup.email is None:
        return AddressChange.ENDED
    try:
        with transaction.atomic():
            return _follow(signup, signup.subscriber_id, signup.email)
    except IntegrityError:
        # Somebody of that address was added at this moment: now there are two to make one of.
        with transaction.atomic():
            return _follow(signup, signup.subscriber_id, signup.email)


def became(person: Subscriber) -> list[Subscriber]:
    """Whom a person is now, who changed to the address of somebody known: links in mail that they
    got before still speak of who they were."""
    found: dict[int, Subscriber] = {}
    asked = [person]
    while asked:
        one = asked.pop()
        last = (
            Signup.objects.filter(
                subscriber=one, kind=Signup.Kind.ADDRESS, confirmed_at__isnull=False
            )
            .order_by("-confirmed_at", "-pk")
            .first()
        )
        if last is None or last.former_lower != one.email_lower:
            continue  # they moved themselves; who has an address of theirs now is somebody else
        for later in Subscriber.objects.filter(
            account=one.account_id, email_lower=last.email_lower
        ).select_related("account"):
            if later.pk != person.pk and later.pk not in found:
                found[later.pk] = later
                asked.append(later)
    return [*found.values()]


def leave_everything(person: Subscriber, *, evidence: str, campaign_id: int | None = None) -> None:
    """``consent.unsubscribe``, also whom this person has become since. ``campaign_id``: by a link
    of that campaign, which is recorded with the change."""
    _leave(person, person, evidence, campaign_id)
    for later in became(person):
        _leave(later, person, evidence, campaign_id)


def _leave(one: Subscriber, person: Subscriber, evidence: str, campaign_id: int | None) -> None:
    """``person`` got the link, and is ``one`` by now."""
    with read_committed():
        if unsubscribe(one, evidence=evidence) and campaign_id is not None:
            hooks.left_through(person.pk, campaign_id)


def _follow(signup: Signup, person_id: int, email: str) -> AddressChange:
    # The order of everybody's locks: erasures, the sign-up, the people.
    hold_erasing(signup.account_id)
    same_address = Q(account_id=signup.account_id, email_lower=lower(email))
    found = (
        Subscriber.objects.filter(Q(pk=person_id, account_id=signup.account_id) | same_address)
        .select_related("account")
        .order_by(Collate("email_lower", "C"))
        # As an import orders them, and as a build's foreign keys allow.
        .select_for_update(of=("self",), no_key=True)
    )
    people = {person.pk: person for person in found}
    old = people.pop(person_id, None)
    other = next(iter(people.values()), None)
    if old is None:
        return AddressChange.ENDED
    if old.status != Subscriber.Status.CONFIRMED:
        followed = other is not None and other.status == Subscriber.Status.CONFIRMED
        return AddressChange.CHANGED if followed else AddressChange.ENDED
    if old.email_lower == lower(email):
        return AddressChange.CHANGED
    if other is not None and left_since(other, signup):
        return AddressChange.ENDED
    if _barred(old.account, old.email):
        return AddressChange.REFUSED
    before = listed(old.account, email)
    if not lift(old.account, email):
        return AddressChange.REFUSED
    if before:
        record(
            old.account,
            "suppression.lift",
            by_name="the person",
            subject=f"sign-up {signup.pk}",
            reason="A confirmed change of address.",
            detail={"suppressed_for": before},
        )
    if other is None:
        Subscriber.objects.filter(pk=old.pk).update(email=email)
        transaction.on_commit(lambda: hooks.withdraw_leavers([old.pk]), robust=True)
    else:
        _merge(old, other, email)
    Signup.objects.filter(pk=signup.pk).update(former_email=old.email)
    queue_notice(signup, old, email, merged=other is not None)
    return AddressChange.CHANGED


def _barred(account: Account, email: str) -> bool:
    """Whether this address must get no mail for a reason that goes along with its owner: a
    complaint and what staff decided do not end with an address. A dead one does."""
    lasting = Q(reason__in=(Reason.COMPLAINT, Reason.MANUAL)) | Q(former_reason=Reason.MANUAL)
    alive = Q(expires__isnull=True) | Q(expires__gt=Now())
    return Suppression.objects.filter(
        Q(account=account) | Q(account__isnull=True), lasting, alive, email_lower=lower(email)
    ).exists()


def _merge(old: Subscriber, other: Subscriber, email: str) -> None:
    """The person is known under the new address already: there they stay, and nowhere else."""
    source = "The change of another address to this one, confirmed by a link to it"
    Subscriber.objects.filter(pk=other.pk).exclude(status=Subscriber.Status.CONFIRMED).update(
        status=Subscriber.Status.CONFIRMED,
        confirmed_at=Now(),
        consent_source=source,
    )
    pauses = [until for until in (old.paused_until, other.paused_until) if until is not None]
    Subscriber.objects.filter(pk=other.pk).update(paused_until=max(pauses, default=None))
    present = Segment.objects.filter(
        account=old.account_id, memberships__subscriber=old, memberships__left_at__isnull=True
    )
    rejoin(other, present, source=source)
    unsubscribe(old, evidence="The person changed to another address, which confirmed it.")


def _waiting(person: Subscriber, email: str) -> Signup | None:
    """The same wish, not confirmed yet: its mail is sent again."""
    found = (
        still_confirms(
            Signup.objects.filter(
                account=person.account,
                kind=Signup.Kind.ADDRESS,
                subscriber=person,
                email=email,
                confirmed_at__isnull=True,
            )
        )
        .select_for_update(of=("self",))
        .order_by("-pk")
        .first()
    )
    if found is not None:
        Signup.objects.filter(pk=found.pk).update(mails=F("mails") + 1, mailed_at=Now())
        found.mails += 1
    return found


def _new(person: Subscriber, email: str, origin: Origin) -> Signup:
    return Signup.objects.create(
        account=person.account,
        kind=Signup.Kind.ADDRESS,
        subscriber=person,
        email=email,
        locale=person.locale,
        requested_from=origin.address,
        requested_agent=origin.agent,
        mails=1,
        mailed_at=Now(),
    )
