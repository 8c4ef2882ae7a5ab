"""Erasing somebody: what providers told, and the words of their own messages."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from campaigns.models import Content
from sending.models import DeliveryEvent, ProviderEvent, Send
from sending.tracking import inbox
from sending.tracking.reading import read
from sending.transactional import KeyReused, enqueue
from subscribers.models import Subscriber
from tests.factories import (
    ContentFactory,
    SubscriberFactory,
)

from .forgotten import forget, places_of
from .rows import campaign_to, row
from .tracked import event_of, handed, result_of, suppressions, tell

pytestmark = pytest.mark.django_db

SAID = "5.1.1 <{}>: user unknown"


def _person(send: Send) -> Subscriber:
    assert send.subscriber is not None
    return send.subscriber


def _again(send: Send) -> Send:
    return Send.objects.get(pk=send.pk)


# --- what providers tell ---------------------------------------------------------------------


def test_what_they_told_before_is_emptied() -> None:
    send = row(campaign_to(0), "sent")
    email = str(send.email)
    known = event_of(send, "delivered", text=SAID.format(email))
    ignored = event_of(send, "something", recipient=email.upper())
    unknown = event_of(send, "delivered", job_id="campaign:0:0", text=SAID.format(email))
    inbox.store([known, ignored, unknown])
    inbox.apply_waiting()
    assert [result_of(e) for e in (known, ignored, unknown)] == [
        "applied",
        "ignored",
        "unknown_job",
    ]
    assert len(places_of(email)) >= 3
    assert forget(_person(send))["events of providers"] == 3
    assert places_of(email) == []
    assert DeliveryEvent.objects.get(send=send).kind == "delivered"


@pytest.mark.parametrize("kind", ["hard_bounce", "complained", "unsubscribed", "delivered"])
def test_what_they_tell_later_brings_nothing_back(kind: str) -> None:
    send = row(campaign_to(0), "sent")
    email = str(send.email)
    forget(_person(send))
    late = {"recipient": email, "text": SAID.format(email)}
    assert tell(send, kind, **late) == ["applied"]
    assert tell(send, kind, **late, job_id="campaign:0:0") == ["unknown_job"]
    assert tell(send, kind, **late, job_id="", installation="", message_id="?") == ["unknown_job"]
    assert suppressions() == [(None, "erased")]
    assert places_of(email) == []
    assert DeliveryEvent.objects.get(send=send, stage="webhook").text == ""


def test_what_waits_to_be_applied_is_still_matched_and_then_emptied() -> None:
    send, _claimed = handed()
    email = str(send.email)
    waiting = event_of(send, "delivered", job_id="", installation="", text=SAID.format(email))
    Send.objects.filter(pk=send.pk).update(provider_message_id=waiting.message_id)
    inbox.store([waiting])
    forget(_person(send))
    assert places_of(email) == [
        "sendonce_sending_providerevent.recipient",
        "sendonce_sending_providerevent.text",
    ]
    inbox.apply_waiting()
    assert (result_of(waiting), _again(send).status) == ("applied", "sent")
    assert places_of(email) == []


def test_an_id_from_before_ids_were_hashed_is_hashed_as_it_would_be_today() -> None:
    send = row(campaign_to(0), "sent")
    email = str(send.email).lower()
    old = f"Postmark:4711:delivered:{email}"
    stored = event_of(send, "delivered", event_id=old)
    inbox.store([stored])
    inbox.apply_waiting()
    forget(_person(send))
    assert places_of(email) == []
    told_again = SimpleNamespace(event_type="delivered", event_id="4711", recipient=email)
    today = read(told_again, "Postmark", received=timezone.now()).row.event_id
    assert ProviderEvent.objects.get().event_id == today
    assert DeliveryEvent.objects.get(stage="webhook").event_id == today


# --- messages to one person ------------------------------------------------------------------


def _message(person: Subscriber, **given: object) -> Send:
    asked = {
        "kind": "receipt",
        "key": "1",
        "to": person.email,
        "content": ContentFactory.build(account=person.account, subject=f"For {person.email}"),
        "context": {"address": person.email},
        "expires": timezone.now() + timedelta(hours=1),
        "subscriber": person,
        **given,
    }
    return enqueue(person.account, **asked)


def test_a_message_of_their_own_loses_its_words() -> None:
    person = SubscriberFactory.create()
    send = _message(person)
    assert forget(person)["contents"] == 1
    send = _again(send)
    assert (send.status, send.reason, send.context) == ("suppressed", "erased", {})
    content = Content.objects.get()
    assert (content.subject, content.html, content.text) == ("", "", "")
    assert places_of(person.email) == []


def test_words_that_others_get_too_stay() -> None:
    ann = SubscriberFactory.create()
    bob = SubscriberFactory.create(account=ann.account)
    content = ContentFactory.build(account=ann.account, subject="A receipt")
    first = _message(ann, content=content)
    second = _message(bob, content=content, key="2")
    assert first.content_id == second.content_id
    assert forget(ann)["contents"] == 0
    assert Content.objects.get().subject == "A receipt"
    third = _message(bob, content=content, key="3")
    forget(bob)
    assert Content.objects.get().subject == "A receipt", "it is nobody's own any more"
    assert _again(third).status == "suppressed"


def test_words_that_the_host_keeps_for_all_stay() -> None:
    ann = SubscriberFactory.create()
    content = ContentFactory.create(account=ann.account, subject="A receipt")
    _message(ann, content=content)
    assert forget(ann)["contents"] == 0
    assert Content.objects.get().subject == "A receipt"


def test_words_that_were_emptied_with_somebody_are_written_anew_for_others() -> None:
    ann = SubscriberFactory.create()
    bob = SubscriberFactory.create(account=ann.account)
    content = ContentFactory.build(account=ann.account, subject="A receipt")
    _message(ann, content=content)
    forget(ann)
    later = _message(bob, content=content, key="2")
    assert later.content is not None
    assert Content.objects.get(sends=later).subject == "A receipt"


def test_a_key_that_was_the_address_goes_and_the_row_stays_one() -> None:
    person = SubscriberFactory.create()
    send = _message(person, key=f"{person.email.upper()}:2")
    forget(person)
    job_id = _again(send).job_id
    assert job_id.startswith(f"message:{person.account_id}:erased:")
    assert places_of(person.email) == []


def test_asking_again_for_a_message_to_an_erased_person_is_the_same_message() -> None:
    person = SubscriberFactory.create()
    send = _message(person)
    forget(person)
    assert _message(person, subscriber=None).pk == send.pk
    with pytest.raises(KeyReused):
        _message(SubscriberFactory.create(account=person.account))
