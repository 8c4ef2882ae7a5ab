"""The link of a confirmation mail: looking changes nothing, the button does what it says, once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from subscribers.consent import leave, unsubscribe
from subscribers.models import (
    AuditEvent,
    MembershipChange,
    Signup,
    SignupForm,
    Subscriber,
    Suppression,
)
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import lift
from subscribers.suppression import is_suppressed, suppress
from subscribers.tokens import Kind, make_token
from tests.db.signups import asked, link_in, mails, sign_up, visitor
from tests.factories import (
    AttributeDefinitionFactory,
    MembershipFactory,
    SegmentFactory,
    SignupFactory,
    SignupFormFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

Status = Subscriber.Status


def words(answer: Any) -> str:
    return str(answer.content.decode())


def age(days: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {Signup._meta.db_table} SET mailed_at = mailed_at - %s * interval '1 day'",
            [days],
        )


def everything() -> list[Any]:
    """All that a confirmation can change."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Signup, Subscriber, Suppression, MembershipChange, AuditEvent)
    ]


# --- looking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("agent", ["Mozilla/5.0", "GoogleImageProxy", "Barracuda Sentinel"])
def test_looking_changes_nothing(method: str, agent: str) -> None:
    _, link = asked()
    before = everything()
    for path in (link, link + "/", link + "?confirm=1"):
        answer = getattr(visitor(), method)(path, headers={"user-agent": agent})
        assert answer.status_code == 200
        assert not answer.cookies
    assert everything() == before


def test_the_page_says_what_will_happen() -> None:
    form, link = asked("ann.lee@example.org", consent_text="Send me <it>.", segments=[])
    for name, public in (("Letter & more", True), ("internal", False)):
        form.segments.add(SegmentFactory.create(account=form.account, name=name, public=public))
    answer = visitor().get(link)
    page = words(answer)
    assert "a•••@example.org" in page
    assert "ann.lee" not in page
    assert "Letter &amp; more" in page
    assert "internal" not in page
    assert "Send me &lt;it&gt;." in page
    assert '<form method="post">' in page
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


# --- confirming ----------------------------------------------------------------------------------


def test_a_stranger_joins() -> None:
    form = SignupFormFactory.create(fields=["first_name", "age"])
    for key, kind in (("first_name", "text"), ("age", "number")):
        AttributeDefinitionFactory.create(account=form.account, key=key, kind=kind)
    sign_up(form, "ann@example.org", locale="fr", **{"attribute-first_name": "Ann"})
    web = visitor(headers={"user-agent": "Browser/9"})
    answer = web.post(link_in(mails()[0]))
    assert answer.status_code == 200
    person = Subscriber.objects.get()
    assert (person.email, person.status, person.locale) == ("ann@example.org", "confirmed", "fr")
    assert person.attributes == {"first_name": "Ann"}
    assert person.confirmed_at is not None
    assert list(person.segments.all()) == list(form.segments.all())
    signup = Signup.objects.get()
    assert f"sign-up {signup.pk}" in person.consent_source
    assert (signup.subscriber, signup.confirmed_agent) == (person, "Browser/9")
    assert signup.confirmed_from == web.defaults["REMOTE_ADDR"]
    assert signup.confirmed_at is not None
    assert signup.requested_from != signup.confirmed_from


def test_repeating_changes_nothing_more() -> None:
    _, link = asked()
    first = visitor().post(link)
    before = everything()
    second = visitor().post(link)
    assert (first.status_code, second.status_code) == (200, 200)
    assert "fr" not in second.headers["Content-Language"]
    assert first.content == second.content == visitor().get(link).content
    assert everything() == before


