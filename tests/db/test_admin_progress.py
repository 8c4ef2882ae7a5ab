"""The progress page: who sees it, what it says, and that the database answers it cheaply."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns import hooks
from campaigns.models import Campaign
from sending import ledger, progress_page
from sending.models import DeliveryEvent, RateLimit, Send, TransportPause
from sending.progress_page import progress
from sending.watching_words import Mark, read_mark
from tests.factories import AccountFactory, CampaignFactory, SendFactory, WorkerFactory

from .commands import campaign_with
from .watched import of_each, page_url, told, viewer

pytestmark = pytest.mark.django_db


def body(client: Client, campaign: Campaign, page: str = "progress", **query: str) -> str:
    answer = client.get(page_url(page, campaign), query)
    assert answer.status_code == 200
    return answer.content.decode()


# --- who may ---------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["progress", "progress_state"])
def test_it_takes_the_permission_and_the_account(page: str) -> None:
    campaign = of_each()
    other = AccountFactory.create()
    url = page_url(page, campaign)

    assert viewer(campaign.account, "view_send").get(url).status_code == 200
    assert viewer(campaign.account, "view_campaign").get(url).status_code == 403
    assert Client().get(url).status_code == 302
    assert viewer(campaign.account, "view_send").post(url).status_code == 405
    # Another account's campaign is answered as one that there is not.
    stranger = viewer(other, "view_send")
    missing = page_url(page, Campaign(pk=campaign.pk + 1000))
    answers = [stranger.get(url), stranger.get(missing)]
    assert [answer.status_code for answer in answers] == [404, 404]
    bodies = [
        answer.content.decode().replace(str(campaign.pk + 1000), "#").replace(str(campaign.pk), "#")
        for answer in answers
    ]
    assert bodies[0] == bodies[1]


def test_the_verbs_are_for_whoever_may(superuser_client: Client) -> None:
    campaign = of_each()
    looks = body(viewer(campaign.account, "view_send", "view_campaign"), campaign)
    steers = body(
        viewer(campaign.account, "view_send", "view_campaign", "control_campaign"), campaign
    )

    assert "progress-pause" not in looks
    assert "progress-cancel" not in looks
    assert "progress-pause" in steers
    assert "progress-cancel" in steers
    assert "progress-resume" not in steers


def test_a_verb_comes_back_to_this_page_and_to_no_other_site() -> None:
    campaign = of_each()
    client = viewer(campaign.account, "view_send", "view_campaign", "control_campaign")
    url = page_url("progress", campaign)
    pause = f"/admin/sendonce_campaigns/campaign/{campaign.pk}/pause/"

    answer = client.post(pause, {"next": url})
    assert (answer.status_code, answer.headers["Location"]) == (302, url)
    assert Campaign.objects.get(pk=campaign.pk).status == "paused"
    for evil in ("https://evil.example.org/", "//evil.example.org", "javascript:alert(1)", ""):
        answer = client.post(pause, {"next": evil})
        assert answer.headers["Location"].endswith(f"/campaign/{campaign.pk}/change/")


def test_where_senders_run_and_what_they_wait_for_is_for_superusers(
    superuser_client: Client,
) -> None:
    campaign = of_each()
    WorkerFactory.create(host="secret.example.org", note="transport of others is paused")

    for codenames in (("view_send",), ("view_send", "view_worker")):
        shown = body(viewer(campaign.account, *codenames), campaign)
        assert "secret.example.org" not in shown
        assert "transport of others is paused" not in shown
        assert " senders alive</h2>" in shown
        assert "Together they hand over " in shown
    shown = body(superuser_client, campaign)
    assert "secret.example.org" in shown
    assert "transport of others is paused" in shown


# --- what it says ----------------------------------------------------------------------------


def test_its_numbers_are_the_ledgers(superuser_client: Client) -> None:
    campaign = campaign_with(
        {"queued": 5, "sent": 7, "bounced": 2, "failed": 1, "in_doubt": 3, "suppressed": 2}
    )
    found = progress(campaign)
    expected = ledger.counts(campaign)
    assert {**found.counts, "audience": found.audience} == expected
    assert found.holds
    page = body(superuser_client, campaign)
    assert "Every recipient is accounted for: 20 of 20." in page
    assert "status__exact=sent" in page
    assert "35.0\u00a0%" in page


def test_it_says_when_the_ledger_does_not_add_up(superuser_client: Client) -> None:
    campaign = campaign_with({"sent": 2}, audience=3)
    assert "1 of 3 recipients have no row" in body(superuser_client, campaign)


def test_an_audience_that_is_being_built_is_told(superuser_client: Client) -> None:
    campaign = campaign_with({"queued": 2}, built_at=None)
    page = body(superuser_client, campaign)
    assert "audience so far" in page
    assert "still being built" in page
    # Nobody knows the whole: no percent of it.
    assert "done</h2>" not in page


@pytest.mark.parametrize("status", ["draft", "approved", "sending", "paused", "sent", "canceled"])
def test_every_status_has_a_page(superuser_client: Client, status: str) -> None:
    trait = {} if status == "draft" else {status: True}
    campaign = CampaignFactory.create(**trait)
    page = body(superuser_client, campaign)
    moves = status in ("approved", "sending", "paused")
    assert ("data-poll=" in page) is moves
    assert ("progress.js" in page) is moves


def test_what_is_sent_and_in_doubt_is_not_called_done(superuser_client: Client) -> None:
    campaign = campaign_with({"sent": 3, "in_doubt": 2}, sending=False, sent=True)
    page = body(superuser_client, campaign)
    assert "Sent, 2 in doubt</h2>" in page
    assert "Nothing more leaves by itself. 2 are in doubt: somebody decides." in page
    assert "Nothing of it is open any more." not in page


def test_what_waits_is_not_called_being_sent(superuser_client: Client) -> None:
    campaign = campaign_with({"queued": 2})
    page = body(superuser_client, campaign)
    assert "Sending (waits)" in page
    assert "Nothing of it leaves just now." in page
    assert "It is being sent." not in page
    WorkerFactory.create()
    assert "It is being sent." in body(superuser_client, campaign)


def test_the_rate_is_of_this_campaigns_last_seconds() -> None:
    campaign = campaign_with({"sent": 30, "queued": 70})
    now = timezone.now()
    for place, send in enumerate(Send.objects.filter(campaign=campaign, status="sent")):
        Send.objects.filter(pk=send.pk).update(handed_at=now - timedelta(seconds=place))
    found = progress(campaign)
    assert 0.8 <= found.rate.per_second <= 1.1
    assert "for 70 more at this rate" in found.eta
    # Not of another's, and nothing where nothing leaves.
    idle = campaign_with({"sent": 3, "queued": 1})
    Send.objects.filter(campaign=idle).update(handed_at=now - timedelta(hours=1))
    assert progress(idle).rate.per_second == 0
    assert progress(idle).eta == ""


def test_the_rate_between_two_looks_is_exact() -> None:
    campaign = campaign_with({"sent": 30, "queued": 70})
    first = progress(campaign)
    earlier = Mark(first.looked.at - 60, first.looked.done - 15)
    found = progress(campaign, mark=earlier)
    assert found.rate_lately is not None
    assert found.rate_lately.per_second == pytest.approx(0.25, rel=0.05)
    assert found.mark == earlier


@pytest.mark.parametrize("mark", ["", "nonsense", "9999999999.0-5", "0.0-0", "1.0--5", "\x00"])
def test_a_wrong_mark_does_no_harm(superuser_client: Client, mark: str) -> None:
    assert "Lately" not in body(superuser_client, of_each(), mark=mark)


def test_retries_doubt_and_errors_are_told(superuser_client: Client) -> None:
    campaign = campaign_with({"retry": 3, "in_doubt": 2, "queued": 1})
    Send.objects.filter(campaign=campaign, status="in_doubt").update(reason="connection_lost")
    SendFactory.create(campaign=campaign, in_doubt=True, answer_code=500, reason="unreadable")
    told(campaign, "retry", 4, stage="rcpt", code=451, text="greylisted, wait 30 s",
         reason="greylisted")  # fmt: skip
    told(campaign, "delivered", 5, stage="webhook")
    found = progress(campaign)
    page = body(superuser_client, campaign)

    assert sum(number for _, number in found.retries.buckets) == 3
    assert {(doubt.number, "held" in doubt.becomes) for doubt in found.doubts} == {
        (2, True),
        (1, True),
    }
    assert [(one.kind, one.times) for one in found.errors] == [("retry", 4)]
    assert "no answer came (connection lost)" in page
    assert "the answer does not say whether it was taken (unreadable)" in page
    assert "at the recipient&#x27;s address: \u201c451 greylisted, wait 30 s\u201d" in page
    assert "3 in doubt" in page


def test_errors_of_other_campaigns_are_not_told() -> None:
    campaign = campaign_with({"queued": 1})
    sibling = campaign_with({"queued": 1}, account=campaign.account)
    told(sibling, "failed", text="of the sibling")
    told(campaign_with({"queued": 1}), "failed", text="of a stranger")
    assert progress(campaign).errors == []
    assert [one.text for one in progress(sibling).errors] == ["of the sibling"]


def test_what_stands_in_the_way_is_told(superuser_client: Client) -> None:
    campaign = campaign_with({"queued": 1})
    now = timezone.now()
    TransportPause.objects.create(
        alias=campaign.account.transport, stage="connect", reason="refused", probe_at=now
    )
    TransportPause.objects.create(
        alias=campaign.account.transport, account=AccountFactory.create(), stage="mail",
        reason="of somebody else", probe_at=now,
    )  # fmt: skip
    for key in ("domain:google", f"account:{AccountFactory.create().pk}"):
        RateLimit.objects.create(key=key, usual=20, rate=2, slowed_at=now, reason="busy")
    found = progress(campaign)
    page = body(superuser_client, campaign)

    assert "can&#x27;t be reached" in page
    assert "of somebody else" not in page
    assert [fact.key for fact in found.limits] == ["domain:google"]
    assert "mailboxes at google" in page
    assert "No sender is alive" in page
    assert "No sender is alive" in found.said


def test_senders_and_their_part_are_told(superuser_client: Client) -> None:
    campaign = campaign_with({"queued": 3})
    worker = WorkerFactory.create()
    WorkerFactory.create(ended=timezone.now())
    WorkerFactory.create(seen=timezone.now() - timedelta(days=2))
    SendFactory.create_batch(5, campaign=campaign, sent=True, worker=worker)
    found = progress(campaign)
    (line,) = found.workers
    assert (line.name, line.state) == (str(worker), "alive")
    assert line.rate == pytest.approx(0.5)
    assert "1 sender alive" in body(superuser_client, campaign)


def test_senders_for_another_campaign_are_not_counted_as_its_own(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_page, "WORKERS", 2)
    campaign = campaign_with({"queued": 3})
    WorkerFactory.create_batch(3, only_campaign=campaign.pk + 1)
    found = progress(campaign)
    assert (found.alive, found.elsewhere) == (0, 3)
    assert "No sender is alive that serves it" in found.said
    page = body(superuser_client, campaign)
    assert "No sender serves it" in page
    assert "alive, for another campaign alone" in page
    assert "And 1 more" in page
    WorkerFactory.create(only_campaign=campaign.pk)
    page = body(superuser_client, campaign)
    assert "1 sender alive" in page
    assert "3 more live that were started for another campaign alone" in page


def test_what_is_said_aloud_does_not_change_with_every_row() -> None:
    campaign = campaign_with({"queued": 20, "sent": 1})
    WorkerFactory.create()
    before = progress(campaign).said
    Send.objects.filter(pk__in=Send.objects.filter(campaign=campaign, status="queued")[:1]).update(
        status="suppressed"
    )
    assert progress(campaign).said == before == "Sending. 0 percent done."


# --- escaping, links, costs ------------------------------------------------------------------


def test_what_servers_say_is_text(superuser_client: Client) -> None:
    campaign = campaign_with({"queued": 1}, name="<i>Spring</i>")
    told(campaign, "failed", text="<script>alert(1)</script>", stage="dot", code=554)
    page = body(superuser_client, campaign)
    assert "<script>alert" not in page
    assert "<i>Spring" not in page


def test_the_fragment_is_the_same_without_the_frame(superuser_client: Client) -> None:
    campaign = of_each()
    fragment = body(superuser_client, campaign, "progress_state")
    assert "<html" not in fragment
    assert 'id="progress-state"' in fragment
    assert 'id="progress-ledger"' in fragment


def test_it_is_linked_from_the_campaign(rf: Any) -> None:
    campaign = of_each()
    request = viewer(campaign.account, "view_send").get("/admin/").wsgi_request
    request.resolver_match = None
    labels = [label for label, _ in hooks.links(campaign, request)]
    assert labels[:2] == ["Progress", "Report"]
    blind = viewer(campaign.account, "view_campaign").get("/admin/").wsgi_request
    assert hooks.links(campaign, blind) == []
    assert hooks.links(CampaignFactory.create(account=campaign.account), request) == []


def statements(client: Client, campaign: Campaign) -> int:
    with CaptureQueriesContext(
        connection,
    ) as caught:
        body(client, campaign)
    return len(caught)


def test_no_statement_per_row(superuser_client: Client) -> None:
    small, large = of_each(3), of_each(30)
    for campaign, number in ((small, 3), (large, 30)):
        told(campaign, "failed", number, text="no")
        WorkerFactory.create_batch(number)
    statements(superuser_client, small)
    assert statements(superuser_client, small) == statements(superuser_client, large) <= 35


def test_only_so_many_rows_are_looked_at() -> None:
    campaign = campaign_with({"retry": 5, "in_doubt": 5, "sent": 5})
    told(campaign, "failed", 5, text="no")
    with mock.patch.multiple(progress_page, SAMPLE=2, RETRIES=2, DOUBTS=2, EVENTS=2):
        found = progress(campaign)
    assert sum(one.times for one in found.errors) == 2
    assert found.doubt_more == 3
    assert found.retries.at_least
    assert sum(number for _, number in found.retries.buckets) == 5


def test_a_mark_is_carried_by_the_link_that_loads_it_again(superuser_client: Client) -> None:
    page = body(superuser_client, of_each())
    text = page.split("?mark=")[1].split('"')[0]
    assert read_mark(text) is not None
    assert DeliveryEvent.objects.count() == 0


def test_the_rate_is_looked_for_where_the_last_lot_is() -> None:
    """Before the rows in flight, and not at the end of those that wait."""
    campaign = campaign_with({"sent": 6, "claimed": 3, "queued": 20})
    with mock.patch.object(progress_page, "SAMPLE", 5):
        found = progress(campaign)
    # Two of the five are sent, the three before the front are claimed.
    assert found.rate.per_second * found.rate.over == pytest.approx(2)
    Send.objects.filter(campaign=campaign, status="claimed").update(status="suppressed")
    with mock.patch.object(progress_page, "SAMPLE", 5):
        assert progress(campaign).rate.per_second == 0
