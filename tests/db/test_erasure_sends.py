"""What the ledger keeps of an erased person: that there was somebody, and a keyed hash."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from sending import doubt
from sending.build import build, build_chunk
from sending.doubt_decisions import Decided, decide
from sending.erasure import erase_personal_data
from sending.handover import give_back, hand_over
from sending.models import DeliveryEvent, Send
from sending.rescue import rescue_expired
from sending.settle import settle
from subscribers.addresses import erased_hashes
from subscribers.models import Subscriber, Suppression
from tests.factories import (
    CampaignFactory,
)

from .forgotten import forget, places_of
from .handed import hand_over_rows
from .rows import assert_identity, campaign_to, held, kinds_of, member, row, take, told
from .tracked import handed, suppressions, tell

pytestmark = pytest.mark.django_db

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")
SAID = "5.1.1 <{}>: user unknown"


def _person(send: Send) -> Subscriber:
    assert send.subscriber is not None
    return send.subscriber


def _again(send: Send) -> Send:
    return Send.objects.get(pk=send.pk)


# --- what becomes of the rows ----------------------------------------------------------------


@pytest.mark.parametrize("state", ["queued", "retry", "claimed"])
def test_what_is_open_is_closed_and_says_so(state: str) -> None:
    campaign = campaign_to(0)
    send, other = row(campaign, state), row(campaign, state)
    email = str(send.email)
    assert forget(_person(send))["sends"] == 1
    send = _again(send)
    assert (send.status, send.reason) == ("suppressed", "erased")
    assert (send.email, send.subscriber_id) == (None, None)
    assert send.email_hash == erased_hashes(email)[0]
    assert (send.claim_token, send.lease_until, send.worker_id) == (None, None, None)
    note = DeliveryEvent.objects.get(send=send)
    assert (note.kind, note.reason, note.text) == ("suppressed", "erased", "the person was erased")
    assert (_again(other).status, _again(other).email) == (state, other.email)
    assert places_of(email) == []


@pytest.mark.parametrize("state", ["queued", "retry", "claimed"])
def test_a_repeat_of_doubt_is_in_doubt_again_and_held(state: str) -> None:
    earlier = uuid.uuid4()
    send = row(campaign_to(0), state, doubt_tokens=[earlier, OLD], handed_at=timezone.now())
    forget(_person(send))
    send = _again(send)
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [earlier])
    assert (send.settle_at, send.replay_until) == (None, None)


@pytest.mark.parametrize(
    "state", ["sending", "sent", "bounced", "failed", "suppressed", "in_doubt", "canceled"]
)
def test_what_is_not_open_keeps_its_state_and_loses_its_person(state: str) -> None:
    send = row(
        campaign_to(0),
        state,
        answer_code=550,
        answer_enhanced="5.1.1",
        frozen={"context": {"first_name": "Ada"}},
    )
    email = str(send.email)
    Send.objects.filter(pk=send.pk).update(answer_text=SAID.format(email))
    before = _again(send)
    forget(_person(send))
    after = _again(send)
    assert (after.status, after.reason) == (before.status, before.reason)
    assert (after.claim_token, after.lease_until) == (before.claim_token, before.lease_until)
    assert (after.handed_at, after.sent_at) == (before.handed_at, before.sent_at)
    assert (after.email, after.frozen, after.answer_text) == (None, None, "")
    assert (after.answer_code, after.answer_enhanced) == (550, "5.1.1")
    assert places_of(email) == []


def test_the_ledger_counts_as_before() -> None:
    campaign = campaign_to(3)
    build(campaign.pk, size=100)
    for send in Send.objects.filter(campaign=campaign)[:2]:
        forget(_person(send))
    assert_identity(campaign)
    build(campaign.pk, size=100)
    campaign.refresh_from_db()
    assert campaign.audience == 3
    assert_identity(campaign)


def test_somebody_who_is_erased_before_the_sweep_is_counted_once() -> None:
    campaign = campaign_to(2)
    gone = member(campaign)
    assert build_chunk(campaign.pk, size=100) is not None
    forget(gone)
    build(campaign.pk, size=100)
    campaign.refresh_from_db()
    assert campaign.audience == Send.objects.filter(campaign=campaign).count() == 3
    assert_identity(campaign)


def test_it_wants_the_transaction_in_which_the_person_is_forgotten() -> None:
    connection.in_atomic_block = False
    try:
        with pytest.raises(ValueError, match="belongs into the transaction"):
            erase_personal_data(1, None, "ann@example.org", "x")
    finally:
        connection.in_atomic_block = True


def test_it_can_be_repeated() -> None:
    send = row(campaign_to(0), "sent")
    person, email = _person(send), str(send.email)
    forget(person)
    digest = _again(send).email_hash
    with transaction.atomic():
        again = erase_personal_data(send.account_id, person.pk, email, erased_hashes(email)[0])
    assert again == {"sends": 0, "events of providers": 0, "events": 0, "contents": 0}
    assert _again(send).email_hash == digest


def test_another_account_s_rows_are_that_account_s() -> None:
    send = row(campaign_to(0), "sent")
    other = campaign_to(0)
    same = row(other, "queued", subscriber=member(other, email=str(send.email)))
    assert tell(same, "opened") == ["never_handed_over"]
    forget(_person(send))
    assert (_again(same).status, _again(same).email) == ("queued", same.email)


# --- addresses that changed hands ------------------------------------------------------------


def test_rows_of_the_person_and_rows_to_the_address_are_both_theirs() -> None:
    campaign = campaign_to(0)
    person = member(campaign, email="new@example.org")
    before = row(campaign, "sent", subscriber=person, email="old@example.org")
    other = CampaignFactory.create(
        account=campaign.account, segments=campaign.segments.all(), sending=True
    )
    of_before = member(other, email="somebody@example.org")
    to_address = row(other, "queued", subscriber=of_before, email="New@example.org")
    assert forget(person)["sends"] == 2
    assert _again(before).email_hash == erased_hashes("old@example.org")[0]
    assert _again(to_address).email_hash == erased_hashes("new@example.org")[0]
    assert _again(to_address).status == "suppressed"
    assert _again(to_address).subscriber_id == of_before.pk
    assert places_of("old@example.org") == places_of("new@example.org") == []


def test_two_rows_of_one_campaign_may_both_be_theirs() -> None:
    campaign = campaign_to(0)
    person, other = member(campaign), member(campaign)
    address, older = person.email, other.email
    # The two swapped addresses after the build.
    first = row(campaign, "sent", subscriber=person, email=older)
    second = row(campaign, "queued", subscriber=other, email=address)
    assert forget(person)["sends"] == 2
    hashes = {_again(first).email_hash, _again(second).email_hash}
    assert hashes == {erased_hashes(older)[0], erased_hashes(address)[0]}
    assert_identity(campaign_to(0))


def test_who_came_back_and_is_erased_again_collides_with_nobody() -> None:
    campaign = campaign_to(0)
    first = row(campaign, "sent")
    email = str(first.email)
    forget(_person(first))
    Suppression.objects.all().delete()
    back = row(campaign, "claimed", subscriber=member(campaign, email=email))
    assert hand_over_rows(back).withheld == {back.pk: "erased"}, "one campaign, one message"
    assert forget(_person(back))["sends"] == 1
    assert _again(first).email_hash == erased_hashes(email)[0]
    assert _again(back).email_hash not in (None, _again(first).email_hash)
    assert places_of(email) == []


# --- what comes later ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "becomes", "reason"),
    [
        ("sent", "sent", ""),
        ("retry", "suppressed", "erased"),
        ("bounced", "bounced", "address_dead"),
        ("failed", "failed", "policy"),
        ("in_doubt", "in_doubt", "connection_lost"),
    ],
)
def test_an_answer_that_comes_later_settles_the_row_and_brings_no_word_back(
    outcome: str, becomes: str, reason: str
) -> None:
    send, claimed = handed()
    email = str(send.email)
    forget(_person(send))
    given = told(claimed, outcome)
    said = given.answer
    given = given._replace(answer=said._replace(text=f"{said.text} {email}"))
    assert settle([given], doubt_wait=0) == {send.pk: becomes}
    send = _again(send)
    assert (send.status, send.reason, send.answer_text) == (becomes, reason, "")
    assert suppressions() == [(None, "erased")], "no plain address for the bounce"
    assert places_of(email) == []


def test_a_refused_repeat_of_doubt_is_in_doubt_as_before() -> None:
    send = row(campaign_to(0), "sending", doubt_tokens=[OLD])
    worker = held(send)
    forget(_person(send))
    assert settle([told(worker, "retry")], doubt_wait=0) == {send.pk: "in_doubt"}
    assert (_again(send).claim_token, _again(send).settle_at) == (OLD, None)


@pytest.mark.parametrize("doubted", [False, True])
def test_a_row_that_was_never_started_does_not_open_again(doubted: bool) -> None:
    send = row(campaign_to(0), "sending", doubt_tokens=[OLD] if doubted else [])
    worker = held(send)
    forget(_person(send))
    assert give_back([worker]) == 1
    send = _again(send)
    assert (send.status, send.reason) == ("in_doubt" if doubted else "suppressed", "erased")
    assert kinds_of(send) == [send.status]


def test_a_claim_that_was_closed_is_nobody_s_any_more() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    (claimed,) = take([campaign.pk], 1)
    forget(_person(send))
    found = hand_over([claimed], lease=60)
    assert (found.go, found.withheld) == ([], {})
    assert give_back([claimed]) == 0
    assert _again(send).status == "suppressed"


@pytest.mark.parametrize("policy", ["hold", "resend", "assume_sent"])
def test_a_lost_worker_s_row_is_settled_by_the_policy_and_never_sent_again(policy: str) -> None:
    campaign = campaign_to(0)
    campaign.account.in_doubt_policy = policy
    campaign.account.save()
    send = row(
        campaign,
        "sending",
        lease_until=timezone.now() - timedelta(seconds=1),
        replay_until=timezone.now() + timedelta(hours=1),
    )
    forget(_person(send))
    rescue_expired(doubt_wait=0)
    Send.objects.filter(pk=send.pk, settle_at__isnull=False).update(
        settle_at=timezone.now() - timedelta(seconds=1), lease_until=None
    )
    doubt.apply_policies()
    send = _again(send)
    assert send.status == ("sent" if policy == "assume_sent" else "in_doubt")
    assert send.settle_at is None, "held, or done"


def test_nobody_sends_it_again() -> None:
    rows = [row(campaign_to(0), "in_doubt"), row(campaign_to(0), "failed")]
    for send in rows:
        forget(_person(send))
    ids = [send.pk for send in rows]
    done = decide(Send.objects.all(), ids, doubt.SEND_AGAIN, failed=True)
    assert done == Decided(0, Counter({"the person was erased, nothing is sent to them": 2}))
    assert doubt.resolve(rows, doubt.TREAT_AS_SENT) == 1