@pytest.mark.parametrize("status", ["pending", "confirmed", "unsubscribed"])
def test_whoever_was_known_is_confirmed_and_keeps_what_was_known(status: str) -> None:
    form = SignupFormFactory.create(fields=["first_name"])
    AttributeDefinitionFactory.create(account=form.account, key="first_name")
    before = timezone.now() - timedelta(days=100)
    person = SubscriberFactory.create(
        account=form.account,
        email="Ann@example.org",
        status=status,
        confirmed_at=before if status != "pending" else None,
        consent_source="a fair",
        attributes={"first_name": "A.", "city": "Oslo"},
        locale="no",
        paused_until=timezone.now() + timedelta(days=30),
    )
    sign_up(form, "ann@example.org", locale="fr", **{"attribute-first_name": "Ann"})
    person.refresh_from_db()
    assert (person.status, person.attributes["first_name"], person.locale) == (status, "A.", "no")
    visitor().post(link_in(mails()[0]))
    person.refresh_from_db()
    assert person.status == Status.CONFIRMED
    assert person.attributes == {"first_name": "Ann", "city": "Oslo"}
    assert (person.locale, person.email) == ("fr", "Ann@example.org")
    assert Subscriber.objects.count() == 1
    assert list(person.segments.all()) == list(form.segments.all())
    again = status != "confirmed"
    assert (person.consent_source == "a fair") is not again
    assert (person.confirmed_at == before) is not again
    assert (person.paused_until is None) is again


def test_who_has_left_a_segment_is_in_it_again() -> None:
    form = SignupFormFactory.create()
    segment = form.segments.get()
    membership = MembershipFactory.create(
        segment=segment, subscriber__account=form.account, subscriber__email="ann@example.org"
    )
    leave([membership], source="test")
    sign_up(form, "ann@example.org")
    membership.refresh_from_db()
    assert membership.left_at is not None
    visitor().post(link_in(mails()[0]))
    membership.refresh_from_db()
    assert membership.left_at is None
    changes = list(MembershipChange.objects.order_by("pk").values_list("kind", flat=True))
    assert changes == ["left", "joined"]
    assert "Double opt-in" in MembershipChange.objects.filter(kind="joined").get().source


def test_an_unsubscription_is_lifted_and_the_next_one_holds_again() -> None:
    form = SignupFormFactory.create()
    person = SubscriberFactory.create(account=form.account, email="ann@example.org")
    unsubscribe(person, evidence="test")
    sign_up(form, "Ann@example.org")
    assert is_suppressed(form.account, "ann@example.org")
    link = link_in(mails()[0])
    visitor().post(link)
    assert not is_suppressed(form.account, "ann@example.org")
    event = AuditEvent.objects.get(verb="suppression.lift")
    assert event.detail == {"suppressed_for": ["unsubscribed"]}
    assert "ann" not in f"{event.subject}{event.reason}{event.detail}".lower()
    person.refresh_from_db()
    unsubscribe(person, evidence="test")
    # The old link is used up: it does not bring them back.
    for method in ("get", "post"):
        answer = getattr(visitor(), method)(link)
        assert answer.status_code == 410
        assert "no longer valid" in words(answer)
    person.refresh_from_db()
    assert person.status == Status.UNSUBSCRIBED
    assert is_suppressed(form.account, "ann@example.org")


def test_an_erasure_is_lifted_under_every_key() -> None:
    with override_settings(SENDONCE={"SECRET_KEYS": ["old"]}):
        form = SignupFormFactory.create()
        SuppressionFactory.create(account=form.account, erased_email="ann@example.org")
    with override_settings(SENDONCE={"SECRET_KEYS": ["new", "old"]}):
        sign_up(form, "ann@example.org")
        assert visitor().post(link_in(mails()[0])).status_code == 200
        assert not is_suppressed(form.account, "ann@example.org")
    assert Subscriber.objects.get().status == Status.CONFIRMED


@pytest.mark.parametrize(
    ("reason", "everywhere"),
    [
        ("complaint", False),
        ("manual", False),
        ("hard_bounce", False),
        ("complaint", True),
        ("manual", True),
        ("unsubscribed", True),
    ],
)
def test_what_is_not_theirs_to_lift_holds(reason: str, everywhere: bool) -> None:
    form, link = asked()
    suppress(None if everywhere else form.account, "ann@example.org", reason)
    before = everything()
    answer = visitor().post(link)
    assert answer.status_code == 200
    assert "You are not signed up" in words(answer)
    assert form.account.from_email in words(answer)
    assert reason not in words(answer)
    assert everything() == before
    # Released meanwhile: the same link still serves.
    Suppression.objects.all().delete()
    assert "You are signed up" in words(visitor().post(link))


def test_one_account_s_confirmation_is_no_other_s() -> None:
    form, link = asked()
    other = SuppressionFactory.create(email="ann@example.org", reason="unsubscribed")
    visitor().post(link)
    assert Suppression.objects.get() == other
    assert Subscriber.objects.get().account == form.account


