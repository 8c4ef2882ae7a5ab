"""The webhooks as providers call them: what cannot be read, wholly or in part."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from sending.models import ProviderEvent
from sending.tracking import inbox as tracking
from subscribers.models import Suppression
from tests.provider_payloads import BATCHING, NAMES, Post, basic, ours, post, raw

from . import webhook_posts
from .rows import campaign_to, row, status_of
from .tracked import counts
from .webhook_posts import POSTED, SIGNED, UNSIGNED, about, send_post

pytest.importorskip("anymail")
pytestmark = webhook_posts.MARKS

webhook_keys = webhook_posts.webhook_keys


BROKEN: list[bytes] = [
    b"",
    b"{",
    b"null",
    b"7",
    b'"text"',
    b"[[]]",
    b"[7]",
    b"[null]",
    b'{"a": 1}',
    b'[{"a": 1}]',
    b"\xff\xfe\x00",
    "{\u4f60".encode(),
    b"\xd6\xe9" * 500,
    b"[" * 100_000,
    b'{"event": NaN}',
    b'{"event": {"a": []}, "events": 7, "msys": [], "Type": [], "RecordType": {}}',
    b'[{"event": {"a": []}, "msys": 7, "timestamp": "x", "time": []}]',
    b'[{"event": "delivered", "timestamp": 1e300, "msys": {"a": 1, "b": 2}}]',
    b"a=b&c=d",
]
LENIENT = {  # what anymail takes for an event of unknown kind, or for none at all
    "brevo": {b"[[]]", b'{"a": 1}'},
    "postmark": {b'{"a": 1}'},
    "mailtrap": {b'{"a": 1}'},
}


@pytest.mark.parametrize("esp", UNSIGNED)
def test_what_cannot_be_read_is_400_and_counted(esp: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = 0
    for body in BROKEN:
        said = Post(f"/webhooks/{esp}/tracking/", body, headers={"Authorization": basic()})
        answer = send_post(said)
        assert answer.status_code in (200, 400), body
        refused += answer.status_code == 400
        if answer.status_code == 200:
            kinds = set(ProviderEvent.objects.values_list("kind", flat=True))
            assert kinds <= {"unknown"}, body
    assert refused >= len(BROKEN) - 4
    assert counts()[f"{NAMES[esp]} malformed"] == refused
    assert not any(record.exc_info for record in caplog.records if record.name != "django.request")
    tracking.apply_waiting()
    assert not Suppression.objects.exists()


@pytest.mark.parametrize("esp", SIGNED)
def test_garbage_at_a_provider_that_signs(esp: str) -> None:
    for body in BROKEN:
        said = Post(f"/webhooks/{esp}/tracking/", body, headers={"Authorization": basic()})
        assert send_post(said).status_code in (400, 403), body
    assert sum(counts().values()) == len(BROKEN)
    assert not ProviderEvent.objects.exists()


@pytest.mark.parametrize("esp", BATCHING)
def test_one_event_that_cannot_be_read_does_not_cost_the_others(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    events: list[Any] = [raw(esp, word, to=f"p{n}@example.org", number=n) for n in range(3)]
    broken = {
        "mailjet": {"email": "x"},
        "mailtrap": {"event": None},
        "mandrill": {"event": "send", "msg": []},
        "sendgrid": {"event": "delivered", "timestamp": "yesterday"},
        "sparkpost": {"msys": {"message_event": {"no": "type"}}},
        "unisender_go": {
            "event_name": "transactional_email_status",
            "event_data": {"status": "sent", "event_time": "never"},
        },
    }[esp]
    assert send_post(post(esp, [events[0], broken, *events[1:]])).status_code == 200
    kinds = list(ProviderEvent.objects.order_by("kind").values_list("kind", flat=True))
    assert (len(kinds), kinds.count("unreadable")) == (4, 1)
    assert counts() == {f"{NAMES[esp]} malformed": 1}
    assert send_post(post(esp, [broken])).status_code == 400


def test_wrong_types_inside_an_event_change_nothing() -> None:
    send = row(campaign_to(0), "in_doubt")
    for field, value in [
        ("recipient", ["a"]),
        ("Email", {"a": 1}),
        ("MessageID", 7.5),
        ("Metadata", {"job_id": {"a": 1}, "installation": None}),
        ("Details", ["550 5.1.1"]),
        ("BouncedAt", "yesterday"),
        ("ID", {"a": "\0"}),
        ("Type", 7),
    ]:
        event = {**about(send, "postmark", "Bounce"), field: value}
        assert send_post(post("postmark", [event])).status_code in (200, 400)
    nul = about(send, "postmark", "Bounce", reply="550 5.7.1 blocked \0 \ud800 \u4f60\u597d")
    assert send_post(post("postmark", [nul])).status_code == 200
    tracking.apply_waiting()
    assert status_of(send) in ("sent", "bounced")  # Details as a list: hard, by its Type


JUNK: list[Any] = [None, True, 0, -1, 1e300, 10**400, "", "x\0y", "\ud800", "9" * 5000, [], {}]


def spoiled(value: Any, dice: random.Random) -> Any:
    """A copy with one thing in it, at any depth, replaced by something of another kind."""
    if isinstance(value, dict | list) and value and dice.random() < 0.8:
        copy: Any = value.copy()
        key = dice.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
        copy[key] = spoiled(copy[key], dice)
        return copy
    return dice.choice(JUNK)


@pytest.mark.parametrize("esp", POSTED)
def test_any_part_of_an_event_may_be_anything(esp: str) -> None:
    """Signed as they should be, so that all of it is read."""
    dice = random.Random(f"webhooks of {esp}")
    send = row(campaign_to(0), "in_doubt")
    for number in range(30):
        word = ours(esp, dice.choice(["taken", "delivered", "complained"])) or "open"
        event = spoiled(about(send, esp, word, number=number), dice)
        assert send_post(post(esp, [event])).status_code in (200, 400, 403), event
    # Those of a provider without metadata would wait for an outcome.
    stored = ProviderEvent.objects.update(received=timezone.now() - timedelta(hours=1))
    done = 0
    while step := tracking.apply_waiting():
        done += step
    assert done == stored
    assert not ProviderEvent.objects.filter(result="error").exists()
    assert not Suppression.objects.exclude(reason="complaint").exists()


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00", "1970-01-01"]
)
def test_a_time_out_of_range_is_counted(at: str) -> None:
    send = row(campaign_to(0), "in_doubt")
    event = {**about(send, "postmark", "Delivery"), "DeliveredAt": at}
    assert send_post(post("postmark", [event])).status_code == 200
    tracking.apply_waiting()
    send.refresh_from_db()
    assert (send.status, counts()) == ("sent", {"Postmark odd_time": 1})
    assert send.sent_at is not None
    assert send.handed_at is not None
    assert send.sent_at >= send.handed_at


def test_a_huge_request_is_413_and_counted() -> None:
    body = json.dumps([raw("sendgrid", "delivered")] * 30).encode()
    said = Post("/webhooks/sendgrid/tracking/", body, headers={"Authorization": basic()})
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000):
        assert send_post(said).status_code == 413
    assert (counts(), ProviderEvent.objects.count()) == ({"SendGrid too_large": 1}, 0)
    form = post("mandrill", [raw("mandrill", "send")] * 20)
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000):
        assert send_post(form).status_code == 413
    assert counts() == {"SendGrid too_large": 1, "Mandrill too_large": 1}
