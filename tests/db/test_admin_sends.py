"""The ledger in the admin: a story, a decision about doubt, workers, pauses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from campaigns.models import Campaign
from sending import status as sending_status
from sending.models import DeliveryEvent, Send, TransportPause, Worker
from subscribers.database_clock import database_time
from tests.db.admin_pages import member_client, run_action, url
from tests.factories import (
    AccountFactory,
    SendFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

# --- doubt ---------------------------------------------------------------------------------------


@pytest.fixture
def doubtful() -> Send:
    found: Send = SendFactory.create(
        in_doubt=True, campaign__sending=False, campaign__sent=True, answer_text="no answer"
    )
    return found


def test_which_sender_had_it_is_for_superusers(superuser_client: Client) -> None:
    send = SendFactory.create(
        campaign__sending=True, claimed=True, worker=WorkerFactory.create(host="secret.example.org")
    )
    page = url(Send, "change", send.pk)
    member, _ = member_client(send.account)
    assert "secret.example.org" not in member.get(page).content.decode()
    assert "secret.example.org" in superuser_client.get(page).content.decode()


def test_a_send_tells_its_story(superuser_client: Client, doubtful: Send) -> None:
    DeliveryEvent.objects.create(
        send=doubtful,
        account=doubtful.account,
        kind="in_doubt",
        stage="dot",
        reason="connection_lost",
        text="<b>gone</b>",
        attempt=1,
    )
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert "after the whole message: &lt;b&gt;gone&lt;/b&gt;" in page
    assert "connection lost" in page
    assert 'value="send_again"' in page
    assert 'value="treat_as_sent"' in page


def test_a_story_says_each_part_of_an_answer_once_and_leaves_nothing_out(
    superuser_client: Client, doubtful: Send
) -> None:
    events = [
        DeliveryEvent(
            send=doubtful,
            account=doubtful.account,
            kind="failed",
            stage="dot",
            code=550,
            enhanced="5.7.1",
            text="5.7.1 blocked",
            attempt=number,
        )
        for number in range(1, 206)
    ]
    DeliveryEvent.objects.bulk_create(events)
    Send.objects.filter(pk=doubtful.pk).update(
        answer_code=451, answer_enhanced="4.7.1", answer_text="4.7.1 later"
    )
    answer = superuser_client.get(url(Send, "change", doubtful.pk))
    assert len(answer.context["story"]) == 205
    page = answer.content.decode()
    assert "after the whole message: \u201c550 5.7.1 blocked\u201d" in page
    assert "after the whole message: \u201c451 4.7.1 later\u201d" in page


@pytest.mark.parametrize(
    ("fields", "state"),
    [({}, "alive"), ({"seen": timedelta(seconds=30)}, "lost"), ({"ended": timedelta()}, "ended")],
)
def test_a_worker_is_what_sender_status_says(
    superuser_client: Client, fields: dict[str, timedelta], state: str
) -> None:
    now = timezone.now()
    worker = WorkerFactory.create(**{name: now - ago for name, ago in fields.items()})
    page = superuser_client.get(url(Worker, "changelist")).content.decode()
    assert f'<span class="sendonce-{state}">{state}</span>' in page
    assert superuser_client.get(url(Worker, "change", worker.pk)).status_code == 200
    facts = {fact.id: fact.state for fact in sending_status.workers(database_time())}
    assert facts[worker.pk] == state


def test_sending_again_asks_first_and_reopens_the_campaign(
    superuser_client: Client, doubtful: Send
) -> None:
    asked = run_action(superuser_client, Send, "send_again", doubtful)
    assert "would get it twice" in asked.content.decode()
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.IN_DOUBT

    run_action(superuser_client, Send, "send_again", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.QUEUED
    assert Campaign.objects.get().status == Campaign.Status.SENDING
    assert DeliveryEvent.objects.get(kind="send_again").by_name.startswith("staff")


def test_nobody_who_has_failed_is_said_to_get_it_twice(superuser_client: Client) -> None:
    failed = SendFactory.create(failed=True)
    asked = run_action(superuser_client, Send, "send_again", failed).content.decode()
    assert "twice" not in asked
    assert "is sending again until these are done" in asked


@pytest.mark.parametrize(
    ("code", "words"),
    [(None, "and no answer came"), (500, "and the answer does not say whether it was taken")],
)
def test_a_doubt_says_whether_an_answer_came(
    superuser_client: Client, doubtful: Send, code: int | None, words: str
) -> None:
    Send.objects.update(answer_code=code)
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert f"The message was handed over {words}: it may have arrived or not." in page


def test_a_story_is_told_in_the_order_of_time(superuser_client: Client, doubtful: Send) -> None:
    now = timezone.now()
    for minutes, text in ((1, "later"), (5, "earlier")):
        DeliveryEvent.objects.create(
            send=doubtful, account=doubtful.account, kind="retry", text=text,
            at=now - timedelta(minutes=minutes),
        )  # fmt: skip
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert page.index("earlier") < page.index(">later")


def test_treating_as_sent(superuser_client: Client, doubtful: Send) -> None:
    run_action(superuser_client, Send, "treat_as_sent", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.SENT


def test_deciding_leaves_rows_in_other_states_alone(superuser_client: Client) -> None:
    sent = SendFactory.create(sent=True)
    failed = SendFactory.create(failed=True)
    answer = run_action(superuser_client, Send, "send_again", sent, failed, confirmed="yes")
    assert answer.status_code == 302
    sent.refresh_from_db()
    failed.refresh_from_db()
    assert (sent.status, failed.status) == (Send.Status.SENT, Send.Status.QUEUED)


def test_a_row_of_a_canceled_campaign_is_not_offered_again_and_that_is_said(
    superuser_client: Client,
) -> None:
    canceled = {"campaign__sending": False, "campaign__canceled": True}
    doubtful = SendFactory.create(in_doubt=True, **canceled)
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert 'value="send_again"' not in page
    assert 'value="treat_as_sent"' in page
    assert "The campaign is canceled: nothing of it is sent again." in page
    failed = SendFactory.create(failed=True, **canceled)
    page = superuser_client.get(url(Send, "change", failed.pk)).content.decode()
    assert "your decision" not in page


def test_what_a_decision_left_is_said_with_the_reason(
    superuser_client: Client, doubtful: Send
) -> None:
    canceled = SendFactory.create(in_doubt=True, campaign__sending=False, campaign__canceled=True)
    held = SendFactory.create(in_doubt=True, lease_until=timezone.now() + timedelta(minutes=1))
    single = SendFactory.create(
        transactional=True, in_doubt=True, lease_until=timezone.now() + timedelta(minutes=1)
    )
    answer = run_action(
        superuser_client, Send, "send_again", doubtful, canceled, held, single, confirmed="yes"
    )
    assert [str(message) for message in get_messages(answer.wsgi_request)] == [
        "Send again: 1 of 4 rows.",
        "1 left as before: the campaign is canceled, nothing of it is sent again.",
        "2 left as before: the sender that held it may still live, try again in a minute.",
    ]


def test_deciding_needs_its_own_permission(doubtful: Send) -> None:
    client, user = member_client(doubtful.account)
    user.user_permissions.remove(Permission.objects.get(codename="resolve_doubt"))
    run_action(client, Send, "send_again", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.IN_DOUBT
    assert "send_again" not in client.get(url(Send, "change", doubtful.pk)).content.decode()


def test_a_pause_is_shown_to_whose_mail_it_holds_up() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    now = timezone.now()
    shared = TransportPause.objects.create(alias="default", stage="connect", probe_at=now)
    elsewhere = TransportPause.objects.create(alias="x", stage="connect", probe_at=now)
    assert client.get(url(TransportPause, "change", shared.pk)).status_code == 200
    assert client.get(url(TransportPause, "change", elsewhere.pk)).status_code == 302
