"""Another address: the new mailbox says yes first, the old one is told, nobody is doubled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client, override_settings
from django.utils import timezone

from sending.handover import hand_over
from sending.models import Send
from sending.withdraw import withdraw_leavers
from subscribers.consent import unsubscribe
from subscribers.leaving.address_change import AddressChange, change_address
from subscribers.models import Membership, Signup, Subscriber, Suppression
from subscribers.suppression import is_suppressed, suppress
from subscribers.tokens import Kind, make_token
from tests.factories import CampaignFactory, SegmentFactory, SendFactory, SubscriberFactory

from .racing import Race
from .rows import campaign_to, held, row, status_of, take

pytestmark = pytest.mark.django_db

NEW = "new@example.net"


@pytest.fixture
def web() -> Client:
    return Client(enforce_csrf_checks=True, headers={"user-agent": "Browser/1"})


@pytest.fixture
def person() -> Subscriber:
    segment = SegmentFactory.create()
    return SubscriberFactory.create(
        account=segment.account, email="old@example.org", locale="en", segments=[segment]
    )


def mails() -> list[Send]:
    """What is queued, oldest first."""
    return list(Send.objects.select_related("content").order_by("pk"))


def kind(mail: Send) -> str:
    return mail.job_id.split(":")[2]


def url(person: Subscriber) -> str:
    return f"/u/{make_token(Kind.PREFERENCES, person.pk, None)}"


def words(answer: Any) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def ask(web: Client, person: Subscriber, email: str = NEW) -> Any:
    return web.post(url(person), {"action": "address", "email": email})


def confirmed(person: Subscriber, email: str = NEW) -> Signup:
    """A wish as it is when its mailbox has pressed the button."""
    return Signup.objects.create(
        account=person.account,
        kind=Signup.Kind.ADDRESS,
        subscriber=person,
        email=email,
        mails=1,
        mailed_at=timezone.now(),
    )


def email_of(person: Subscriber) -> str:
    return Subscriber.objects.values_list("email", flat=True).get(pk=person.pk)


# --- asking ----------------------------------------------------------------------------------


def test_from_the_page_to_the_new_address(web: Client, person: Subscriber) -> None:
    answer = ask(web, person, f"  {NEW.upper()} ")
    assert answer.status_code == 200
    assert "a message is on its way there" in words(answer)
    (question,) = mails()
    assert (question.account, question.email_lower, kind(question)) == (
        person.account,
        NEW,
        "confirm",
    )
    assert question.content is not None
    assert question.context is not None
    said = question.content.text + question.content.html + str(question.context)
    assert "old@example.org" not in said
    wish = Signup.objects.get()
    assert (wish.kind, wish.subscriber, wish.requested_from) == ("address", person, "127.0.0.1")
    assert wish.requested_agent == "Browser/1"
    assert email_of(person) == "old@example.org", "nothing before it is confirmed"

    link = "/u/" + question.context["confirm_url"].rpartition("/u/")[2]
    page = words(web.get(link))
    assert "Confirm your new address" in page
    assert email_of(person) == "old@example.org", "a GET confirms nothing"
    assert "Your address is changed" in words(web.post(link))
    assert email_of(person).lower() == NEW
    person.refresh_from_db()
    assert person.status == "confirmed"
    assert Membership.objects.filter(subscriber=person, left_at__isnull=True).count() == 1
    assert not Suppression.objects.exists()

    _, notice = mails()
    assert (notice.email, kind(notice)) == ("old@example.org", "address-changed")
    assert notice.context is not None
    assert notice.context["new_address"].lower() == "n•••@example.net"
    assert url(person) in notice.context["preferences_url"], "the way to undo it"
    assert "Your address is changed" in words(web.post(link)), "pressed twice"
    assert len(mails()) == 2


@pytest.mark.parametrize(
    "typed", ["", "   ", "nobody", "a@b", "a@example.org\nb@example.org", "\0"]
)
def test_what_is_no_address_is_said_at_the_field(
    web: Client, person: Subscriber, typed: str
) -> None:
    answer = ask(web, person, typed)
    assert answer.status_code == 400
    page = words(answer)
    assert "This is not an e-mail address" in page
    assert re.search(
        r'<input type="email"[^>]*aria-invalid="true" aria-describedby="wrong how"', page
    )
    assert not mails()
    assert not Signup.objects.exists()


def test_the_answer_does_not_tell_who_is_known(web: Client, person: Subscriber) -> None:
    SubscriberFactory.create(account=person.account, email="known@example.net")
    SubscriberFactory.create(account=person.account, email="left@example.net", unsubscribed=True)
    suppress(person.account, "complained@example.net", "complaint")
    pages = set()
    for name in ("known", "left", "complained", "stranger", "known"):
        answer = ask(web, person, f"{name}@example.net")
        pages.add((answer.status_code, words(answer).replace(name, "somebody")))
    assert len(pages) == 1
    own = ask(web, person, "OLD@example.org")
    assert (own.status_code, words(own).replace("OLD@example.org", "somebody@example.net")) in pages
    assert "old@example.org" not in {mail.email_lower for mail in mails()}


def test_a_mailbox_is_not_bombed(web: Client, person: Subscriber) -> None:
    for _ in range(10):
        assert ask(web, person, "victim@example.net").status_code == 200
    assert len(mails()) == 1
    assert Signup.objects.count() == 1


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 3})
def test_a_network_that_asks_too_much_is_told_to_wait(web: Client, person: Subscriber) -> None:
    for number in range(3):
        assert ask(web, person, f"a{number}@example.net").status_code == 200
    answer = ask(web, person, "b@example.net")
    assert answer.status_code == 429
    assert "try again in an hour" in words(answer)
    assert len(mails()) == 3


@pytest.mark.parametrize(
    ("locale", "hello"), [("fr-CA", "Bonjour,"), ("es", "Hola:"), ("", "Hola:")]
)
def test_the_mails_are_in_the_persons_language(
    web: Client, person: Subscriber, locale: str, hello: str
) -> None:
    Subscriber.objects.update(locale=locale)
    web.post(url(person), {"action": "address", "email": NEW}, headers={"accept-language": "es-MX"})
    (question,) = mails()
    assert question.content is not None
    assert question.content.text.startswith(hello)


# --- following -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "unsubscribed", "confirmed"])
def test_who_is_known_under_both_is_one(person: Subscriber, status: str) -> None:
    """The person stays where the new address is, in the segments of both."""
    theirs = SegmentFactory.create(account=person.account)
    other = SubscriberFactory.create(
        account=person.account, email=NEW.upper(), status=status, segments=[theirs]
    )
    if status == "unsubscribed":
        suppress(person.account, NEW, "unsubscribed")
    assert change_address(confirmed(person)) is AddressChange.CHANGED
    person.refresh_from_db()
    other.refresh_from_db()
    assert (other.status, person.status) == ("confirmed", "unsubscribed")
    assert person.email == "old@example.org"
    assert other.memberships.filter(left_at__isnull=True).count() == 2
    assert not is_suppressed(person.account, NEW)
    assert "changed to another address" in Suppression.objects.get().evidence
    (notice,) = mails()
    assert notice.email == "old@example.org"
    assert notice.content is not None
    assert "{{ preferences_url }}" not in notice.content.text, (
        "it would lead to somebody who has left"
    )
    assert change_address(confirmed(person)) is AddressChange.CHANGED
    assert len(mails()) == 1


@pytest.mark.parametrize("reason", ["complaint", "hard_bounce", "manual"])
@pytest.mark.parametrize("for_all", [False, True])
def test_an_address_that_must_not_get_mail_is_refused(
    web: Client, person: Subscriber, reason: str, for_all: bool
) -> None:
    suppress(None if for_all else person.account, NEW, reason)
    wish = confirmed(person)
    answer = web.post(f"/u/{make_token(Kind.CONFIRM, wish.pk, None)}")
    assert "send to this address" in words(answer)
    assert email_of(person) == "old@example.org"
    assert mails() == []
    assert is_suppressed(person.account, NEW)
    wish.refresh_from_db()
    assert wish.confirmed_at is None


@pytest.mark.parametrize("reason", ["unsubscribed", "erased"])
def test_the_owners_own_wish_from_before_is_lifted(person: Subscriber, reason: str) -> None:
    suppress(person.account, NEW, reason)
    assert change_address(confirmed(person)) is AddressChange.CHANGED
    assert email_of(person) == NEW
    assert not is_suppressed(person.account, NEW)


def test_who_left_meanwhile_stays_away(person: Subscriber) -> None:
    wish = confirmed(person)
    unsubscribe(person, evidence="a link")
    assert change_address(wish) is AddressChange.ENDED
    person.delete()
    wish.refresh_from_db()
    assert change_address(wish) is AddressChange.ENDED
    assert mails() == []


def test_another_spelling_is_the_same_address(person: Subscriber) -> None:
    assert change_address(confirmed(person, "OLD@example.org")) is AddressChange.CHANGED
    assert mails() == []


def test_an_old_address_that_is_none_gets_no_notice(person: Subscriber) -> None:
    Subscriber.objects.update(email="not an address")
    assert change_address(confirmed(person)) is AddressChange.CHANGED
    assert mails() == []
    assert email_of(person) == NEW


def test_old_links_go_on_working(web: Client, person: Subscriber) -> None:
    change_address(confirmed(person))
    web.post(f"/u/{make_token(Kind.UNSUBSCRIBE, person.pk, 7)}")
    assert is_suppressed(person.account, NEW)


@pytest.mark.django_db(transaction=True)
def test_what_waits_untried_follows_to_the_new_address(person: Subscriber) -> None:
    campaign = CampaignFactory.create(
        account=person.account, sending=True, segments=list(person.segments.all())
    )
    queued = row(campaign, subscriber=person)
    change_address(confirmed(person))
    queued.refresh_from_db()
    assert (queued.status, queued.email, queued.email_lower) == ("queued", NEW, NEW)
    claimed = next(r for r in take([campaign.pk], 2) if r.campaign_id is not None)
    assert claimed.email == NEW
    assert [r.id for r in hand_over([claimed], lease=60).go] == [queued.pk]


@pytest.mark.django_db(transaction=True)
def test_what_was_tried_at_the_old_address_stays_and_is_not_tried_again(
    person: Subscriber,
) -> None:
    campaign = CampaignFactory.create(
        account=person.account, sending=True, segments=list(person.segments.all())
    )
    tried = row(campaign, "retry", subscriber=person, attempts=1)
    change_address(confirmed(person))
    tried.refresh_from_db()
    assert (tried.status, tried.reason) == ("suppressed", "moved")
    assert tried.email == "old@example.org"


@pytest.mark.django_db(transaction=True)
def test_what_is_claimed_for_the_old_address_is_withheld(person: Subscriber) -> None:
    claimed = row(campaign_to(0), "claimed")
    assert claimed.subscriber is not None
    change_address(confirmed(claimed.subscriber, "other@example.net"))
    assert status_of(claimed) == "claimed"
    assert hand_over([held(claimed)], lease=60).withheld == {claimed.pk: "moved"}


@pytest.mark.django_db(transaction=True)
def test_an_address_that_has_its_row_gets_no_second_one(person: Subscriber) -> None:
    campaign = CampaignFactory.create(
        account=person.account, sending=True, segments=list(person.segments.all())
    )
    queued = row(campaign, subscriber=person)
    stranger = row(campaign, subscriber=SubscriberFactory.create(account=person.account))
    Send.objects.filter(pk=stranger.pk).update(email=NEW)
    change_address(confirmed(person))
    queued.refresh_from_db()
    assert (queued.status, queued.reason) == ("suppressed", "moved")


@pytest.mark.django_db(transaction=True)
def test_a_row_of_that_address_is_built_at_the_same_moment(person: Subscriber) -> None:
    campaign = CampaignFactory.create(
        account=person.account, sending=True, segments=list(person.segments.all())
    )
    queued = row(campaign, subscriber=person)
    Subscriber.objects.filter(pk=person.pk).update(email=NEW)
    other = SubscriberFactory.create(account=person.account)
    with Race() as race:
        with transaction.atomic():
            SendFactory.create(campaign=campaign, subscriber=other, email=NEW)
            following = race.start(lambda: withdraw_leavers([person.pk]))
            following.wait_until_blocked()
        assert following.result() == 1
    queued.refresh_from_db()
    assert (queued.status, queued.reason) == ("suppressed", "moved")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("committed", [True, False])
def test_somebody_of_that_address_is_added_at_the_same_moment(
    person: Subscriber, committed: bool
) -> None:
    wish = confirmed(person)
    with Race() as race:
        with transaction.atomic():
            SubscriberFactory.create(account=person.account, email=NEW, pending=True)
            following = race.start(lambda: change_address(wish))
            following.wait_until_blocked()
            transaction.set_rollback(not committed)
        assert following.result() is AddressChange.CHANGED
    found = Subscriber.objects.get(email_lower=NEW)
    assert found.status == "confirmed"
    assert (found.pk == person.pk) is not committed


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["move", "leave"])
def test_leaving_at_the_same_moment_is_leaving(person: Subscriber, first: str) -> None:
    wish = confirmed(person)
    acts: list[Callable[[], object]] = [
        lambda: change_address(wish),
        lambda: unsubscribe(person, evidence="a link"),
    ]
    if first == "leave":
        acts.reverse()
    with Race() as race:
        with transaction.atomic():
            acts[0]()
            second = race.start(acts[1])
            second.wait_until_blocked()
        second.result()
    person.refresh_from_db()
    assert person.status == "unsubscribed"
    assert is_suppressed(person.account, person.email)
    assert person.email == (NEW if first == "move" else "old@example.org")
