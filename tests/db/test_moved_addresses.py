"""People who change their address while a campaign runs: each gets it once, whoever has the
address that they had, and what holds for a person goes along with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.build import build, build_chunk
from sending.handover import hand_over
from sending.models import Send
from sending.settle import settle
from subscribers.consent import pause, unsubscribe
from subscribers.leaving.address_change import AddressChange, change_address
from subscribers.models import AuditEvent, Signup, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed, suppress
from subscribers.tokens import Kind, make_token
from tests.factories import SubscriberFactory

from .rows import LEASE, assert_identity, campaign_to, member, row, take, told
from .signups import visitor
from .test_preferences_address import confirmed, email_of
from .tracked import handed, suppressions

pytestmark = pytest.mark.django_db(transaction=True)


def move(person: Subscriber, email: str) -> None:
    person.refresh_from_db()
    assert change_address(confirmed(person, email)) is AddressChange.CHANGED
    person.refresh_from_db()


def written(campaign: Campaign) -> dict[int | None, tuple[str | None, str]]:
    """The address and the state of each person's row."""
    rows = Send.objects.filter(campaign=campaign)
    return {send.subscriber_id: (send.email, send.status) for send in rows}


def handed_to(campaign: Campaign) -> list[str]:
    """The addresses at which the next worker hands the campaign over."""
    claimed = [one for one in take([campaign.pk], 10) if one.campaign_id]
    return sorted(one.email for one in hand_over(claimed, lease=LEASE).go)


# --- the rows ------------------------------------------------------------------------------------


def test_somebody_new_at_a_former_address_is_another_recipient() -> None:
    """The process that changed the address died before the open rows followed it."""
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    build_chunk(campaign.pk, size=100)
    assert written(campaign) == {ann.pk: ("a@example.org", "queued")}
    Subscriber.objects.filter(pk=ann.pk).update(email="x@example.org")
    new = member(campaign, email="a@example.org")
    build(campaign.pk, size=100)
    campaign.refresh_from_db()
    assert campaign.audience == 2
    assert written(campaign) == {
        ann.pk: ("x@example.org", "queued"),
        new.pk: ("a@example.org", "queued"),
    }
    assert handed_to(campaign) == ["a@example.org", "x@example.org"]
    assert_identity(campaign)


def test_two_who_swap_their_addresses_get_one_message_each() -> None:
    campaign = campaign_to(0)
    ann, bob = member(campaign, email="a@example.org"), member(campaign, email="b@example.org")
    build(campaign.pk, size=100)
    move(ann, "between@example.org")
    move(bob, "a@example.org")
    move(ann, "b@example.org")
    assert written(campaign) == {
        ann.pk: ("b@example.org", "queued"),
        bob.pk: ("a@example.org", "queued"),
    }
    assert handed_to(campaign) == ["a@example.org", "b@example.org"]
    assert_identity(campaign)


def test_a_row_follows_there_and_back() -> None:
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    build(campaign.pk, size=100)
    for email in ("x@example.org", "a@example.org"):
        move(ann, email)
        assert written(campaign) == {ann.pk: (email, "queued")}
    assert handed_to(campaign) == ["a@example.org"]


def test_an_address_that_had_its_message_gets_no_second_one_by_a_change() -> None:
    campaign = campaign_to(0)
    ann, bob = member(campaign, email="a@example.org"), member(campaign, email="b@example.org")
    row(campaign, "sent", subscriber=ann)
    waiting = row(campaign, subscriber=bob)
    move(ann, "x@example.org")
    move(bob, "a@example.org")
    waiting.refresh_from_db()
    assert (waiting.status, waiting.reason) == ("suppressed", "moved")


def test_an_address_whose_former_owner_was_erased_gets_no_second_message() -> None:
    campaign = campaign_to(0)
    row(campaign, "sent", subscriber=member(campaign, email="x@example.org"))
    erase_person(campaign.account, "x@example.org", reason="asked")
    ann = member(campaign, email="a@example.org")
    waiting = row(campaign, subscriber=ann)
    move(ann, "x@example.org")
    assert handed_to(campaign) == []
    waiting.refresh_from_db()
    assert waiting.status == "suppressed"


def test_a_bounce_at_the_former_address_says_nothing_of_the_new_one() -> None:
    send, claimed = handed()
    assert send.subscriber is not None
    former = send.email
    move(send.subscriber, "x@example.org")
    settle([told(claimed, "bounced")], doubt_wait=600)
    send.refresh_from_db()
    assert (send.status, send.email) == ("bounced", former)
    assert suppressions() == [(former, "hard_bounce")]


# --- what goes along -----------------------------------------------------------------------------


@pytest.mark.parametrize("for_all", [False, True])
@pytest.mark.parametrize("reason", ["complaint", "manual"])
def test_what_bars_a_person_does_not_end_with_their_address(reason: str, for_all: bool) -> None:
    ann = member(campaign_to(0), email="a@example.org")
    suppress(None if for_all else ann.account, "a@example.org", reason)
    assert change_address(confirmed(ann, "x@example.org")) is AddressChange.REFUSED
    assert email_of(ann) == "a@example.org"


