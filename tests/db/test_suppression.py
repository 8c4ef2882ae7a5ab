from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.test import override_settings
from django.utils import timezone

from subscribers.addresses import erased_hashes
from subscribers.models import Suppression
from subscribers.suppression import (
    RANK,
    Entry,
    is_suppressed,
    suppress,
    suppress_all,
    suppressed_among,
)
from tests.db.racing import Race
from tests.factories import AccountFactory, SubscriberFactory, SuppressionFactory

pytestmark = pytest.mark.django_db

Reason = Suppression.Reason
ANN = "Ann@example.org"


def test_an_account_s_suppression_holds_for_that_account_alone() -> None:
    one, other = AccountFactory.create(), AccountFactory.create()
    row = suppress(one, ANN, "manual", evidence="asked by phone")
    assert (row.account, row.email, row.reason, row.evidence, row.expires) == (
        one,
        ANN,
        Reason.MANUAL,
        "asked by phone",
        None,
    )
    assert is_suppressed(one, "ANN@EXAMPLE.ORG")
    assert not is_suppressed(other, ANN)
    assert not is_suppressed(None, ANN)


def test_a_global_suppression_holds_for_all_accounts() -> None:
    account = AccountFactory.create()
    row = suppress(None, ANN, Reason.COMPLAINT)
    assert row.account is None
    assert is_suppressed(account, ANN)
    assert is_suppressed(None, ANN)
    assert suppress(None, ANN, Reason.COMPLAINT).pk == row.pk


def test_the_account_may_be_told_by_its_id() -> None:
    account = AccountFactory.create()
    assert suppress(account.pk, ANN, "manual").account == account
    assert is_suppressed(account.pk, ANN)


@pytest.mark.parametrize("first", RANK)
@pytest.mark.parametrize("second", RANK)
def test_the_stronger_reason_stays(first: Reason, second: Reason) -> None:
    account = AccountFactory.create()
    suppress(account, ANN, first, evidence="first")
    row = suppress(account, ANN, second, evidence="second")
    stronger = RANK.index(second) > RANK.index(first)
    assert row.reason == (second if stronger else first)
    assert row.evidence == ("second" if stronger else "first")
    assert Suppression.objects.count() == 1


def test_evidence_fills_a_blank() -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "complaint")
    assert suppress(account, ANN, "manual", evidence="note").evidence == "note"


def test_a_dead_address_is_suppressed_for_a_year_and_a_complaint_for_ever() -> None:
    account = AccountFactory.create()
    dead = suppress(account, ANN, "hard_bounce")
    assert dead.expires is not None
    assert timedelta(days=364) < dead.expires - timezone.now() < timedelta(days=366)
    assert suppress(account, ANN, "complaint").expires is None
    assert suppress(account, ANN, "hard_bounce").expires is None


def test_the_later_end_wins() -> None:
    account = AccountFactory.create()
    near, far = datetime(2100, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)
    suppress(account, ANN, "manual", expires=far)
    assert suppress(account, ANN, "manual", expires=near).expires == far
    assert suppress(account, ANN, "manual").expires is None
    assert suppress(account, ANN, "manual", expires=far).expires is None


def test_what_has_lapsed_weighs_nothing() -> None:
    account = AccountFactory.create()
    past = timezone.now() - timedelta(days=1)
    old = SuppressionFactory.create(account=account, email=ANN, reason="manual", expires=past)
    assert not is_suppressed(account, ANN)
    row = suppress(account, ANN, "hard_bounce", evidence="550 5.1.1")
    assert (row.pk, row.reason, row.evidence) == (old.pk, Reason.HARD_BOUNCE, "550 5.1.1")
    assert row.created > old.created
    assert is_suppressed(account, ANN)


