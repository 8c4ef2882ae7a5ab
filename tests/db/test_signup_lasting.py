"""What a confirmed sign-up does not undo, and what it does: the last word counts, whatever staff
decided lasts, and an erased person comes back by their own act alone."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client, override_settings

from sending.handover import hand_over
from subscribers.consent import suppress_by_hand, unsubscribe
from subscribers.models import Subscriber
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed, suppress
from subscribers.tokens import Kind, make_token
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    SegmentFactory,
    SignupFormFactory,
    SubscriberFactory,
)

from .forgotten import places_of
from .imports import load
from .rows import LEASE, take
from .signups import asked, link_in, mails, sign_up, visitor

ANN = "ann@example.org"

pytestmark = pytest.mark.django_db(transaction=True)


def unsubscribed_by_link(person: Subscriber) -> None:
    link = make_token(Kind.UNSUBSCRIBE, person.pk, None)
    assert visitor().post(f"/u/{link}").status_code == 200


def test_a_sign_up_that_was_asked_for_before_an_unsubscription_does_not_undo_it() -> None:
    person = SubscriberFactory.create(email=ANN)
    form, link = asked(ANN, account=person.account)
    unsubscribe(person, evidence="a link")
    visitor().post(link)
    person.refresh_from_db()
    assert person.status == "unsubscribed"
    assert is_suppressed(person.account, ANN)

    with connection.cursor() as cursor:  # The mailbox's limit is not what this is about.
        cursor.execute("DELETE FROM sendonce_subscribers_signupattempt")
    sign_up(form, ANN)
    assert visitor().post(link_in(mails()[-1])).status_code == 200
    person.refresh_from_db()
    assert person.status == "confirmed", "whoever asks anew comes back"
    assert not is_suppressed(person.account, ANN)


def test_what_staff_decided_outlasts_the_persons_leaving_and_coming_back() -> None:
    person = SubscriberFactory.create(email=ANN)
    suppress_by_hand(person.account, ANN, "manual", by="staff", evidence="a letter")
    unsubscribed_by_link(person)
    _, link = asked(ANN, account=person.account)
    visitor().post(link)
    person.refresh_from_db()
    assert person.status == "unsubscribed"
    assert is_suppressed(person.account, ANN)


@pytest.mark.parametrize("reason", ["unsubscribed", "hard_bounce"])
def test_the_question_reaches_an_erased_person_whose_sign_up_would_be_heard(reason: str) -> None:
    account = AccountFactory.create()
    suppress(account, ANN, reason)
    erase_person(account, ANN, reason="asked")
    _, link = asked(ANN, account=account)
    claimed = take([], 2)
    assert [one.email for one in hand_over(claimed, lease=LEASE).go] == [ANN]
    assert visitor().post(link).status_code == 200
    assert not is_suppressed(account, ANN)


@pytest.mark.parametrize("reason", ["complaint", "manual"])
def test_no_question_reaches_an_erased_person_whose_sign_up_would_not(reason: str) -> None:
    account = AccountFactory.create()
    suppress(account, ANN, reason)
    erase_person(account, ANN, reason="asked")
    _, link = asked(ANN, account=account)
    claimed = take([], 2)
    handed = hand_over(claimed, lease=LEASE)
    assert (handed.go, set(handed.withheld.values())) == ([], {"suppressed"})
    visitor().post(link)
    assert is_suppressed(account, ANN)
    assert not Subscriber.objects.exists()


def test_a_rotated_key_does_not_open_a_mailbox_to_another_mail() -> None:
    form = SignupFormFactory.create()
    with override_settings(SENDONCE={"SECRET_KEYS": ["k1"]}):
        sign_up(form, "victim@example.org")
    with override_settings(SENDONCE={"SECRET_KEYS": ["k2", "k1"]}):
        sign_up(form, "victim@example.org")
        sign_up(form, "another@example.org")
    assert [mail.email for mail in mails()] == ["victim@example.org", "another@example.org"]


# --- an erased person ----------------------------------------------------------------------------


def test_an_import_does_not_take_a_sign_up_that_waits_for_the_persons_word() -> None:
    segment = SegmentFactory.create()
    erase_person(segment.account, ANN, reason="asked")
    _, link = asked(ANN, account=segment.account)
    assert load(f"email\n{ANN}\n", segment, confirmed=True).rejected == 1
    for method in ("get", "head", "options"):
        getattr(visitor(), method)(link)
    assert not Subscriber.objects.exists()
    visitor().post(link)
    assert Subscriber.objects.get().status == "confirmed"


def test_no_spelling_in_a_file_brings_an_erased_person_back() -> None:
    segment = SegmentFactory.create()
    AttributeDefinitionFactory.create(account=segment.account, key="city")
    erase_person(segment.account, ANN, reason="asked")
    spellings = [ANN, "ANN@EXAMPLE.org", "a\u200bnn@example.org", f"mailto:{ANN}", f"<{ANN}>"]
    load("email\n" + "\n".join(spellings) + "\n", segment, confirmed=True)
    assert not Subscriber.objects.exists()
    assert places_of(ANN) == []


@pytest.mark.parametrize(
    "typed", [ANN, " ANN@Example.ORG ", f"mailto:{ANN}", "a\u200bnn@example.org"]
)
def test_no_spelling_by_hand_brings_an_erased_person_back(
    superuser_client: Client, typed: str
) -> None:
    account = AccountFactory.create()
    erase_person(account, ANN, reason="asked")
    answer = superuser_client.post(
        "/admin/sendonce_subscribers/subscriber/add/",
        {
            "account": account.pk,
            "email": typed,
            "status": "confirmed",
            "consent_source": "a form on paper",
            "attributes": "{}",
            "memberships-TOTAL_FORMS": 0,
            "memberships-INITIAL_FORMS": 0,
        },
    )
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == ["email"]
    assert not Subscriber.objects.exists()
