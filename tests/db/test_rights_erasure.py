"""Erasing a person: everything of theirs goes, the hash goes on suppressing, nothing comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from subscribers import hooks
from subscribers.addresses import erased_hashes
from subscribers.audit import record
from subscribers.models import (
    AuditEvent,
    ImportJob,
    ImportReject,
    Signup,
    Subscriber,
    Suppression,
)
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import lift
from subscribers.suppression import is_suppressed, suppress
from tests.db.handed import hand_over_rows
from tests.db.known_person import ANN, everything_of, everything_stored
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImportChunkFactory,
    ImportJobFactory,
    SendFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

Reason = Suppression.Reason


def test_nothing_of_the_person_is_left() -> None:
    account = AccountFactory.create()
    everything_of(account)
    assert "secretville" in everything_stored().lower()

    done = erase_person(
        account, "ann@example.ORG", by_name="Bea", reason="Letter of Ann@example.org"
    )

    left = everything_stored().lower()
    assert "ann@" not in left
    assert "secretville" not in left
    assert done.forgotten == {
        "sign-ups": 2,
        "attempts to sign up": 1,
        "memberships": 1,
        "subscribers": 1,
        "suppressions": 1,
        "entries of the audit trail": 1,
        "rejected rows of imports": 1,
        "rows of imports": 2,
        "entries of the admin's log": 1,
    }
    assert done.email_hash == erased_hashes(ANN)[0]


def test_what_stays_is_that_it_was_and_a_hash() -> None:
    account = AccountFactory.create()
    everything_of(account)
    done = erase_person(account, ANN, by_name="Bea", reason="asked")
    signup = Signup.objects.get()
    assert (signup.email, signup.email_hash) == (None, done.email_hash)
    assert signup.consent is not None
    assert signup.confirmed_at is not None
    assert (signup.requested_from, signup.confirmed_from, signup.subscriber) == (None, None, None)
    row = Suppression.objects.get()
    assert (row.email, row.email_hash, row.reason) == (None, done.email_hash, Reason.ERASED)
    assert row.former_reason == Reason.MANUAL
    first, act = AuditEvent.objects.order_by("pk")
    assert (first.subject, first.subject_hash) == ("", done.email_hash)
    assert first.reason == "(address) called"
    assert first.detail == {"was": ["(address)"], "n": 1}
    assert (act.verb, act.by_name, act.subject, act.subject_hash, act.reason) == (
        "person.erase", "Bea", "", done.email_hash, "asked",
    )  # fmt: skip
    job = ImportJob.objects.get()
    assert job.preview["rows"] == [["", ""], ["b@x.org", "Ulm"]]
    assert ImportReject.objects.get().cells == []


def test_others_are_left_alone() -> None:
    account, other = AccountFactory.create(), AccountFactory.create()
    everything_of(other)
    everything_of(account, "joann@example.org")
    everything_of(account, "ann@example.org.uk")
    before = everything_stored()
    erase_person(account, ANN, by_name="Bea", reason="asked")
    after = everything_stored()
    assert set(before.splitlines()) <= set(after.splitlines())
    assert not is_suppressed(other, "bob@example.org")
    assert Subscriber.objects.count() == 3


def test_again_there_is_nothing_left() -> None:
    account = AccountFactory.create()
    everything_of(account)
    first = erase_person(account, ANN, by_name="Bea", reason="asked")
    again = erase_person(account, ANN, by_name="Bea", reason="asked")
    assert first.forgotten
    assert again.forgotten == {}
    assert Suppression.objects.filter(email_hash=first.email_hash).count() == 1


def test_somebody_unknown_is_suppressed_all_the_same() -> None:
    account = AccountFactory.create()
    assert erase_person(account, ANN, by_name="Bea", reason="asked").forgotten == {}
    assert is_suppressed(account, ANN)


@pytest.mark.parametrize(("email", "reason"), [(" ", "asked"), ("a\0@x.org", "asked"), (ANN, " ")])
def test_what_makes_no_sense_changes_nothing(email: str, reason: str) -> None:
    account = AccountFactory.create()
    person = everything_of(account)
    with pytest.raises(ValueError):  # noqa: PT011 (the type is the contract)
        erase_person(account, email, by_name="Bea", reason=reason)
    assert Subscriber.objects.filter(pk=person.pk).exists()
    assert not Suppression.objects.filter(reason="erased").exists()


def test_every_form_in_which_the_address_is_stored_is_found() -> None:
    account = AccountFactory.create()
    stored = SubscriberFactory.create(account=account, email="Ann@münchen.example")
    SubscriberFactory.create(account=account, email="ann@xn--mnchen-3ya.example")
    done = erase_person(account, "ann@XN--MNCHEN-3YA.example", by_name="Bea", reason="asked")
    assert done.forgotten["subscribers"] == 2
    assert is_suppressed(account, stored.email)
    assert "nchen" not in everything_stored()


def test_the_list_for_all_accounts_is_another_list() -> None:
    account = AccountFactory.create()
    SuppressionFactory.create(account=None, email=ANN, reason="complaint")
    done = erase_person(account, ANN, by_name="Bea", reason="asked")
    assert done.elsewhere == 1
    assert Suppression.objects.filter(account=None, email=ANN).exists()


def test_files_that_nobody_has_read_yet_are_told_of() -> None:
    account = AccountFactory.create()
    ImportChunkFactory.create(job=ImportJobFactory.create(account=account))
    ImportChunkFactory.create()
    assert erase_person(account, ANN, by_name="Bea", reason="asked").uploads == 1


def test_what_the_apps_above_know_is_forgotten_in_the_same_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = AccountFactory.create()
    person = everything_of(account)
    asked: list[Any] = []

    def forget(*given: Any) -> dict[str, int]:
        asked.append((*given, connection.in_atomic_block))
        return {"sends": 1}

    monkeypatch.setattr(hooks.erase_personal_data, "_filled", forget)
    done = erase_person(account, ANN, by_name="Bea", reason="asked")
    digest = erased_hashes(ANN)[0]
    assert set(asked) == {(account.pk, person.pk, ANN, digest, True)} or set(asked) == {
        (account.pk, person.pk, "Ann@example.org", digest, True)
    }
    assert done.forgotten["sends"] == len(asked)


def test_a_failure_at_the_end_undoes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    account = AccountFactory.create()
    everything_of(account)
    before = sorted(everything_stored().splitlines())

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr("subscribers.rights.acts.record", fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        erase_person(account, ANN, by_name="Bea", reason="asked")
    assert sorted(everything_stored().splitlines()) == before


# --- goes on suppressing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "comes_back"),
    [(None, True), ("unsubscribed", True), ("hard_bounce", True), ("manual", False),
     ("complaint", False)],
)  # fmt: skip
def test_only_a_new_sign_up_lifts_it_and_never_after_a_complaint(
    before: str | None, comes_back: bool
) -> None:
    account = AccountFactory.create()
    if before:
        suppress(account, ANN, before)
    erase_person(account, ANN, by_name="Bea", reason="asked")
    assert lift(account, ANN) is comes_back
    assert is_suppressed(account, ANN) is not comes_back


@pytest.mark.parametrize("reason", ["unsubscribed", "hard_bounce", "manual", "complaint"])
def test_what_is_said_later_is_noted_with_the_hash(reason: str) -> None:
    account = AccountFactory.create()
    erase_person(account, ANN, by_name="Bea", reason="asked")
    row = suppress(account, ANN, reason, evidence=f"{ANN} said so")
    assert (row.email, row.reason, row.former_reason) == (None, Reason.ERASED, reason)
    suppress(account, ANN, "hard_bounce")
    row.refresh_from_db()
    assert row.former_reason == reason
    assert "ann@" not in everything_stored().lower()


def test_a_complaint_before_survives_two_erasures() -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "complaint")
    for _ in range(2):
        erase_person(account, ANN, by_name="Bea", reason="asked")
    assert Suppression.objects.get().former_reason == "complaint"


def test_it_holds_after_the_key_was_rotated() -> None:
    account = AccountFactory.create()
    with override_settings(SENDONCE={"SECRET_KEYS": ("old",)}):
        suppress(account, ANN, "complaint")
        erase_person(account, ANN, by_name="Bea", reason="asked")
    with override_settings(SENDONCE={"SECRET_KEYS": ("new", "old")}):
        assert is_suppressed(account, ANN)
        assert suppress(account, ANN, "manual").reason == "erased"
        assert not lift(account, ANN)
        erase_person(account, ANN, by_name="Bea", reason="asked")
        assert Suppression.objects.get().former_reason == "complaint"


# --- beyond this app -----------------------------------------------------------------------------


def test_open_sends_of_a_running_campaign_go_no_further() -> None:
    campaign = CampaignFactory.create(sending=True)
    segment = campaign.segments.get()
    person = SubscriberFactory.create(account=campaign.account, email=ANN, segments=[segment])
    send = SendFactory.create(campaign=campaign, subscriber=person)
    settled = SendFactory.create(
        campaign=CampaignFactory.create(account=campaign.account, sent=True),
        subscriber=person,
        sent=True,
    )
    erase_person(campaign.account, ANN, by_name="Bea", reason="asked")
    for row, status in ((send, "suppressed"), (settled, "sent")):
        row.refresh_from_db()
        assert (row.status, row.email, row.subscriber) == (status, None, None)
        assert row.email_hash == erased_hashes(ANN)[0]


@pytest.mark.parametrize(
    ("before", "kind", "goes"),
    [
        (None, "confirm", True),
        ("unsubscribed", "confirm", True),
        ("complaint", "confirm", False),
        # It bounced once; its owner asks again, and only the mail can tell.
        ("hard_bounce", "confirm", True),
        ("manual", "confirm", False),
        (None, "receipt", False),
    ],
)
def test_only_the_mail_that_asks_for_a_confirmation_reaches_them(
    before: str | None, kind: str, goes: bool
) -> None:
    account = AccountFactory.create()
    if before:
        suppress(account, ANN, before)
    erase_person(account, ANN, by_name="Bea", reason="asked")
    send = SendFactory.create(
        transactional=True,
        claimed=True,
        account=account,
        subscriber=None,
        email=ANN,
        job_id=f"message:{account.pk}:{kind}:1",
    )
    assert hand_over_rows(send).withheld == ({} if goes else {send.pk: "suppressed"})


def test_what_staff_did_is_found_by_the_hash_afterwards() -> None:
    account = AccountFactory.create()
    record(account, "suppression.release", by_name="Bea", subject=ANN, reason="asked")
    erase_person(account, ANN, by_name="Bea", reason="asked")
    verbs = AuditEvent.objects.filter(subject_hash=erased_hashes(ANN)[0]).values_list("verb")
    assert {verb for (verb,) in verbs} == {"suppression.release", "person.erase"}
    assert AuditEvent.objects.filter(at__gt=timezone.now() - timedelta(minutes=5)).count() == 2
