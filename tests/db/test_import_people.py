"""What an import takes in: new people, known people, and what becomes of their data."""

from __future__ import annotations

import pytest

from subscribers.models import Membership, Segment, Subscriber, Suppression
from subscribers.suppression import is_suppressed
from tests.factories import SubscriberFactory

from . import imports
from .imports import Status, counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment


def test_new_people_wait_for_their_confirmation(segment: Segment) -> None:
    report = load(
        "\ufeffE-Mail;First Name;Locale;Time zone\r\n"
        " Ann@EXAMPLE.org ;Zoë;fr;Europe/Paris\r\n"
        "bob@münchen.example;=1+1;;\r\n",
        segment,
    )
    assert counts(report) == {"imported": 2, "pending": 2}
    ann = Subscriber.objects.get(email_lower="ann@example.org")
    assert (ann.email, ann.status, ann.confirmed_at) == ("Ann@example.org", Status.PENDING, None)
    assert (ann.attributes, ann.locale, ann.timezone) == (
        {"first_name": "Zoë"},
        "fr",
        "Europe/Paris",
    )
    bob = Subscriber.objects.get(email="bob@xn--mnchen-3ya.example")
    assert bob.attributes == {"first_name": "=1+1"}
    assert members(segment) == {ann.email, bob.email}
    for person in (ann, bob):
        person.full_clean()


def test_confirmed_is_what_the_sender_vouches_for(segment: Segment) -> None:
    report = load(
        "email,status\na@example.org,\nb@example.org,confirmed\nc@example.org,pending\n"
        "d@example.org,unsubscribed\n",
        segment,
        confirmed=True,
        consent_source="fair 2026",
    )
    assert counts(report) == {"imported": 4, "pending": 1, "suppressed": 1}
    found = {s.email[0]: s for s in Subscriber.objects.all()}
    assert {k: s.status for k, s in found.items()} == {
        "a": Status.CONFIRMED,
        "b": Status.CONFIRMED,
        "c": Status.PENDING,
        "d": Status.UNSUBSCRIBED,
    }
    assert found["a"].confirmed_at is not None
    assert found["a"].consent_source == "fair 2026"
    assert found["c"].confirmed_at is None
    assert found["d"].unsubscribed_at is not None
    assert members(segment) == {"a@example.org", "b@example.org", "c@example.org"}
    assert is_suppressed(segment.account, "d@example.org")


def test_a_file_alone_confirms_nobody(segment: Segment) -> None:
    assert counts(load("email,status\na@example.org,confirmed\n", segment)) == {
        "imported": 1,
        "pending": 1,
    }


def test_the_same_file_again_changes_nothing(segment: Segment) -> None:
    text = "email,city,locale\nann@example.org,Paris,fr\nbob@example.org,,\n"
    load(text, segment, confirmed=True)
    before = list(Subscriber.objects.order_by("id").values())
    assert counts(load(text, segment, confirmed=True)) == {"unchanged": 2}
    assert list(Subscriber.objects.order_by("id").values()) == before
    assert Membership.objects.count() == 2


def test_cells_that_are_not_empty_win_and_empty_ones_change_nothing(segment: Segment) -> None:
    SubscriberFactory.create(
        account=segment.account,
        email="Ann@example.org",
        attributes={"city": "Paris", "plan": "gold", "n": 3},
        locale="fr",
        timezone="Europe/Paris",
        consent_source="sign-up",
        segments=[segment],
    )
    report = load(
        "email,city,plan,pet,locale,timezone,consent source\n"
        "ANN@example.org,Lyon,,cat,de,,somewhere\n",
        segment,
    )
    assert counts(report) == {"updated": 1}
    ann = Subscriber.objects.get()
    assert ann.email == "Ann@example.org"
    assert ann.attributes == {"city": "Lyon", "plan": "gold", "n": 3, "pet": "cat"}
    assert (ann.locale, ann.timezone, ann.consent_source) == ("de", "Europe/Paris", "sign-up")
    assert ann.status == Status.CONFIRMED


def test_what_is_known_can_be_kept(segment: Segment) -> None:
    account = segment.account
    SubscriberFactory.create(account=account, email="a@example.org", attributes={"city": "Paris"})
    SubscriberFactory.create(account=account, email="b@example.org", pending=True)
    SubscriberFactory.create(account=account, email="c@example.org")
    report = load(
        "email,city,status\na@example.org,Lyon,\nb@example.org,Lyon,\n"
        "c@example.org,,unsubscribed\nd@example.org,Lyon,\n",
        segment,
        confirmed=True,
        existing="keep",
    )
    assert counts(report) == {"imported": 1, "updated": 3, "suppressed": 1}
    found = {s.email[0]: s for s in Subscriber.objects.all()}
    assert found["a"].attributes == {"city": "Paris"}
    assert found["b"].status == Status.PENDING
    assert found["c"].status == Status.UNSUBSCRIBED
    assert found["d"].attributes == {"city": "Lyon"}
    assert members(segment) == {"a@example.org", "b@example.org", "d@example.org"}


def test_confirming_stamps_the_consent_and_keeps_what_was_confirmed_before(
    segment: Segment,
) -> None:
    account = segment.account
    SubscriberFactory.create(account=account, email="new@example.org", pending=True)
    old = SubscriberFactory.create(account=account, email="old@example.org")
    report = load("email\nnew@example.org\nold@example.org\n", segment, confirmed=True)
    assert counts(report) == {"updated": 2}
    new = Subscriber.objects.get(email="new@example.org")
    assert (new.status, new.consent_source) == (Status.CONFIRMED, "import")
    assert new.confirmed_at is not None
    was, now = old.confirmed_at, Subscriber.objects.get(pk=old.pk).confirmed_at
    assert was == now
    # A confirmed person is not taken back to pending by a file.
    load("email,status\nnew@example.org,pending\n", segment)
    new.refresh_from_db()
    assert new.status == Status.CONFIRMED


def test_another_account_s_people_are_not_touched(segment: Segment) -> None:
    other = SubscriberFactory.create(email="ann@example.org", attributes={"city": "Paris"})
    load("email,city\nann@example.org,Lyon\n", segment)
    other.refresh_from_db()
    assert other.attributes == {"city": "Paris"}
    assert Subscriber.objects.count() == 2


def test_of_duplicates_the_last_counts_and_the_most_cautious_word_holds(segment: Segment) -> None:
    report = load(
        "email,city,status,suppressed\n"
        "Ann@example.org,Paris,,\nbob@example.org,Rome,unsubscribed,complaint\n"
        "ANN@example.org,Lyon,pending,\nann@EXAMPLE.ORG,Nice,,\nBob@example.org,Turin,,manual\n",
        segment,
        confirmed=True,
    )
    assert counts(report) == {"imported": 2, "duplicates": 3, "pending": 1, "suppressed": 1}
    found = {s.email_lower: s for s in Subscriber.objects.all()}
    assert found["ann@example.org"].attributes == {"city": "Nice"}
    assert found["ann@example.org"].status == Status.PENDING
    assert found["bob@example.org"].attributes == {"city": "Turin"}
    assert found["bob@example.org"].status == Status.UNSUBSCRIBED
    assert Suppression.objects.get().reason == Suppression.Reason.COMPLAINT
