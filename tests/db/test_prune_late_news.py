"""What is said of a row after it was pruned: its address is still barred, its links still work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.test import Client

from campaigns.models import Campaign
from campaigns.web_version import web_version
from sending import pruning
from sending.models import DeliveryEvent, ProviderEvent, Send
from sending.personal_data import personal_data
from sending.tracking import inbox, matching
from subscribers.models import Subscriber
from subscribers.rights.acts import erase_person
from subscribers.tokens import unsubscribe_url
from tests.factories import SendFactory

from .rows import campaign_to, member
from .test_prune import age, prune
from .tracked import counts, event_of, result_of, suppressions

pytestmark = pytest.mark.django_db


def pruned() -> tuple[Campaign, Send, Subscriber]:
    """A campaign that ended long ago, the row of it that was pruned, and its person."""
    campaign = campaign_to(0, status="sent")
    person = member(campaign)
    send = _sent(campaign, person)
    age(campaign)
    assert prune(campaign).pruned == 1
    return campaign, send, person


def _sent(campaign: Campaign, person: Subscriber) -> Send:
    send: Send = SendFactory.create(campaign=campaign, subscriber=person, sent=True)
    return send


def told(send: Send, kind: str, **fields: str) -> str:
    event = event_of(send, kind, **fields)
    inbox.store([event])
    inbox.apply_waiting()
    return result_of(event)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("complained", "complaint"), ("hard_bounce", "hard_bounce"), ("unsubscribed", "unsubscribed")],
)
def test_it_still_bars_the_address(kind: str, reason: str) -> None:
    _, send, person = pruned()
    assert told(send, kind, text=f"{person.email} said so") == "applied"
    assert suppressions() == [(person.email, reason)]
    event = DeliveryEvent.objects.get()
    # Nobody would find it by its row at an erasure: it names no address.
    assert (event.send, event.account, event.kind, event.text) == (None, send.account, kind, "")
    person.refresh_from_db()
    assert person.status == ("unsubscribed" if kind == "unsubscribed" else "confirmed")
    assert not Send.objects.exists()


def test_told_twice_it_counts_once() -> None:
    _, send, _ = pruned()
    event = event_of(send, "complained")
    for _ in range(2):
        inbox.store([event])
        inbox.apply_waiting()
        ProviderEvent.objects.all().delete()  # as its own pruning does in time
        event.pk = None
    assert DeliveryEvent.objects.count() == 1


@pytest.mark.parametrize("kind", ["delivered", "opened", "rejected", "soft_bounce"])
def test_what_bars_nobody_is_ignored(kind: str) -> None:
    _, send, _ = pruned()
    assert told(send, kind) == "ignored"
    assert (suppressions(), counts(), DeliveryEvent.objects.count()) == ([], {}, 0)


def test_an_address_that_is_somebody_elses_is_not_barred() -> None:
    campaign, send, person = pruned()
    other = member(campaign)
    assert told(send, "complained", recipient=other.email) == "wrong_recipient"
    assert told(send, "complained", recipient="") == "wrong_recipient"
    Subscriber.objects.filter(pk=person.pk).update(email="moved@example.org")
    assert told(send, "complained", recipient=person.email) == "applied"
    assert suppressions() == [(person.email, "complaint")]


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"job_id": "campaign:999999:1"}, "unknown_job"),
        ({"job_id": "campaign:1:x"}, "unknown_job"),
        ({"job_id": "campaign:" + "9" * 30 + ":1"}, "unknown_job"),
        ({"installation": "f" * 16}, "other_installation"),
        ({"job_id": "", "message_id": "another"}, "unknown_job"),
    ],
)
def test_what_is_not_shown_to_be_ours_bars_nobody(fields: dict[str, str], result: str) -> None:
    _, send, _ = pruned()
    assert told(send, "complained", **fields) == result
    assert suppressions() == []


def test_a_row_that_was_pruned_while_news_came_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0, status="sent")
    send = _sent(campaign, member(campaign))
    age(campaign)

    def and_then_it_goes(events: Sequence[matching.Told]) -> dict[int, matching.Match]:
        found = matching.match(events)
        assert prune(campaign).pruned == 1
        return found

    monkeypatch.setattr("sending.tracking.inbox.match", and_then_it_goes)
    assert told(send, "complained") == "applied"
    assert suppressions() == [(send.email, "complaint")]


def test_an_erased_person_stays_forgotten() -> None:
    campaign, send, person = pruned()
    erase_person(campaign.account, person.email, reason="asked for")
    assert told(send, "complained", text=f"{person.email} complained") == "applied"
    stored, event = ProviderEvent.objects.get(), DeliveryEvent.objects.get()
    assert (stored.recipient, stored.text, event.text) == ("", "", "")
    assert [address for address, _ in suppressions()] == [None]


def test_erasing_and_copying_somebody_whose_rows_are_gone() -> None:
    campaign, _, person = pruned()
    copy = personal_data(campaign.account_id, person.pk, person.email)
    assert copy == {"sends": [], "provider_events": []}
    erase_person(campaign.account, person.email, reason="asked for")
    assert not Subscriber.objects.exists()
    assert pruning.prunable(campaign.pk, days=1) == (0, 0)


def test_links_in_old_mail_still_work(client: Client) -> None:
    campaign, _, person = pruned()
    assert web_version(person.pk, campaign.pk)
    url = unsubscribe_url(person.pk, campaign.pk)
    path = url.removeprefix("http://127.0.0.1:8000")
    assert client.get(path).status_code == 200
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    person.refresh_from_db()
    assert person.status == "unsubscribed"
