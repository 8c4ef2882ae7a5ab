"""Answers that no rule knows, and what providers told, where staff look for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending.models import DeliveryEvent, Send
from tests.db.admin_pages import member_client, url
from tests.factories import SendFactory

pytestmark = pytest.mark.django_db

LIST = url(DeliveryEvent, "changelist")
GUESS = "unclassified: a cautious guess"


def event(send: Send, kind: str = "failed", **fields: Any) -> DeliveryEvent:
    return DeliveryEvent.objects.create(send=send, account=send.account, kind=kind, **fields)


def strange(send: Send, **fields: Any) -> DeliveryEvent:
    return event(
        send, reason="unclassified", known=False, stage="dot", code=571, text="odd", **fields
    )


@pytest.fixture
def send() -> Send:
    found: Send = SendFactory.create(failed=True, reason="unclassified")
    return found


def test_the_unclassified_answers_can_be_listed_alone(superuser_client: Client, send: Send) -> None:
    known, unknown = event(send, reason="policy"), strange(send)
    everything = superuser_client.get(LIST)
    assert list(everything.context["cl"].result_list) == [unknown, known]
    page = everything.content.decode()
    assert f"failed: {GUESS}" in page
    assert "failed: policy" in page
    for query, rows in (("known=no", [unknown]), ("known=nonsense", [unknown, known])):
        answer = superuser_client.get(f"{LIST}?{query}")
        assert list(answer.context["cl"].result_list) == rows


def test_the_filter_keeps_to_ones_own_account(send: Send) -> None:
    mine = SendFactory.create(failed=True)
    strange(send)
    own = strange(mine)
    client, _ = member_client(mine.account)
    answer = client.get(f"{LIST}?known=no")
    assert list(answer.context["cl"].result_list) == [own]


def test_the_filter_reads_the_index_of_unclassified_answers(
    superuser_client: Client, send: Send
) -> None:
    DeliveryEvent.objects.bulk_create(
        [DeliveryEvent(account=send.account, kind="retry") for _ in range(3000)]
    )
    strange(send)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {DeliveryEvent._meta.db_table}")
    with CaptureQueriesContext(connection) as caught:
        superuser_client.get(f"{LIST}?known=no&account={send.account_id}")
    asked = [q["sql"] for q in caught if '"known"' in q["sql"] and q["sql"].startswith("SELECT")]
    assert len(asked) == 2, "a count and a page"
    for statement in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {statement}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "sendonce_event_unclassified" in plan, plan
        assert f"Seq Scan on {DeliveryEvent._meta.db_table}" not in plan, plan


def test_an_event_says_what_happened_and_to_which_message(
    superuser_client: Client, send: Send
) -> None:
    row = event(
        send, "complained", stage="webhook", reason="complaint", text="abuse", event_id="X:1"
    )
    page = superuser_client.get(url(DeliveryEvent, "change", row.pk)).content.decode()
    for words in (
        "called spam by its recipient",
        "told later by the provider: \u201cabuse\u201d",
        "X:1",
        str(send),
    ):
        assert words in page, words
    gone = DeliveryEvent.objects.create(account=send.account, kind="bounced")
    assert superuser_client.get(url(DeliveryEvent, "change", gone.pk)).status_code == 200


def test_a_sends_story_marks_a_guess_and_tells_what_providers_said(
    superuser_client: Client, send: Send
) -> None:
    event(send, "bounced", reason="address_dead", known=False, stage="rcpt", code=553, attempt=1)
    event(send, "soft_bounce", stage="webhook", text="over quota", event_id="X:1")
    event(send, "replay", reason="decided")
    answer = superuser_client.get(url(Send, "change", send.pk))
    told = [(row["what"], row["why"], row["answer"]) for row in answer.context["story"]]
    assert told == [
        ("bounced", f"address dead, {GUESS}", "at the recipient's address: \u201c553\u201d"),
        ("bounced, for now", "-", "told later by the provider: \u201cover quota\u201d"),
        ("replay", "decided", "-"),
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "It is held until then, or until you decide."),
        ({"settle_at": timedelta(minutes=5)}, "The account&#x27;s policy settles it at"),
        (
            {"settle_at": timedelta(minutes=5), "replay_until": timedelta(hours=1)},
            "It is repeated under its key",
        ),
        (
            {"settle_at": timedelta(minutes=5), "replay_until": -timedelta(hours=1)},
            "policy settles it at",
        ),
    ],
)
def test_a_send_in_doubt_says_what_settles_it(
    superuser_client: Client, fields: dict[str, timedelta], words: str
) -> None:
    now = timezone.now()
    send = SendFactory.create(in_doubt=True, **{name: now + d for name, d in fields.items()})
    page = superuser_client.get(url(Send, "change", send.pk)).content.decode()
    assert words.replace("&#x27;", "'") in page


def test_the_list_makes_no_query_per_row(superuser_client: Client, send: Send) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            superuser_client.get(f"{LIST}?known=no")
        return len(caught)

    strange(send)
    queries()
    few = queries()
    for _ in range(5):
        strange(SendFactory.create(failed=True))
    assert queries() == few
