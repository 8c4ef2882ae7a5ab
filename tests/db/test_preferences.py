"""The preferences page: leaving and coming back, a break, and what it does not give away."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from subscribers.consent import leave, pause, rejoin, resume, unsubscribe
from subscribers.leaving.preferences import months_later
from subscribers.models import Membership, MembershipChange, Segment, Subscriber, Suppression
from subscribers.suppression import is_suppressed
from subscribers.tokens import Kind, make_token
from tests.factories import MembershipFactory, SegmentFactory, SubscriberFactory

from .racing import Race
from .rows import campaign_to, row, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def web() -> Client:
    return Client(enforce_csrf_checks=True, headers={"user-agent": "Browser/1"})


@pytest.fixture
def person() -> Subscriber:
    news = SegmentFactory.create(name="News", slug="news", description="Once a month.")
    offers = SegmentFactory.create(account=news.account, name="Offers", slug="offers")
    hidden = SegmentFactory.create(account=news.account, name="Insiders", public=False)
    SegmentFactory.create(account=news.account, name="Strangers")
    return SubscriberFactory.create(
        account=news.account, email="ann.lee@example.org", segments=[news, offers, hidden]
    )


def url(person: Subscriber) -> str:
    return f"/u/{make_token(Kind.PREFERENCES, person.pk, 9)}"


def words(answer: Any) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def boxes(answer: Any) -> dict[str, bool]:
    """The segments on the page, and whether each is checked."""
    found = re.findall(
        r'<input type="checkbox" id="s(\d+)" name="in" value="\1"( checked)?[^>]*> '
        r'<label for="s\1"><bdi>([^<]*)</bdi></label>',
        words(answer),
    )
    return {name: bool(checked) for _, checked, name in found}


def segment(name: str) -> Segment:
    return Segment.objects.get(name=name)


def present(person: Subscriber) -> set[str]:
    inside = Membership.objects.filter(subscriber=person, left_at__isnull=True)
    return set(inside.values_list("segment__name", flat=True))


def save(web: Client, person: Subscriber, *, was: list[str], now: list[str]) -> Any:
    return web.post(
        url(person),
        {
            "action": "segments",
            "was": [segment(name).pk for name in was],
            "in": [segment(name).pk for name in now],
        },
    )


# --- what it shows ---------------------------------------------------------------------------


def test_it_shows_what_concerns_the_person_and_no_more(web: Client, person: Subscriber) -> None:
    answer = web.get(url(person))
    assert answer.status_code == 200
    assert boxes(answer) == {"News": True, "Offers": True}
    assert "Once a month." in words(answer)
    assert "a•••@example.org" in words(answer)
    for secret in ("ann.lee", "Insiders", "Strangers"):
        assert secret not in words(answer)
    assert not answer.cookies
    assert len(answer.content) < 8_000


@pytest.mark.parametrize("method", ["get", "head"])
def test_looking_changes_nothing(web: Client, person: Subscriber, method: str) -> None:
    for query in ("", "?action=leave", "?action=segments&was=1", "?action=pause&months=6"):
        assert getattr(web, method)(url(person) + query).status_code == 200
    person.refresh_from_db()
    assert (person.status, person.paused_until) == ("confirmed", None)
    assert present(person) == {"News", "Offers", "Insiders"}


@pytest.mark.parametrize("action", [None, "", "everything", "pause", "address "])
def test_an_act_that_is_none_changes_nothing(
    web: Client, person: Subscriber, action: str | None
) -> None:
    data = {"months": "2", "email": "x@example.org"} | (
        {} if action is None else {"action": action}
    )
    assert web.post(url(person), data).status_code == 200
    person.refresh_from_db()
    assert (person.status, person.paused_until) == ("confirmed", None)


def test_who_is_gone_or_left_is_told_so(web: Client, person: Subscriber) -> None:
    unsubscribe(person, evidence="x")
    for action in (None, "resume", "segments", "address"):
        answer = web.post(url(person), {"action": action}) if action else web.get(url(person))
        assert "You are unsubscribed" in words(answer)
        assert "<form" not in words(answer)
    link = url(person)
    person.delete()
    for answer in (web.get(link), web.post(link, {"action": "leave"})):
        assert answer.status_code == 200
        assert "not on the list" in words(answer)


def test_who_has_not_confirmed_can_leave_and_nothing_else(web: Client, person: Subscriber) -> None:
    Subscriber.objects.update(status="pending")
    save(web, person, was=["News"], now=[])
    answer = web.get(url(person))
    assert "Take a break" not in words(answer)
    assert "New e-mail address" not in words(answer)
    save(web, person, was=[], now=["News"])
    assert present(person) == {"Offers", "Insiders"}
    assert web.post(url(person), {"action": "address", "email": "b@example.org"}).status_code == 200
    web.post(url(person), {"action": "leave"})
    person.refresh_from_db()
    assert person.status == "unsubscribed"


# --- segments --------------------------------------------------------------------------------


def test_leaving_a_segment_and_coming_back(web: Client, person: Subscriber) -> None:
    answer = save(web, person, was=["News", "Offers"], now=["Offers"])
    assert "Saved." in words(answer)
    assert boxes(answer) == {"News": False, "Offers": True}
    assert present(person) == {"Offers", "Insiders"}
    first = Membership.objects.get(segment=segment("News")).joined_at
    assert boxes(save(web, person, was=["Offers"], now=["Offers", "News"]))["News"]
    assert present(person) == {"News", "Offers", "Insiders"}
    assert Membership.objects.get(segment=segment("News")).joined_at == first
    changes = MembershipChange.objects.order_by("pk").values_list("kind", "source")
    source = "The preferences page, by Browser/1"
    assert list(changes) == [("left", source), ("joined", source)]


def test_who_is_in_nothing_any_more_is_told_so(web: Client, person: Subscriber) -> None:
    answer = save(web, person, was=["News", "Offers"], now=[])
    assert "Saved. A message" in words(answer)  # there is another that the page does not show
    leave(Membership.objects.filter(subscriber=person, left_at=None), source="test")
    assert "you get no mailings now" in words(save(web, person, was=[], now=[]))
    assert "Saved. A message" in words(save(web, person, was=[], now=["News"]))


def test_only_what_was_changed_on_the_page_is_changed(web: Client, person: Subscriber) -> None:
    """A page that was opened before does not undo what came after."""
    save(web, person, was=["News", "Offers"], now=["Offers"])
    save(web, person, was=["News", "Offers"], now=["News"])
    assert present(person) == {"Insiders"}
    later = SegmentFactory.create(account=person.account, name="Later")
    MembershipFactory.create(segment=later, subscriber=person)
    save(web, person, was=[], now=[])
    assert "Later" in present(person)


def test_what_they_were_not_in_can_be_joined_by_nobody(web: Client, person: Subscriber) -> None:
    foreign = SegmentFactory.create(name="Foreign")
    save(web, person, was=[], now=["Strangers", "Foreign"])
    save(web, person, was=["Insiders"], now=[])
    assert present(person) == {"News", "Offers", "Insiders"}
    assert not Membership.objects.filter(segment=foreign).exists()
    web.post(url(person), {"action": "segments", "was": ["x", "²", "9" * 5000, "-1"], "in": ["\0"]})
    assert present(person) == {"News", "Offers", "Insiders"}


def test_what_staff_ended_stays_ended(web: Client, person: Subscriber) -> None:
    leave(person.memberships.filter(segment__name="News"), source="by ann in the admin")
    assert boxes(web.get(url(person))) == {"Offers": True}
    save(web, person, was=[], now=["News"])
    assert "News" not in present(person)


@pytest.mark.django_db(transaction=True)
def test_leaving_here_withdraws_what_is_queued(web: Client) -> None:
    campaign = campaign_to(0)
    reached, both = row(campaign), row(campaign)
    (only,) = campaign.segments.all()
    other = SegmentFactory.create(account=campaign.account)
    campaign.segments.add(other)
    assert both.subscriber is not None
    assert reached.subscriber is not None
    MembershipFactory.create(segment=other, subscriber=both.subscriber)
    for person in (reached.subscriber, both.subscriber):
        web.post(url(person), {"action": "segments", "was": [only.pk]})
    assert status_of(reached) == "suppressed"
    assert status_of(both) == "queued", "the other segment still reaches them"


@pytest.mark.django_db(transaction=True)
def test_unsubscribing_here_withdraws_what_is_queued(web: Client) -> None:
    send = row(campaign_to(0))
    assert send.subscriber is not None
    answer = web.post(url(send.subscriber), {"action": "leave"})
    assert "You are unsubscribed" in words(answer)
    assert status_of(send) == "suppressed"
    assert is_suppressed(send.account, send.subscriber.email)
    evidence = Suppression.objects.get().evidence
    assert evidence == "The preferences page of campaign 9, by Browser/1"


# --- a break ---------------------------------------------------------------------------------


@pytest.mark.parametrize("months", [1, 3, 6])
def test_a_break(web: Client, person: Subscriber, months: int) -> None:
    before = timezone.now()
    answer = web.post(url(person), {"action": "pause", "months": str(months)})
    assert "Paused until" in words(answer)
    person.refresh_from_db()
    assert person.paused_until is not None
    assert abs(person.paused_until - months_later(before, months)) < timedelta(hours=2)
    assert "Get mailings again now" in words(web.get(url(person)))
    assert "The break is over" in words(web.post(url(person), {"action": "resume"}))
    person.refresh_from_db()
    assert person.paused_until is None


def test_a_break_that_is_over_is_none(web: Client, person: Subscriber) -> None:
    Subscriber.objects.update(paused_until=timezone.now() - timedelta(days=1))
    assert "Paused" not in words(web.get(url(person)))


@pytest.mark.parametrize(
    ("zone", "account_zone", "day"),
    [
        ("", "UTC", "Feb. 1, 2031"),
        ("", "America/New_York", "Jan. 31, 2031"),
        ("Asia/Tokyo", "America/New_York", "Feb. 1, 2031"),
        ("Nowhere/Land", "America/New_York", "Jan. 31, 2031"),
    ],
)
def test_its_end_is_shown_as_the_persons_day(
    web: Client, person: Subscriber, zone: str, account_zone: str, day: str
) -> None:
    Subscriber.objects.update(timezone=zone, paused_until=datetime(2031, 2, 1, 1, tzinfo=UTC))
    type(person.account).objects.update(timezone=account_zone)
    assert f"before {day}" in words(web.get(url(person)))


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        ("2026-01-15", 1, "2026-02-15"),
        ("2026-01-31", 1, "2026-02-28"),
        ("2027-11-30", 3, "2028-02-29"),
        ("2026-12-31", 6, "2027-06-30"),
        ("2026-10-01", 3, "2027-01-01"),
    ],
)
def test_months(start: str, months: int, end: str) -> None:
    at = [datetime.fromisoformat(f"{day}T09:00+00:00") for day in (start, end)]
    assert months_later(at[0], months) == at[1]


# --- the verbs behind it ---------------------------------------------------------------------


def test_a_pause_is_in_the_future_and_aware(person: Subscriber) -> None:
    for until in (timezone.now() - timedelta(seconds=1), datetime(2099, 1, 1)):
        with pytest.raises(ValueError, match="no time in the future"):
            pause(person, until)
    unsubscribe(person, evidence="x")
    assert not pause(person, timezone.now() + timedelta(days=1))
    assert not resume(person)


def test_rejoining_says_what_began(person: Subscriber) -> None:
    strangers, news = segment("Strangers"), segment("News")
    leave(person.memberships.filter(segment=news))
    began = rejoin(person, [strangers, news, segment("Offers")], source="a form")
    assert {one.segment.name for one in began} == {"Strangers", "News"}
    assert rejoin(person, [strangers, news], source="a form") == []
    assert MembershipChange.objects.filter(kind="joined").count() == 1, "a first time is no change"
    with pytest.raises(ValueError, match="what showed"):
        rejoin(person, [news], source=" ")
    with pytest.raises(ValueError, match="another account"):
        rejoin(person, [SegmentFactory.create()], source="a form")
    gone = Subscriber.objects.get(pk=person.pk)
    person.delete()
    assert rejoin(gone, [news], source="a form") == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["leave", "rejoin"])
def test_of_leaving_and_coming_back_at_once_the_later_holds(person: Subscriber, first: str) -> None:
    news = segment("News")
    membership = Membership.objects.get(segment=news, subscriber=person)
    if first == "leave":
        acts = [lambda: leave([membership]), lambda: rejoin(person, [news], source="x")]
    else:
        leave([membership])
        acts = [lambda: rejoin(person, [news], source="x"), lambda: leave([membership])]
    with Race() as race:
        with transaction.atomic():
            acts[0]()
            second = race.start(acts[1])
            second.wait_until_blocked()
        assert len(second.result()) == 1
    assert ("News" in present(person)) is (first == "leave")


@pytest.mark.django_db(transaction=True)
def test_of_two_who_join_at_once_one_does(person: Subscriber) -> None:
    strangers = segment("Strangers")
    with Race() as race:
        with transaction.atomic():
            assert len(rejoin(person, [strangers], source="x")) == 1
            second = race.start(lambda: rejoin(person, [strangers], source="y"))
            second.wait_until_blocked()
        assert second.result() == []
    assert Membership.objects.filter(segment=strangers).count() == 1