def test_who_had_an_address_that_is_dead_may_have_another() -> None:
    ann = member(campaign_to(0), email="a@example.org")
    suppress(ann.account, "a@example.org", "hard_bounce")
    move(ann, "x@example.org")
    assert not is_suppressed(ann.account, "x@example.org")


@pytest.mark.parametrize("reason", ["unsubscribed", "erased"])
def test_what_a_change_takes_off_the_list_is_on_record(reason: str) -> None:
    ann = member(campaign_to(0), email="a@example.org")
    suppress(ann.account, "x@example.org", reason)
    link = make_token(Kind.CONFIRM, confirmed(ann, "x@example.org").pk, None)
    assert visitor().post(f"/u/{link}").status_code == 200
    assert not is_suppressed(ann.account, "x@example.org")
    entry = AuditEvent.objects.get(verb="suppression.lift")
    assert entry.detail == {"suppressed_for": [reason]}
    assert "x@example.org" not in f"{entry.subject} {entry.reason}"


def test_a_change_that_takes_nothing_off_the_list_says_nothing_of_it() -> None:
    move(member(campaign_to(0), email="a@example.org"), "x@example.org")
    assert not AuditEvent.objects.filter(verb="suppression.lift").exists()


# --- two who are one -----------------------------------------------------------------------------


def test_a_link_from_before_two_became_one_still_unsubscribes() -> None:
    campaign = campaign_to(0)
    ann, known = member(campaign, email="a@example.org"), member(campaign, email="x@example.org")
    bystander = member(campaign)
    # By the link, as only that puts the confirmation on the wish.
    link = make_token(Kind.CONFIRM, confirmed(ann, "x@example.org").pk, None)
    assert visitor().post(f"/u/{link}").status_code == 200
    assert not Subscriber.objects.filter(pk=ann.pk, status="confirmed").exists()
    visitor().post(f"/u/{make_token(Kind.UNSUBSCRIBE, ann.pk, campaign.pk)}")
    known.refresh_from_db()
    bystander.refresh_from_db()
    assert (known.status, bystander.status) == ("unsubscribed", "confirmed")
    assert Suppression.objects.filter(email_lower="x@example.org", reason="unsubscribed").exists()


def test_a_link_from_before_two_became_one_shows_a_button_as_long_as_mail_comes() -> None:
    campaign = campaign_to(0)
    ann, known = member(campaign, email="a@example.org"), member(campaign, email="x@example.org")
    visitor().post(f"/u/{make_token(Kind.CONFIRM, confirmed(ann, 'x@example.org').pk, None)}")
    link = f"/u/{make_token(Kind.UNSUBSCRIBE, ann.pk, campaign.pk)}"
    assert b"<button" in visitor().get(link).content
    visitor().post(f"/u/{make_token(Kind.PREFERENCES, ann.pk, None)}", {"action": "leave"})
    known.refresh_from_db()
    assert known.status == "unsubscribed"
    assert b"<button" not in visitor().get(link).content


def test_who_has_a_former_address_is_not_whom_its_owner_became() -> None:
    ann = member(campaign_to(0), email="a@example.org")
    for email in ("x@example.org", "b@example.org"):
        link = make_token(Kind.CONFIRM, confirmed(ann, email).pk, None)
        assert visitor().post(f"/u/{link}").status_code == 200
        ann.refresh_from_db()
    stranger = SubscriberFactory.create(account=ann.account, email="x@example.org")
    visitor().post(f"/u/{make_token(Kind.UNSUBSCRIBE, ann.pk, None)}")
    ann.refresh_from_db()
    stranger.refresh_from_db()
    assert (ann.status, stranger.status) == ("unsubscribed", "confirmed")


def test_a_change_asked_for_before_the_other_one_unsubscribed_is_over() -> None:
    campaign = campaign_to(0)
    ann, known = member(campaign, email="a@example.org"), member(campaign, email="x@example.org")
    wish = confirmed(ann, "x@example.org")
    Signup.objects.filter(pk=wish.pk).update(mailed_at=timezone.now() - timedelta(hours=1))
    wish.refresh_from_db()
    unsubscribe(known, evidence="a link")
    assert change_address(wish) is AddressChange.ENDED
    known.refresh_from_db()
    assert known.status == "unsubscribed"
    assert is_suppressed(known.account, "x@example.org")
    assert email_of(ann) == "a@example.org"


@pytest.mark.parametrize("whose", ["the one who moves", "the one who is there", "both"])
def test_of_two_pauses_the_longer_goes_on(whose: str) -> None:
    campaign = campaign_to(0)
    ann, known = member(campaign, email="a@example.org"), member(campaign, email="x@example.org")
    longer = timezone.now() + timedelta(days=90)
    if whose != "the one who is there":
        pause(ann, longer - timedelta(days=60) if whose == "both" else longer)
    if whose != "the one who moves":
        pause(known, longer)
    ann.refresh_from_db()
    assert change_address(confirmed(ann, "x@example.org")) is AddressChange.CHANGED
    known.refresh_from_db()
    assert known.paused_until == longer
