"""Why did this person not get it? The whole story of one address, as ``sender_status`` tells it."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from sending.models import DeliveryEvent, Send
from tests.factories import SendFactory

pytestmark = pytest.mark.django_db


def told(send: Send, *arguments: str) -> str:
    out = io.StringIO()
    call_command("sender_status", "--address", str(send.email), *arguments, stdout=out)
    return out.getvalue()


def event(send: Send, kind: str, **fields: Any) -> None:
    DeliveryEvent.objects.create(send=send, account=send.account, kind=kind, **fields)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"kind": "retry", "stage": "rcpt", "code": 451, "text": "4.7.1 wait",
             "enhanced": "4.7.1", "reason": "greylisted", "attempt": 1},
            "retry (greylisted) attempt 1 at rcpt: 451 4.7.1 wait",
        ),
        (
            {"kind": "failed", "stage": "dot", "code": 571, "text": "odd",
             "reason": "unclassified", "known": False},
            "failed (unclassified: a cautious guess) at dot: 571 odd",
        ),
        (
            {"kind": "bounced", "stage": "rcpt", "code": 553, "reason": "address_dead",
             "known": False},
            "bounced (address dead, unclassified: a cautious guess) at rcpt: 553",
        ),
        (
            {"kind": "in_doubt", "stage": "http", "text": "read timed out", "reason": "timeout"},
            "in doubt (timeout) at http: read timed out",
        ),
        (
            {"kind": "in_doubt", "stage": "dot", "text": "connection lost: reset", "attempt": 1,
             "reason": "connection_lost"},
            " in doubt attempt 1 at dot: connection lost: reset",
        ),
        (
            {"kind": "delivered", "stage": "webhook", "code": 250, "text": "2.0.0 OK"},
            "delivered, the provider says: 250 2.0.0 OK",
        ),
        (
            {"kind": "hard_bounce", "stage": "webhook", "code": 550, "text": "no such user",
             "reason": "address_dead"},
            "bounced, for good (address dead), the provider says: 550 no such user",
        ),
        (
            {"kind": "soft_bounce", "stage": "webhook", "text": "over quota",
             "reason": "mailbox_full"},
            "bounced, for now (mailbox full), the provider says: over quota",
        ),
        (
            {"kind": "complained", "stage": "webhook", "reason": "complaint"},
            "called spam by its recipient (complaint)",
        ),
        (
            {"kind": "rejected", "stage": "webhook", "reason": "provider_rejected",
             "text": "on our suppression list"},
            "refused by the provider (provider rejected), the provider says: on our suppression",
        ),
        (
            {"kind": "send_again", "reason": "decided", "by_name": "ann"},
            "send again (decided) by ann",
        ),
    ],
)  # fmt: skip
def test_everything_that_was_no_success_is_told(fields: dict[str, Any], line: str) -> None:
    send = SendFactory.create(failed=True)
    event(send, **fields)
    lines = told(send).splitlines()
    assert line in lines[-1]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"in_doubt": True}, "It is held for evidence or a person."),
        (
            {"in_doubt": True, "settle_at": 50, "replay_until": 3600},
            "It is repeated under its key, which can't deliver it twice, until 20",
        ),
        ({"in_doubt": True, "settle_at": 50}, "The account's policy settles it: that in "),
        ({"in_doubt": True, "settle_at": -5}, "The account's policy settles it: that is due."),
        (
            {"retry": True, "next_attempt_at": -1, "replays": 1, "answer_code": None},
            "Handed over and no answer came; its repetition under its key is due",
        ),
        (
            {"retry": True, "next_attempt_at": 50, "reason": "rate_limited", "attempts": 0},
            "It waits for its turn, because of a rate limit; the turn in ",
        ),
        ({"retry": True, "next_attempt_at": 50}, "Refused for now, once, tried again in "),
    ],
)
def test_what_comes_next_is_told(row: dict[str, Any], words: str) -> None:
    now = timezone.now()
    at = {
        name: now + timedelta(seconds=value)
        for name, value in row.items()
        if name in ("settle_at", "replay_until", "next_attempt_at")
    }
    assert words in told(SendFactory.create(**{**row, **at}))


def test_as_json_a_guess_and_a_replay_are_told_too() -> None:
    until = timezone.now() + timedelta(hours=1)
    send = SendFactory.create(in_doubt=True, settle_at=until, replay_until=until, replays=2)
    event(send, "failed", known=False, reason="unclassified")
    (chapter,) = json.loads(told(send, "--json"))["chapters"]
    assert (chapter["replays"], bool(chapter["replay_until"]), bool(chapter["settle_at"])) == (
        2,
        True,
        True,
    )
    assert [found["known"] for found in chapter["events"]] == [False]
