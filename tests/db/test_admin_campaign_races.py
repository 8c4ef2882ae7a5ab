"""The admin's verbs against each other and against a crash, on connections of their own."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.db import DatabaseError, connection, transaction
from django.test import Client

from campaigns import editing, hooks, lifecycle
from campaigns.admin import verbs
from campaigns.gate import enter_exclusive
from campaigns.models import Approval, Campaign
from sending import withdraw
from sending.models import Send
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, SendFactory, StaffFactory

from . import campaign_pages
from .campaign_pages import Status, approval_of, said, status_of, url
from .racing import Race

pytestmark = pytest.mark.django_db(transaction=True)

campaign = campaign_pages.campaign


def boss(name: str = "") -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True, **({"username": name} if name else {})))
    return client


def records() -> tuple[int, int]:
    return LogEntry.objects.count(), AuditEvent.objects.count()


def together(campaign: Campaign, *calls: Any) -> list[Any]:
    """What each call returns; all have read the campaign and stand before its gate when the
    first of them decides."""
    with Race() as race:
        with transaction.atomic(), connection.cursor() as cursor:
            enter_exclusive(cursor, campaign.pk)
            racers = [race.start(call) for call in calls]
            for racer in racers:
                racer.wait_until_blocked()
        return [racer.result() for racer in racers]


def test_of_two_approvers_at_once_one_approves_and_the_other_is_told(campaign: Campaign) -> None:
    clients = {name: boss(name) for name in ("zoe", "joe")}
    forms = {name: approval_of(client, campaign) for name, client in clients.items()}
    answers = dict(
        zip(
            clients,
            together(
                campaign,
                *(
                    lambda client=client, name=name: client.post(
                        url("approve", campaign.pk), forms[name]
                    )
                    for name, client in clients.items()
                ),
            ),
            strict=True,
        )
    )
    assert status_of(campaign) == Status.APPROVED
    assert records() == (1, 1)
    winner = Approval.objects.get().by_name
    (loser,) = set(clients) - {winner}
    assert f"{campaign}: approved. It starts" in said(answers[winner])
    assert f"{campaign}: it was approved already, by {winner}" in said(answers[loser])
    assert {answer.status_code for answer in answers.values()} == {302}


def test_a_double_click_approves_once_and_shows_no_error(campaign: Campaign) -> None:
    client = boss("zoe")
    form = approval_of(client, campaign)

    def click() -> Any:
        return client.post(url("approve", campaign.pk), form)

    answers = together(campaign, click, click)
    assert status_of(campaign) == Status.APPROVED
    assert records() == (1, 1)
    levels = sorted(
        message.level_tag for answer in answers for message in get_messages(answer.wsgi_request)
    )
    assert levels == ["info", "success"]


def test_an_edit_that_comes_between_look_and_decision_is_shown(campaign: Campaign) -> None:
    client = boss()
    form = approval_of(client, campaign)
    with Race() as race:
        with transaction.atomic():
            editing.edit(campaign, version=campaign.version, values={"name": "Renamed"})
            approving = race.start(lambda: client.post(url("approve", campaign.pk), form))
            approving.wait_until_blocked()
        answer = approving.result()
    assert answer.status_code == 200
    assert "the campaign was changed since this page was shown" in answer.content.decode()
    assert "Renamed" in answer.content.decode()
    assert status_of(campaign) == Status.DRAFT
    assert records() == (0, 0)


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_two_at_once_do_it_once(verb: str) -> None:
    running = CampaignFactory.create(sending=True)
    first, second = boss(), boss()
    answers = together(
        running,
        lambda: first.post(url(verb, running.pk)),
        lambda: second.post(url(verb, running.pk)),
    )
    assert records() == (1, 1)
    words = sorted(said(answer) for answer in answers)
    done = {"pause": "paused", "cancel": "canceled"}[verb]
    assert words == sorted(
        [f"{running}: {done}.", f"{running}: it is {done} already, nothing was changed."]
    )


def test_a_cancel_that_comes_while_it_finishes_gets_one_plain_answer() -> None:
    running = CampaignFactory.create(sending=True)
    client = boss()
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.filter(pk=running.pk).update(built_at=running.started_at)
            assert lifecycle.finish(running)
            canceling = race.start(lambda: client.post(url("cancel", running.pk)))
            canceling.wait_until_blocked()
        answer = canceling.result()
    assert status_of(running) == Status.SENT
    assert said(answer) == (f"{running}: everything had left before, there is nothing to cancel.")
    assert records() == (0, 0)


@pytest.mark.parametrize(
    ("verb", "trait"),
    [("pause", "sending"), ("resume", "paused"), ("cancel", "sending"), ("withdraw", "approved")],
)
def test_who_dies_before_the_record_has_done_nothing(
    verb: str, trait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is changed, the record is not yet written, and the session is gone."""
    campaign = CampaignFactory.create(**{trait: True})
    client = boss()
    with Race() as race:
        halt = race.halt()
        for name in ("withdraw", "pause", "resume", "close"):
            monkeypatch.setattr(lifecycle, name, halt.behind(getattr(lifecycle, name)))
        dying = race.start_to(halt, lambda: client.post(url(verb, campaign.pk)))
        dying.kill_backend()
        halt.released.set()
        with pytest.raises(DatabaseError):
            dying.result()
    assert status_of(campaign) == trait
    assert records() == (0, 0)


