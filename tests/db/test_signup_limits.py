"""Against mail bombing: one mailbox, one network, one account; and what is deleted when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from subscribers.joining.fields import TRAP
from subscribers.joining.window import prune_signups
from subscribers.models import ConsentText, Signup, SignupAttempt, SignupForm
from tests.db.signups import mails, sign_up, visitor
from tests.factories import (
    AccountFactory,
    SignupAttemptFactory,
    SignupFactory,
    SignupFormFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def form() -> SignupForm:
    return SignupFormFactory.create()


def older(**shift: float) -> None:
    """Let time pass for what was counted."""
    for one in SignupAttempt.objects.all():
        SignupAttempt.objects.filter(pk=one.pk).update(at=one.at - timedelta(**shift))


# --- the mailbox ---------------------------------------------------------------------------------


def test_one_mailbox_gets_one_mail_in_a_quarter_of_an_hour_and_three_a_day(
    form: SignupForm,
) -> None:
    other = SignupFormFactory.create()  # of another account
    spellings = ["ann@gmail.com", "A.nn@gmail.com", "ann+x@gmail.com", "ann@googlemail.com"]
    for spelling in spellings:
        for one in (form, other):
            assert sign_up(one, spelling).status_code == 200
    assert len(mails()) == 1
    older(minutes=14)
    sign_up(other, "ann@gmail.com")
    assert len(mails()) == 1
    older(minutes=2)
    sign_up(other, "ann@gmail.com")
    assert len(mails()) == 2
    older(hours=1)
    sign_up(form, "ann@gmail.com")
    assert len(mails()) == 3
    older(hours=20)
    sign_up(form, "ann@gmail.com")
    assert len(mails()) == 3
    older(hours=4)
    sign_up(form, "ann@gmail.com")
    assert len(mails()) == 4
    assert Signup.objects.count() == 2  # one of each account: the second mails were the same


def test_what_was_not_mailed_does_not_count(form: SignupForm) -> None:
    for _ in range(5):
        sign_up(form, "ann@example.org", **{TRAP: "x"})
        sign_up(form, "nobody")
    assert mails() == []
    sign_up(form, "ann@example.org")
    assert len(mails()) == 1


def test_a_request_that_is_stopped_leaves_only_its_count(form: SignupForm) -> None:
    sign_up(form, "ann@example.org")
    before = list(Signup.objects.values())
    SignupForm.objects.update(consent_text="Other words.")
    sign_up(form, "ann@example.org")
    assert list(Signup.objects.values()) == before
    assert ConsentText.objects.count() == 1
    outcomes = sorted(SignupAttempt.objects.values_list("outcome", flat=True))
    assert outcomes == ["address", "mailed"]


# --- the network ---------------------------------------------------------------------------------


def ask(form: SignupForm, number: int, address: str) -> int:
    answer = sign_up(form, f"p{number}@example.org", Client(REMOTE_ADDR=address))
    if answer.status_code == 429:
        assert answer.headers["Retry-After"] == "3600"
        assert "try again later" in answer.content.decode()
    return int(answer.status_code)


def test_one_network_asks_twenty_times_an_hour_and_sixty_a_day(form: SignupForm) -> None:
    other = SignupFormFactory.create()
    for number in range(20):
        assert ask(form if number % 2 else other, number, f"203.0.113.{number}") == 200
    assert ask(form, 20, "203.0.113.200") == 429
    assert ask(form, 20, "198.51.100.1") == 200
    # Who is told to wait and tries on does not wait for ever.
    for _ in range(3):
        assert ask(form, 21, "203.0.113.201") == 429
    older(minutes=61)
    assert ask(form, 21, "203.0.113.201") == 200
    network = "203.0.113.0/24"
    SignupAttemptFactory.create_batch(
        39, network=network, at=timezone.now() - timedelta(hours=5), outcome="trapped"
    )
    assert ask(form, 22, "203.0.113.202") == 429
    older(hours=23)
    assert ask(form, 22, "203.0.113.202") == 200


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 2})
def test_networks_of_the_two_internet_protocols(form: SignupForm) -> None:
    assert ask(form, 1, "2001:db8:0:100::1") == 200
    assert ask(form, 2, "2001:db8:0:1ff::2") == 200
    assert ask(form, 3, "2001:db8:0:1aa::3") == 429
    assert ask(form, 3, "2001:db8:0:200::3") == 200
    assert ask(form, 4, "::ffff:203.0.113.1") == 200
    assert ask(form, 5, "203.0.113.2") == 200
    assert ask(form, 6, "203.0.113.3") == 429
    # Unknown addresses are one network: a proxy that hides them must not open the door.
    assert [ask(form, 7, ""), ask(form, 8, "unix:"), ask(form, 9, "")] == [200, 200, 429]


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 1, "CLIENT_ADDRESS_HEADER": "X-Forwarded-For"})
def test_behind_a_proxy_the_last_address_counts(form: SignupForm) -> None:
    def forwarded(number: int, told: str) -> int:
        web = Client(REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": told})
        return int(sign_up(form, f"p{number}@example.org", web).status_code)

    assert forwarded(1, "198.51.100.1, 203.0.113.1") == 200
    assert forwarded(2, "198.51.100.2, 203.0.113.2") == 429
    assert forwarded(3, "203.0.113.3, 198.51.100.3") == 200
    assert Signup.objects.order_by("pk")[0].requested_from == "203.0.113.1"


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 1})
def test_a_full_network_answers_for_every_address_alike(form: SignupForm) -> None:
    web = visitor()
    sign_up(form, "first@example.org", web)
    answers = [
        sign_up(form, "first@example.org", web),
        sign_up(form, "other@example.org", web),
        sign_up(form, "trap@example.org", web, **{TRAP: "x"}),
    ]
    assert {(one.status_code, one.content) for one in answers} == {(429, answers[0].content)}


# --- the account ---------------------------------------------------------------------------------


@override_settings(SENDONCE={"SIGNUP_ACCOUNT_HOUR": 2})
def test_an_account_writes_so_many_mails_an_hour(form: SignupForm) -> None:
    other = SignupFormFactory.create()
    statuses = [sign_up(form, f"p{n}@example.org").status_code for n in range(3)]
    assert statuses == [200, 200, 429]
    assert sign_up(other, "p3@example.org").status_code == 200
    assert SignupAttempt.objects.filter(outcome="account", account=form.account).count() == 1
    older(minutes=61)
    assert sign_up(form, "p3@example.org").status_code == 200


# --- what is deleted -----------------------------------------------------------------------------


def test_what_nobody_confirmed_and_what_no_limit_needs_is_deleted(form: SignupForm) -> None:
    now = timezone.now()

    def made(days: float, mailed: float | None, **more: Any) -> Signup:
        return SignupFactory.create(
            account=form.account,
            form=form,
            requested_at=now - timedelta(days=days),
            mailed_at=None if mailed is None else now - timedelta(days=mailed),
            **more,
        )

    gone = [made(31, 31), made(40, None), made(400, 60)]
    kept = [made(29, 29), made(100, 5), made(400, 400, confirmed=True)]
    SignupAttemptFactory.create_batch(3, at=now - timedelta(hours=49))
    young = SignupAttemptFactory.create(at=now - timedelta(hours=47))
    assert prune_signups(size=2) == len(gone) + 3
    assert list(Signup.objects.order_by("pk")) == kept
    assert list(SignupAttempt.objects.all()) == [young]
    assert prune_signups() == 0


def test_deleting_works_in_bounded_batches() -> None:
    account = AccountFactory.create()
    SignupAttemptFactory.create_batch(7, account=account, at=timezone.now() - timedelta(days=3))
    with connection.cursor() as cursor:
        # The plan that statistics may bring about one day: it would repeat a subquery.
        for setting in ("hashjoin", "hashagg", "mergejoin", "sort", "material"):
            cursor.execute(f"SET LOCAL enable_{setting} = off")
    assert prune_signups(size=2, batches=2) == 4
    assert SignupAttempt.objects.count() == 3


@override_settings(SENDONCE={"CONFIRM_DAYS": 90})
def test_nothing_is_deleted_while_its_link_confirms(form: SignupForm) -> None:
    old = timezone.now() - timedelta(days=80)
    SignupFactory.create(account=form.account, form=form, requested_at=old, mailed_at=old)
    assert prune_signups() == 0
