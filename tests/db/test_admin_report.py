"""The report: the ledger's numbers, by hour, also of what was pruned; and who may take it along."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from campaigns.models import Campaign
from sending import ledger, pruning
from sending.models import Send
from sending.reporting import Hour, by_hour, columns_of, domains, outcomes, reached, report
from subscribers.models import AuditEvent
from tests.factories import AccountFactory, CampaignFactory, SendFactory

from .commands import campaign_with
from .watched import of_each, page_url, told, viewer

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, 9, 40, tzinfo=UTC)
MANY = {"sent": 7, "bounced": 2, "failed": 1, "suppressed": 2}


def body(client: Client, campaign: Campaign) -> str:
    answer = client.get(page_url("report", campaign))
    assert answer.status_code == 200
    return answer.content.decode()


def numbers(campaign: Campaign) -> dict[str, int]:
    return {one.status: one.number for one in report(campaign).outcomes}


# --- the numbers -----------------------------------------------------------------------------


def test_its_numbers_are_the_ledgers(superuser_client: Client) -> None:
    campaign = campaign_with(MANY, sending=False, sent=True)
    Send.objects.filter(campaign=campaign, status="failed").update(reason="mailbox_full")
    found, counted = report(campaign), ledger.counts(campaign)

    assert found.holds
    assert found.audience == counted["audience"]
    assert {one.status: one.number for one in found.outcomes} == {
        status: counted[status] for status in (*MANY, "in_doubt")
    }
    page = body(superuser_client, campaign)
    assert "7 sent" in page
    assert "mailbox full" in page
    assert "Every recipient is accounted for: 12 of 12." in page


def test_what_is_still_to_come_is_told(superuser_client: Client) -> None:
    campaign = of_each(2)
    found = report(campaign)
    assert found.still_open == 8
    assert "8 still to come" in body(superuser_client, campaign)


def test_what_came_back_is_counted(superuser_client: Client) -> None:
    campaign = campaign_with({"sent": 10}, sending=False, sent=True)
    told(campaign, "complained", 2, stage="webhook")
    told(campaign, "unsubscribed", 3, stage="webhook")
    told(campaign, "delivered", 5, stage="webhook")
    told(campaign_with({"sent": 1}), "complained", 4)
    found = {one.kind: (one.number, one.share) for one in report(campaign).told}
    assert found == {"complained": (2, 20), "unsubscribed": (3, 30), "delivered": (5, 50)}


@pytest.mark.parametrize("status", ["draft", "approved", "sending", "paused", "sent", "canceled"])
def test_every_status_has_a_report(superuser_client: Client, status: str) -> None:
    trait = {} if status == "draft" else {status: True}
    page = body(superuser_client, CampaignFactory.create(**trait))
    assert ("nothing to report" in page) is (status in ("draft", "approved", "canceled"))


def test_a_pruned_campaign_keeps_its_numbers(superuser_client: Client) -> None:
    campaign = campaign_with(MANY, sending=False, sent=True)
    before, hours = numbers(campaign), report(campaign).hours
    then = timezone.now() - timedelta(days=400)
    Campaign.objects.filter(pk=campaign.pk).update(finished_at=then)
    rows = Send.objects.filter(campaign=campaign)
    rows.filter(handed_at__isnull=False).update(handed_at=then)
    rows.filter(sent_at__isnull=False).update(sent_at=then)
    list(pruning.prune(campaign.pk, days=180))
    campaign.refresh_from_db()

    assert not Send.objects.filter(campaign=campaign).exists()
    assert numbers(campaign) == before
    assert [(hour.sent, hour.bounced) for hour in report(campaign).hours] == [
        (hour.sent, hour.bounced) for hour in hours
    ]
    page = body(superuser_client, campaign)
    assert "Its rows were archived: they are counted here, and who got it is not kept." in page
    assert "By recipient domain" not in page


def test_domains_are_drawn_from_the_rows(superuser_client: Client) -> None:
    campaign = campaign_with({}, sending=False, sent=True)
    for number, domain in ((3, "a.example.org"), (1, "b.example.org")):
        for place in range(number):
            SendFactory.create(campaign=campaign, sent=True, email=f"p{place}@{domain}")
    SendFactory.create(campaign=campaign, bounced=True, email="gone@A.example.org")
    listed, drawn, every = domains(campaign.pk)
    assert [(one.name, one.number, one.sent, one.bounced) for one in listed] == [
        ("a.example.org", 4, 3, 1),
        ("b.example.org", 1, 1, 0),
    ]
    assert (drawn, every) == (5, 2)
    assert "not a count of all" in body(superuser_client, campaign)


# --- pure ------------------------------------------------------------------------------------


def test_reasons_come_with_their_status_most_first() -> None:
    found = outcomes(
        {("failed", "policy"): 1, ("failed", "mailbox_full"): 5, ("sent", ""): 4,
         ("suppressed", "unsubscribed"): 2, ("failed", ""): 1},
        12,
    )  # fmt: skip
    by_status = {one.status: one for one in found}
    assert by_status["failed"].reasons == [
        ("mailbox full", 5), ("policy", 1), ("no reason recorded", 1)
    ]  # fmt: skip
    assert by_status["sent"].reasons == []
    assert "canceled" not in by_status
    assert by_status["in_doubt"].number == 0


def hour(at: int, **given: int) -> Hour:
    names = ("sent", "bounced", "failed", "complained", "unsubscribed")
    since = START.replace(minute=0) + timedelta(hours=at)
    return Hour(since, **{**dict.fromkeys(names, 0), **given})


def test_hours_without_anything_are_left_out_and_filled_in_the_drawing() -> None:
    at = [START.replace(minute=0) + timedelta(hours=n) for n in range(4)]
    found = by_hour(
        [(at[0], "queued", "", 9), (at[0], "sent", "", 5), (at[3], "sent", "", -1),
         (at[3], "bounced", "address_dead", 1), (at[1], "claimed", "", 2)],
        [(at[3], "complained", "", 2), (at[2], "opened", "", 7)],
    )  # fmt: skip
    assert found == [hour(0, sent=5), hour(3, sent=-1, bounced=1, complained=2)]
    shown, width = columns_of(found)
    assert width == timedelta(hours=1)
    assert [one.sent for one in shown] == [5, 0, 0, -1]


def test_a_long_time_is_drawn_by_days() -> None:
    shown, width = columns_of([hour(0, sent=5), hour(24 * 200, sent=2, unsubscribed=1)])
    assert width == timedelta(days=5)
    assert len(shown) <= 48
    assert (sum(one.sent for one in shown), shown[-1].unsubscribed) == (7, 1)
    assert columns_of([])[0] == []


def test_how_fast_is_counted_by_the_clocks_hours() -> None:
    found = reached([hour(0, sent=60), hour(1, sent=30), hour(5, sent=10)], START, 100)
    assert [(one.title, one.number, one.share) for one in found] == [
        ("first hour", 90, 90), ("first day", 100, 100)
    ]  # fmt: skip
    assert reached([], START, 0) == []
    assert reached([hour(0, sent=1)], None, 1) == []


# --- who may, and the files ------------------------------------------------------------------


def export(client: Client, campaign: Campaign, what: str) -> Any:
    return client.post(page_url("report_export", campaign), {"what": what})


def test_it_takes_the_permission_and_the_account() -> None:
    campaign = of_each()
    stranger = viewer(AccountFactory.create(), "view_send", "export_subscriber")
    url = page_url("report", campaign)

    assert viewer(campaign.account, "view_send").get(url).status_code == 200
    assert viewer(campaign.account, "view_campaign").get(url).status_code == 403
    assert stranger.get(url).status_code == 404
    for what in ("hours", "sends"):
        assert export(stranger, campaign, what).status_code == 404
    assert not AuditEvent.objects.exists()


def test_addresses_are_for_whoever_may_export_people() -> None:
    campaign = of_each()
    looks = viewer(campaign.account, "view_send")
    takes = viewer(campaign.account, "view_send", "export_subscriber")

    assert "Every recipient (CSV)" not in body(looks, campaign)
    assert export(looks, campaign, "sends").status_code == 403
    assert export(looks, campaign, "hours").status_code == 200
    assert export(takes, campaign, "sends").status_code == 200
    assert export(takes, campaign, "nonsense").status_code == 403
    assert takes.get(page_url("report_export", campaign)).status_code == 405
    verbs = list(AuditEvent.objects.order_by("pk").values_list("verb", "subject", "detail"))
    assert verbs == [
        ("campaign.export_hours", str(campaign), {"campaign": campaign.pk}),
        ("campaign.export_sends", str(campaign), {"campaign": campaign.pk}),
    ]


def rows_of(answer: Any) -> list[list[str]]:
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "no-store" in answer["Cache-Control"]
    text = b"".join(answer.streaming_content).decode()
    return list(csv.reader(io.StringIO(text, newline="")))


def test_every_row_is_in_the_file_and_no_formula(superuser_client: Client) -> None:
    campaign = campaign_with({"sent": 600, "queued": 1}, account__timezone="Europe/Paris")
    SendFactory.create(
        campaign=campaign, failed=True, email="=cmd@example.org", answer_text="=1+1; =2",
        answer_stage="", reason="policy",
    )  # fmt: skip
    SendFactory.create(campaign=campaign, suppressed=True, email=None, email_hash="0" * 64)
    other = of_each()
    header, *rows = rows_of(export(superuser_client, campaign, "sends"))

    assert header == [
        "address", "status", "why", "last answer", "attempts", "handed over", "sent"
    ]  # fmt: skip
    assert len(rows) == 603
    assert {row[1] for row in rows} == {"sent", "queued", "failed", "suppressed"}
    failed = next(row for row in rows if row[1] == "failed")
    assert failed[0] == "'=cmd@example.org"
    assert failed[3].startswith("'=1+1; '=2")
    assert rows[-1][0] == ""
    assert rows[0][6][-6:] in ("+01:00", "+02:00")
    theirs = set(Send.objects.filter(campaign=other).values_list("email", flat=True))
    assert not theirs & {row[0] for row in rows}


def test_the_hours_of_the_file_add_up(superuser_client: Client) -> None:
    campaign = campaign_with(MANY, account__timezone="Asia/Kolkata")
    told(campaign, "complained", 2, stage="webhook")
    header, *rows = rows_of(export(superuser_client, campaign, "hours"))

    assert header == ["hour", "what", "which", "why", "number"]
    sums: dict[tuple[str, str], int] = {}
    for _, what, which, _, number in rows:
        sums[what, which] = sums.get((what, which), 0) + int(number)
    assert {which: n for (what, which), n in sums.items() if what == "status" and n} == MANY
    assert sums["event", "complained"] == 2
    assert all(row[0].endswith("+05:30") for row in rows)