def test_who_dies_after_the_record_has_canceled_and_a_sender_cancels_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = SendFactory.create()
    client = boss()

    class Killed(BaseException):
        pass

    def killed(campaign_id: int) -> int:
        raise Killed

    monkeypatch.setattr(hooks, "cancel_rows", killed)
    with pytest.raises(Killed):
        client.post(url("cancel", send.campaign_id))
    assert status_of(send.campaign) == Status.CANCELED
    assert records() == (1, 1)
    send.refresh_from_db()
    assert send.status == Send.Status.QUEUED
    assert withdraw.finish_cancels() == 1
    send.refresh_from_db()
    assert send.status == Send.Status.CANCELED


def test_rows_that_could_not_be_canceled_are_left_to_a_sender_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = SendFactory.create()

    def failing(campaign_id: int) -> int:
        raise DatabaseError("canceling statement due to statement timeout")

    monkeypatch.setattr(hooks, "cancel_rows", failing)
    answer = boss().post(url("cancel", send.campaign_id))
    assert answer.headers["Location"] == url("change", send.campaign_id)
    assert f"{send.campaign}: canceled." in said(answer)
    assert "a sender marks them as canceled" in said(answer)
    assert records() == (1, 1)


def test_the_commit_whose_answer_is_lost_is_found_by_the_second_click(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = boss("zoe")
    form = approval_of(client, campaign)
    real = verbs.VerbAdmin._attempt

    def lost(*args: Any, **kwargs: Any) -> Any:
        assert real(*args, **kwargs) is None
        raise DatabaseError("server closed the connection unexpectedly")

    with monkeypatch.context() as patched:
        patched.setattr(verbs.VerbAdmin, "_attempt", lost)
        with pytest.raises(DatabaseError):
            client.post(url("approve", campaign.pk), form)
    answer = client.post(url("approve", campaign.pk), form)
    assert "it was approved already, by you" in said(answer)
    assert Approval.objects.count() == 1
    assert records() == (1, 1)


def test_more_rows_than_somebody_waits_for_are_left_to_a_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = SendFactory.create()
    SendFactory.create(campaign=send.campaign)
    monkeypatch.setattr(verbs, "ROWS_AT_ONCE", 1)
    answer = boss().post(url("cancel", send.campaign_id))
    assert "nothing more of it leaves" in said(answer)
    assert status_of(send.campaign) == Status.CANCELED
    assert records() == (1, 1)
    assert withdraw.finish_cancels() == 2
