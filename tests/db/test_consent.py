"""Consent by verb: confirming, leaving a segment, and what staff suppress by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from subscribers import hooks
from subscribers.consent import confirm, leave, suppress_by_hand, unsubscribe
from subscribers.models import Membership, Subscriber, Suppression
from tests.factories import (
    AccountFactory,
    MembershipFactory,
    SegmentFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .admin_pages import seen
from .racing import Race

Callbacks = Callable[..., AbstractContextManager[list[Callable[[], object]]]]


@pytest.fixture
def withdrawn(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What ``hooks.withdraw_leavers`` was called with."""
    calls: list[list[int]] = []

    def note(subscriber_ids: list[int]) -> int:
        calls.append(subscriber_ids)
        return 0

    monkeypatch.setattr(hooks.withdraw_leavers, "_filled", note)
    return calls


# --- confirm ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_pending_person_is_confirmed_once() -> None:
    person = SubscriberFactory.create(pending=True, consent_source="")
    assert confirm(person, source="a form on paper")
    person.refresh_from_db()
    assert (person.status, person.consent_source) == ("confirmed", "a form on paper")
    first = person.confirmed_at
    assert first is not None
    assert abs(first - timezone.now()) < timedelta(seconds=60)
    assert not confirm(person, source="again")
    person.refresh_from_db()
    assert (person.confirmed_at, person.consent_source) == (first, "a form on paper")


@pytest.mark.django_db
def test_confirming_does_not_lift_an_unsubscription() -> None:
    person = SubscriberFactory.create(pending=True)
    loaded_before = Subscriber.objects.get(pk=person.pk)
    unsubscribe(person, evidence="a link")
    assert not confirm(loaded_before, source="a form on paper")
    person.refresh_from_db()
    assert (person.status, person.confirmed_at) == ("unsubscribed", None)


@pytest.mark.django_db
@pytest.mark.parametrize("source", ["", "  "])
def test_a_consent_has_a_source(source: str) -> None:
    person = SubscriberFactory.create(pending=True)
    with pytest.raises(ValueError, match="where the consent came from"):
        confirm(person, source=source)
    person.refresh_from_db()
    assert person.status == "pending"


@pytest.mark.django_db
def test_a_new_person_of_the_admin_is_confirmed_by_the_verb() -> None:
    account = AccountFactory.create()
    staff = Client()
    staff.force_login(StaffFactory.create(superuser=True))
    form = {
        "account": account.pk,
        "email": "new@example.org",
        "status": "confirmed",
        "consent_source": "on paper",
        "attributes": "{}",
        "locale": "",
        "timezone": "",
    }
    answer = staff.post(reverse("admin:sendonce_subscribers_subscriber_add"), form)
    assert answer.status_code == 302
    person = Subscriber.objects.get()
    assert (person.status, person.consent_source) == ("confirmed", "on paper")
    assert person.confirmed_at is not None


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ["pending", "confirmed"])
def test_a_form_that_was_loaded_before_does_not_take_an_unsubscription_back(
    typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = SubscriberFactory.create(pending=True)
    staff = Client()
    staff.force_login(StaffFactory.create(superuser=True))
    save = Subscriber.save

    def late(self: Subscriber, **options: object) -> None:
        unsubscribe(person, evidence="a link")
        save(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Subscriber, "save", late)
    form = {
        "email": person.email,
        "status": typed,
        "consent_source": "on paper",
        "attributes": "{}",
        "locale": "de",
        "timezone": "",
        "memberships-TOTAL_FORMS": 0,
        "memberships-INITIAL_FORMS": 0,
        "signups-TOTAL_FORMS": 0,
        "signups-INITIAL_FORMS": 0,
    }
    url = reverse("admin:sendonce_subscribers_subscriber_change", args=[person.pk])
    answer = staff.post(url, {**seen(staff, person), **form}, follow=True)
    assert answer.status_code == 200
    assert ("Not confirmed" in answer.content.decode()) is (typed == "confirmed")
    person.refresh_from_db()
    assert (person.status, person.locale) == ("unsubscribed", "de")
    assert person.unsubscribed_at is not None


# --- leave -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_leaving_is_recorded_and_withdraws_once(
    withdrawn: list[list[int]], django_capture_on_commit_callbacks: Callbacks
) -> None:
    segment = SegmentFactory.create()
    here = [MembershipFactory.create(segment=segment) for _ in range(3)]
    gone = MembershipFactory.create(segment=segment, left=True)
    stays = MembershipFactory.create(segment=segment)
    with django_capture_on_commit_callbacks(execute=True):
        left = leave([*here, gone])
        assert withdrawn == [], "not before it has committed"
    assert [m.pk for m in left] == [m.pk for m in here]
    assert withdrawn == [sorted(m.subscriber_id for m in here)]
    ended = Membership.objects.filter(left_at__isnull=False)
    assert {m.pk for m in ended} == {m.pk for m in (*here, gone)}
    assert Membership.objects.get(pk=gone.pk).left_at == gone.left_at, "the first end stays"
    assert Membership.objects.get(pk=stays.pk).left_at is None


@pytest.mark.django_db
def test_leaving_again_changes_nothing(
    withdrawn: list[list[int]], django_capture_on_commit_callbacks: Callbacks
) -> None:
    membership = MembershipFactory.create()
    leave([membership])
    first = Membership.objects.get().left_at
    with django_capture_on_commit_callbacks(execute=True):
        assert leave([membership]) == []
        assert leave([]) == []
    assert withdrawn == []
    assert Membership.objects.get().left_at == first


@pytest.mark.django_db(transaction=True)
def test_of_two_who_end_it_at_once_one_does() -> None:
    membership = MembershipFactory.create()
    with Race() as race:
        with transaction.atomic():
            mine = leave([membership])
            theirs = race.start(lambda: leave([membership]))
            theirs.wait_until_blocked()
        assert [m.pk for m in mine] == [membership.pk]
        assert theirs.result() == []


@pytest.mark.django_db(transaction=True)
def test_who_did_not_leave_in_the_end_is_not_withdrawn(withdrawn: list[list[int]]) -> None:
    membership = MembershipFactory.create()

    def break_off() -> None:
        with transaction.atomic():
            leave([membership])
            raise LookupError

    with pytest.raises(LookupError):
        break_off()
    assert withdrawn == []
    assert Membership.objects.get().left_at is None


# --- suppress by hand ------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("evidence", "kept"),
    [("", "Added by ann."), (" asked on the phone\n", "asked on the phone\nAdded by ann.")],
)
def test_the_evidence_names_who_did_it(evidence: str, kept: str) -> None:
    account = AccountFactory.create()
    row = suppress_by_hand(account, "a@example.org", "manual", by="ann", evidence=evidence)
    assert (row.account, row.reason, row.evidence) == (account, "manual", kept)


@pytest.mark.django_db
def test_by_hand_too_the_stronger_reason_stays() -> None:
    before = SuppressionFactory.create(reason="complaint", email="a@example.org")
    row = suppress_by_hand(before.account, "a@example.org", "manual", by="ann")
    assert (row.pk, row.reason) == (before.pk, Suppression.Reason.COMPLAINT)