@pytest.mark.parametrize(
    ("email", "reason", "expires"),
    [
        (ANN, "whim", None),
        (" \u200b", "manual", None),
        (ANN, "complaint", datetime(2100, 1, 1, tzinfo=UTC)),
        (ANN, "erased", datetime(2100, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_makes_no_sense_is_refused(email: str, reason: str, expires: datetime | None) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the type is the contract)
        suppress(AccountFactory.create(), email, reason, expires=expires)
    assert not Suppression.objects.exists()


def test_an_unsaved_account_is_not_taken_for_all_accounts() -> None:
    with pytest.raises(ValueError, match="not saved"):
        suppress(AccountFactory.build(), ANN, "manual")


def test_an_erased_person_is_a_hash_and_nothing_else() -> None:
    account = AccountFactory.create()
    row = suppress(account, f" {ANN} ", "erased", evidence="letter of ann@example.org, 3 May")
    assert (row.email, row.email_lower) == (None, None)
    assert row.email_hash == erased_hashes(ANN)[0]
    assert row.evidence == "letter of (address), 3 May"
    assert row.expires is None
    assert is_suppressed(account, "ann@EXAMPLE.org")
    assert suppress(account, ANN, "erased").pk == row.pk


def test_an_erased_person_stays_known_when_the_key_is_rotated() -> None:
    account = AccountFactory.create()
    with override_settings(SENDONCE={"SECRET_KEYS": ("old",)}):
        row = suppress(account, ANN, "erased")
    with override_settings(SENDONCE={"SECRET_KEYS": ("new", "old")}):
        assert is_suppressed(account, ANN)
        assert suppress(account, ANN, "erased").pk == row.pk
    with override_settings(SENDONCE={"SECRET_KEYS": ("new",)}):
        assert not is_suppressed(account, ANN)


def test_any_spelling_of_an_address_is_found() -> None:
    account = AccountFactory.create()
    suppress(account, "ann@münchen.example", "manual")
    spellings = {
        "ANN@MÜNCHEN.example",
        "ann@xn--mnchen-3ya.example",
        " ann@münchen.example. ",
        "ann\u200b@münchen.example",
    }
    assert suppressed_among(account, {*spellings, "bob@example.org"}) == spellings


def test_what_is_no_address_can_be_suppressed_all_the_same() -> None:
    account = AccountFactory.create()
    suppress(account, "ann@@example.org", "hard_bounce")
    assert is_suppressed(account, "Ann@@example.org")


def test_an_address_that_was_stored_past_every_entrance_is_suppressed_as_it_is_stored() -> None:
    person = SubscriberFactory.create(email="Ann@münchen.example")
    suppress(person.account, person.email, "hard_bounce")
    assert set(Suppression.objects.values_list("email", flat=True)) == {
        "Ann@münchen.example",
        "Ann@xn--mnchen-3ya.example",
    }


def test_many_at_once() -> None:
    account = AccountFactory.create()
    entries = [Entry(account, f"p{i}@example.org", "hard_bounce", f"{i}") for i in (3, 1, 2, 1)]
    rows = suppress_all(entries)
    assert [row.email for row in rows] == [entry.email for entry in entries]
    assert rows[1].pk == rows[3].pk
    wanted = [f"p{i}@example.org" for i in range(12_000)]
    assert suppressed_among(account, iter(wanted)) == {f"p{i}@example.org" for i in (1, 2, 3)}


def test_expiry_goes_by_the_database_s_clock() -> None:
    account = AccountFactory.create()
    for email, seconds in (("past@example.org", -1), ("later@example.org", 3600)):
        row = SuppressionFactory.create(account=account, email=email)
        Suppression.objects.filter(pk=row.pk).update(expires=Now() + timedelta(seconds=seconds))
    assert suppressed_among(account, ["past@example.org", "later@example.org"]) == {
        "later@example.org"
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("for_all", [False, True])
@pytest.mark.parametrize(("first", "second"), [("manual", "complaint"), ("complaint", "manual")])
def test_two_at_once_make_one_row_with_the_stronger_reason(
    first: str, second: str, for_all: bool
) -> None:
    account = None if for_all else AccountFactory.create()
    with Race() as race:
        with transaction.atomic():
            suppress(account, ANN, first)
            other = race.start(lambda: suppress(account, ANN.upper(), second))
            other.wait_until_blocked()
        assert other.result().reason == Reason.COMPLAINT
    assert Suppression.objects.get().reason == Reason.COMPLAINT


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("for_all", [False, True])
def test_two_erasures_at_once_make_one_row(for_all: bool) -> None:
    account = None if for_all else AccountFactory.create()
    with Race() as race:
        with transaction.atomic():
            row = suppress(account, ANN, "erased")
            other = race.start(lambda: suppress(account, ANN, "erased"))
            other.wait_until_blocked()
        assert other.result().pk == row.pk
    assert Suppression.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_batches_in_opposite_order_do_not_wait_in_a_circle() -> None:
    account = AccountFactory.create()
    addresses = [f"p{i}@example.org" for i in range(10)]

    def batch(order: list[str]) -> list[Suppression]:
        return suppress_all(Entry(account, email, "hard_bounce") for email in order)

    with Race() as race:
        # The first address is taken: both batches stand before it, having taken no other.
        with transaction.atomic():
            suppress(account, addresses[0], "manual")
            others = [race.start(partial(batch, o)) for o in (addresses, addresses[::-1])]
            for other in others:
                other.wait_until_blocked()
            assert not Suppression.objects.filter(email__in=addresses[1:]).exists()
            suppress(account, addresses[-1], "manual")
        for other in others:
            assert len(other.result()) == 10
    assert Suppression.objects.count() == 10
