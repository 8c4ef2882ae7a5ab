"""Joining against joining, leaving, erasing and pruning, each on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from subscribers import consent
from subscribers.consent import unsubscribe
from subscribers.joining import asking as signup
from subscribers.joining import confirming as signup_confirm
from subscribers.joining.asking import Entry, Origin, request_signup
from subscribers.joining.confirming import Confirmation, State, confirm_signup
from subscribers.joining.limits import Verdict
from subscribers.joining.window import prune_signups
from subscribers.models import (
    ConsentText,
    Membership,
    Signup,
    SignupAttempt,
    SignupForm,
    Subscriber,
    Suppression,
)
from subscribers.rights import acts as rights
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed
from tests.db.racing import Halt, Race
from tests.db.signups import asked, mails, sign_up
from tests.factories import SignupFactory, SignupFormFactory, SubscriberFactory

pytestmark = pytest.mark.django_db(transaction=True)

Status = Subscriber.Status


@pytest.fixture
def waiting() -> Signup:
    asked()
    return Signup.objects.select_related("form__account").get()


def confirming(signup: Signup, address: str = "203.0.113.9") -> Callable[[], Confirmation]:
    return lambda: confirm_signup(signup.pk, Origin(address, "Browser/1"))


def halt_after(race: Race, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Halt:
    """The first racer that has called ``module.name`` stops there."""
    halt = race.halt()
    monkeypatch.setattr(module, name, halt.behind(getattr(module, name)))
    return halt


def person() -> Subscriber:
    return Subscriber.objects.get(email_lower="ann@example.org")


# --- confirming twice ----------------------------------------------------------------------------


def test_two_confirmations_at_once_are_one(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup_confirm, "lift")
        first = race.start_to(halt, confirming(waiting, "203.0.113.1"))
        second = race.start(confirming(waiting, "203.0.113.2"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result().state is State.CONFIRMED
        assert second.result().state is State.CONFIRMED
    waiting.refresh_from_db()
    assert waiting.confirmed_from == "203.0.113.1"
    assert Subscriber.objects.count() == 1
    assert Membership.objects.count() == 1


def test_two_sign_ups_of_one_new_person_are_confirmed_at_once(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two forms: neither knows of the other's new subscriber."""
    other = SignupFormFactory.create(account=waiting.account)
    also = SignupFactory.create(
        account=waiting.account, form=other, email="Ann@example.org", attributes={"a": 1}
    )
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup_confirm, "lift")
        first = race.start_to(halt, confirming(waiting))
        second = race.start(confirming(also))
        second.wait_until_blocked()
        halt.released.set()
        assert {first.result().state, second.result().state} == {State.CONFIRMED}
    assert person().status == Status.CONFIRMED
    assert person().attributes == {"a": 1}
    assert Membership.objects.filter(left_at=None).count() == 2
    assert set(Signup.objects.values_list("subscriber", flat=True)) == {person().pk}


# --- confirming and leaving ----------------------------------------------------------------------