# --- too late ------------------------------------------------------------------------------------


def test_a_link_confirms_for_fourteen_days_after_its_last_mail() -> None:
    form, link = asked()
    age(13.9)
    assert words(visitor().get(link)).count("<form") == 1
    age(0.2)
    before = everything()
    for method in ("get", "post"):
        answer = getattr(visitor(), method)(link)
        assert answer.status_code == 410
        assert f'href="/s/{form.account.slug}/{form.slug}"' in words(answer)
    assert everything() == before
    with override_settings(SENDONCE={"CONFIRM_DAYS": 30}):
        assert visitor().post(link).status_code == 200


def test_links_that_lead_nowhere() -> None:
    form, link = asked()
    gone = make_token(Kind.CONFIRM, 2**41, None)
    forged = link[:-1] + ("A" if link[-1] != "A" else "B")
    for path in (f"/u/{gone}", forged, f"/u/{make_token(Kind.CONFIRM, 0, 5)}"):
        for method in ("get", "post"):
            assert getattr(visitor(), method)(path).status_code == 410
    SignupForm.objects.all().delete()
    answer = visitor().post(link)
    assert answer.status_code == 410
    assert "use the form where you found it" in words(answer)
    assert not Subscriber.objects.exists()
    assert form.account.name in words(answer)


def test_a_form_that_is_closed_meanwhile_still_confirms() -> None:
    _, link = asked()
    SignupForm.objects.update(is_open=False)
    assert visitor().post(link).status_code == 200
    assert Subscriber.objects.exists()


def test_an_erased_person_s_link_is_dead() -> None:
    form, link = asked()
    visitor().post(link)
    erase_person(form.account, "ann@example.org", reason="test", by_name="test")
    for method in ("get", "post"):
        answer = getattr(visitor(), method)(link)
        assert answer.status_code == 410
        assert "ann" not in words(answer).lower().replace("cannot", "")
    assert not Subscriber.objects.exists()
    assert is_suppressed(form.account, "ann@example.org")


def test_an_erased_person_comes_back_by_a_new_sign_up_alone() -> None:
    form, link = asked()
    visitor().post(link)
    erase_person(form.account, "ann@example.org", reason="test", by_name="test")
    SignupFactory._meta.model.objects.exclude(email=None).delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sendonce_subscribers_signupattempt")
    sign_up(form, "ann@example.org")
    assert visitor().post(link_in(mails()[-1])).status_code == 200
    assert not is_suppressed(form.account, "ann@example.org")
    assert Subscriber.objects.get().status == Status.CONFIRMED


# --- afterwards ----------------------------------------------------------------------------------


def test_where_people_go_once_confirmed() -> None:
    _, link = asked(welcome_url="https://www.example.org/welcome")
    page = visitor().get(link)
    assert "form-action 'self' https://www.example.org;" in page["Content-Security-Policy"]
    for _ in range(2):
        answer = visitor().post(link)
        assert answer.status_code == 303
        assert answer.headers["Location"] == "https://www.example.org/welcome"


def test_the_page_is_in_the_language_of_the_form() -> None:
    form = SignupFormFactory.create()
    sign_up(form, "ann@example.org", locale="es")
    answer = visitor(headers={"accept-language": "fr"}).get(link_in(mails()[0]))
    assert answer.headers["Content-Language"] == "es"


def test_a_person_without_plain_attributes_is_no_stumbling_block() -> None:
    form = SignupFormFactory.create()
    SubscriberFactory.create(account=form.account, email="ann@example.org", attributes=["x"])
    sign_up(form, "ann@example.org")
    assert visitor().post(link_in(mails()[0])).status_code == 200
    assert Subscriber.objects.get().attributes == {}


def test_a_segment_of_another_account_is_not_joined() -> None:
    form, link = asked()
    form.segments.add(SegmentFactory.create())
    assert visitor().post(link).status_code == 200
    assert Subscriber.objects.get().segments.count() == 1


def test_lifting_is_all_or_nothing() -> None:
    form = SignupFormFactory.create()
    suppress(form.account, "ann@example.org", "unsubscribed")
    suppress(None, "ann@example.org", "manual")
    assert not lift(form.account, "ann@example.org")
    assert Suppression.objects.count() == 2
