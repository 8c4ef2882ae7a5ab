"""Confirming: somebody has pressed the button behind the link that only their mailbox had.

The one place where a stranger's wish becomes a subscription, and the only act that takes back an
unsubscription or an erasure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from ..addresses import lower
from ..audit import record
from ..consent import rejoin
from ..leaving.address_change import AddressChange, change_address
from ..models import Signup, Subscriber
from ..read_committed import read_committed
from ..suppressing.releasing import lift, listed
from ..suppression import hold_erasing
from .asking import Origin
from .window import left_since, still_confirms


class State(Enum):
    """Where a sign-up stands, as its page says it."""

    WAITING = auto()
    CONFIRMED = auto()
    #: Something that its owner can't lift keeps mail from this address: nothing was changed.
    REFUSED = auto()
    #: Too late, withdrawn, erased, or taken back since: a new sign-up is the way.
    OVER = auto()


@dataclass(frozen=True)
class Confirmation:
    state: State
    #: ``None``: there is none any more, or its person was erased.
    signup: Signup | None = None


def look(signup_id: int) -> Confirmation:
    """Where a sign-up stands. Changes nothing."""
    signup = _stored(signup_id)
    return Confirmation(_state(signup), signup)


def confirm_signup(signup_id: int, origin: Origin) -> Confirmation:
    """Confirm a sign-up that waits, in one transaction; repeated, it changes nothing more.

    The person is confirmed, whatever they were; what they said of themselves is stored; they are
    in the form's segments; their unsubscription from this account, or their erasure, is lifted.
    Against an unsubscription since the mail, or at the same moment: that one holds. Against an
    erasure: there is either no sign-up left to confirm, or a person to erase.
    """
    with read_committed():
        account_id = Signup.objects.filter(pk=signup_id).values_list("account", flat=True).first()
        if account_id is None:
            return Confirmation(State.OVER)
        # Erasures first, then the sign-up, then the person: the order of everybody's locks.
        hold_erasing(account_id)
        signup = _stored(signup_id, lock=True)
        state = _state(signup)
        if signup is None or state is not State.WAITING:
            return Confirmation(state, signup)
        if signup.kind == Signup.Kind.ADDRESS:
            state = _MOVED[change_address(signup)]
        else:
            state = _join(signup)
        if state is State.CONFIRMED:
            Signup.objects.filter(pk=signup.pk).update(
                confirmed_at=Now(),
                confirmed_from=origin.address,
                confirmed_agent=origin.agent,
                subscriber=signup.subscriber,
            )
        return Confirmation(state, signup)


_MOVED = {
    AddressChange.CHANGED: State.CONFIRMED,
    AddressChange.REFUSED: State.REFUSED,
    AddressChange.ENDED: State.OVER,
}


def _stored(signup_id: int, *, lock: bool = False) -> Signup | None:
    rows = Signup.objects.select_related("account", "form", "consent", "subscriber")
    if lock:
        rows = rows.select_for_update(of=("self",))
    return rows.filter(pk=signup_id).first()


def _state(signup: Signup | None) -> State:
    if signup is None or signup.email is None:
        return State.OVER
    if signup.confirmed_at is None:
        waits = still_confirms(Signup.objects.filter(pk=signup.pk)).exists()
        # A form that was deleted leads nowhere.
        leads = signup.kind == Signup.Kind.ADDRESS or signup.form_id is not None
        return State.WAITING if waits and leads else State.OVER
    # It was confirmed; whether that still holds is for the person to say, who may have left.
    holds = Subscriber.objects.filter(
        account=signup.account_id,
        email_lower=lower(signup.email),
        status=Subscriber.Status.CONFIRMED,
    ).exists()
    return State.CONFIRMED if holds else State.OVER


def _join(signup: Signup) -> State:
    assert signup.form is not None
    assert signup.email is not None
    with transaction.atomic():
        person = _person(signup, signup.email)
        if left_since(person, signup):
            transaction.set_rollback(True)
            return State.OVER
        # After the person's row is locked: an unsubscription holds it until both are written.
        before = listed(signup.account, signup.email)
        if not lift(signup.account, signup.email):
            transaction.set_rollback(True)
            return State.REFUSED
        if person.status != Subscriber.Status.CONFIRMED:
            _begin(person, signup)
        if before:
            record(
                signup.account,
                "suppression.lift",
                by_name="the person",
                subject=f"sign-up {signup.pk}",
                reason="A confirmed double opt-in.",
                detail={"suppressed_for": before},
            )
        Subscriber.objects.filter(pk=person.pk).update(**_told(person, signup))
        segments = signup.form.segments.filter(account=signup.account_id)
        rejoin(person, segments, source=_source(signup))
    signup.subscriber = person
    return State.CONFIRMED


def _person(signup: Signup, email: str) -> Subscriber:
    """The person of this address, locked; a new one is pending until the rest is written."""
    Subscriber.objects.bulk_create(
        [Subscriber(account=signup.account, email=email)], ignore_conflicts=True
    )
    mine = Subscriber.objects.filter(account=signup.account_id, email_lower=lower(email))
    return mine.select_for_update(of=("self",), no_key=True).get()


def _begin(person: Subscriber, signup: Signup) -> None:
    Subscriber.objects.filter(pk=person.pk).update(
        status=Subscriber.Status.CONFIRMED,
        confirmed_at=Now(),
        consent_source=_source(signup),
        # They want mail, now.
        paused_until=None,
    )


def _told(person: Subscriber, signup: Signup) -> dict[str, Any]:
    """What they said of themselves goes over what was known; the rest stays."""
    known = person.attributes if isinstance(person.attributes, dict) else {}
    return {
        "attributes": {**known, **signup.attributes},
        "locale": signup.locale or person.locale,
    }


def _source(signup: Signup) -> str:
    assert signup.form is not None
    return f"Double opt-in by the form \u201c{signup.form.slug}\u201d (sign-up {signup.pk})"[:200]