@pytest.mark.parametrize("before", ["pending", "confirmed", "unsubscribed"])
def test_an_unsubscription_during_a_confirmation_comes_after_it(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    known = SubscriberFactory.create(
        account=waiting.account, email="ann@example.org", status=before
    )
    if before == "unsubscribed":
        unsubscribe(known, evidence="earlier")
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup_confirm, "lift")
        first = race.start_to(halt, confirming(waiting))
        second = race.start(lambda: unsubscribe(known, evidence="meanwhile"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result().state is State.CONFIRMED
        second.result()
    assert person().status == Status.UNSUBSCRIBED
    assert Suppression.objects.get().reason == "unsubscribed"


@pytest.mark.parametrize("before", ["pending", "confirmed"])
def test_a_confirmation_during_an_unsubscription_was_asked_for_before_it_and_is_over(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    known = SubscriberFactory.create(
        account=waiting.account, email="ann@example.org", status=before
    )
    with Race() as race:
        halt = halt_after(race, monkeypatch, consent, "suppress")
        first = race.start_to(halt, lambda: unsubscribe(known, evidence="test"))
        second = race.start(confirming(waiting))
        second.wait_until_blocked()
        halt.released.set()
        first.result()
        assert second.result().state is State.OVER
    assert person().status == Status.UNSUBSCRIBED
    assert Suppression.objects.get().reason == "unsubscribed"


# --- confirming and erasing ----------------------------------------------------------------------


def erasing(signup: Signup) -> Callable[[], Any]:
    return lambda: erase_person(signup.account, "ann@example.org", reason="test", by_name="test")


def assert_forgotten(signup: Signup) -> None:
    assert not Subscriber.objects.exists()
    assert not Signup.objects.exclude(email=None).exists()
    assert is_suppressed(signup.account, "ann@example.org")


def test_an_erasure_during_a_confirmation_erases_who_was_confirmed(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup_confirm, "lift")
        first = race.start_to(halt, confirming(waiting))
        second = race.start(erasing(waiting))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result().state is State.CONFIRMED
        second.result()
    assert_forgotten(waiting)


def test_a_confirmation_during_an_erasure_finds_nothing_left(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_after(race, monkeypatch, rights, "begin_erasing")
        first = race.start_to(halt, erasing(waiting))
        second = race.start(confirming(waiting))
        second.wait_until_blocked()
        halt.released.set()
        first.result()
        assert second.result().state is State.OVER
    assert_forgotten(waiting)


# --- asking at once ------------------------------------------------------------------------------


def asking(form: SignupForm, email: str, address: str) -> Callable[[], Verdict]:
    return lambda: request_signup(form, Entry(email=email), Origin(address))


def test_one_mailbox_asked_for_twice_at_once_gets_one_mail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form, other = SignupFormFactory.create_batch(2)
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup, "queue_mail")
        first = race.start_to(halt, asking(form, "ann@example.org", "203.0.113.1"))
        second = race.start(asking(other, "Ann+x@example.org", "198.51.100.1"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() is Verdict.MAILED
        assert second.result() is Verdict.ADDRESS
    assert len(mails()) == 1
    assert Signup.objects.count() == 1


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 1})
def test_one_network_can_not_pass_its_limit_by_asking_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form, other = SignupFormFactory.create_batch(2)
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup, "queue_mail")
        first = race.start_to(halt, asking(form, "ann@example.org", "203.0.113.1"))
        second = race.start(asking(other, "bob@example.org", "203.0.113.2"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() is Verdict.MAILED
        assert second.result() is Verdict.NETWORK


@override_settings(SENDONCE={"SIGNUP_ACCOUNT_HOUR": 1})
def test_one_account_can_not_pass_its_ceiling_by_being_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = SignupFormFactory.create()
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup, "queue_mail")
        first = race.start_to(halt, asking(form, "ann@example.org", "203.0.113.1"))
        second = race.start(asking(form, "bob@example.org", "198.51.100.1"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() is Verdict.MAILED
        assert second.result() is Verdict.ACCOUNT


@pytest.mark.parametrize("what", ["mailbox", "confirmation"])
def test_a_database_whose_transactions_keep_their_snapshot(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Where the host's default is REPEATABLE READ, who waited for a lock must not act upon what
    was there before."""

    def there(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with connection.cursor() as cursor:
                cursor.execute("SET default_transaction_isolation = 'repeatable read'")
            return function()

        return run

    form = SignupFormFactory.create()
    with Race() as race:
        if what == "mailbox":
            halt = halt_after(race, monkeypatch, signup, "queue_mail")
            first = race.start_to(halt, there(asking(form, "bob@example.org", "203.0.113.1")))
            second = race.start(there(asking(form, "bob@example.org", "198.51.100.1")))
        else:
            halt = halt_after(race, monkeypatch, signup_confirm, "lift")
            first = race.start_to(halt, there(confirming(waiting)))
            second = race.start(there(confirming(waiting)))
        second.wait_until_blocked()
        halt.released.set()
        outcomes = [first.result(), second.result()]
    if what == "mailbox":
        assert outcomes == [Verdict.MAILED, Verdict.ADDRESS]
    else:
        assert [one.state for one in outcomes] == [State.CONFIRMED, State.CONFIRMED]


def test_strangers_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    form, other = SignupFormFactory.create_batch(2)
    with Race() as race:
        halt = halt_after(race, monkeypatch, signup, "queue_mail")
        race.start_to(halt, asking(form, "ann@example.org", "203.0.113.1"))
        assert request_signup(other, Entry(email="bob@example.org"), Origin("198.51.100.1"))
        assert len(mails()) == 1


def test_many_at_once_come_to_an_end_and_are_counted() -> None:
    """Mailboxes, networks and accounts in every combination: nobody waits in a circle."""
    forms = SignupFormFactory.create_batch(2)
    with Race() as race:
        racers = [
            race.start(asking(forms[n % 2], f"p{n % 3}@example.org", f"198.51.{n // 2 % 2}.{n}"))
            for n in range(12)
        ]
        verdicts = [racer.result() for racer in racers]
    assert sorted(verdicts).count(Verdict.MAILED) == 3
    assert SignupAttempt.objects.count() == 12
    assert len(mails()) == Signup.objects.count() == 3
    assert ConsentText.objects.count() <= 2


# --- and the rest --------------------------------------------------------------------------------


def test_pruning_passes_over_what_is_being_confirmed(
    waiting: Signup, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = timezone.now() - timedelta(days=50)
    Signup.objects.update(requested_at=old, mailed_at=old)
    with Race() as race, override_settings(SENDONCE={"CONFIRM_DAYS": 60}):
        halt = halt_after(race, monkeypatch, signup_confirm, "lift")
        first = race.start_to(halt, confirming(waiting))
        with override_settings(SENDONCE={"CONFIRM_DAYS": 14}):
            # Old enough to go, were it not for who holds it.
            assert prune_signups() == 0
        halt.released.set()
        assert first.result().state is State.CONFIRMED
    waiting.refresh_from_db()
    assert waiting.confirmed_at is not None


def test_a_form_used_through_the_web_at_once_answers_alike() -> None:
    form = SignupFormFactory.create()

    def ask(network: int) -> bytes:
        web = Client(REMOTE_ADDR=f"100.64.{network}.1")
        return bytes(sign_up(form, "ann@example.org", web).content)

    with Race() as race:
        racers = [race.start(partial(ask, network)) for network in range(4)]
        assert len({racer.result() for racer in racers}) == 1
    assert len(mails()) == 1
