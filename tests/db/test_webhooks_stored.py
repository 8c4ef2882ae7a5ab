"""The webhooks as providers call them: what is stored."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sending.models import ProviderEvent
from sending.tracking import inbox as tracking
from subscribers.models import Suppression
from tests.provider_payloads import BATCHING, NAMES, ours, post, raw

from . import webhook_posts
from .rows import campaign_to, row, status_of
from .tracked import counts
from .webhook_posts import POSTED, about, send_post

pytest.importorskip("anymail")
pytestmark = webhook_posts.MARKS

webhook_keys = webhook_posts.webhook_keys


@pytest.mark.parametrize("esp", POSTED)
def test_a_request_is_stored_and_settles_the_doubt(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    more = {"provider_message_id": "esp-1"} if esp == "mailersend" else {}
    send = row(campaign_to(0), "in_doubt", **more)
    answer = send_post(post(esp, [about(send, esp, word, message="esp-1")]))
    assert (answer.status_code, answer.content) == (200, b"")
    assert not answer.cookies
    stored = ProviderEvent.objects.get()
    assert (stored.esp, stored.applied_at, stored.recipient) == (NAMES[esp], None, send.email)
    assert tracking.apply_waiting() == 1
    assert (status_of(send), counts()) == ("sent", {})


def test_a_hard_bounce_at_postmark_from_the_request_to_the_suppression() -> None:
    send = row(campaign_to(0), "sent")
    assert send_post(post("postmark", [about(send, "postmark", "Bounce")])).status_code == 200
    tracking.apply_waiting()
    assert status_of(send) == "bounced"
    assert [s.email for s in Suppression.objects.all()] == [send.email]


@pytest.mark.parametrize("esp", BATCHING)
def test_all_events_of_a_request_are_one_insert(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    events = [raw(esp, word, to=f"p{n}@example.org", number=n, message=f"m{n}") for n in range(40)]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert send_post(post(esp, events)).status_code == 200
    assert sum("INSERT" in query["sql"] for query in queries) == 1
    assert ProviderEvent.objects.count() == 40
    assert send_post(post(esp, events)).status_code == 200
    assert ProviderEvent.objects.count() == 40
    assert counts() == {f"{NAMES[esp]} replayed": 40}
