"""The list of sends shows what a plain query would, page by page, without reading the table."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Q
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns.models import Campaign
from sending.admin import send_lists
from sending.models import ArchivedCount, Send
from subscribers import paging
from subscribers.models import Account
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, CampaignFactory, ContentFactory

pytestmark = pytest.mark.django_db
PER_PAGE, LIMIT = 7, 40


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pages, and few of them; every search is looked for in the runs."""
    monkeypatch.setattr(admin.site._registry[Send], "list_per_page", PER_PAGE)
    monkeypatch.setattr(admin.site._registry[Send], "list_max_show_all", 0)
    monkeypatch.setattr(paging.BoundedPaginator, "limit", LIMIT)
    monkeypatch.setattr(send_lists, "FEW", -1)


def sends(account: Account, campaign: Campaign | None, number: int, dice: random.Random) -> None:
    """Rows of any status; their ids are interleaved with those of other campaigns by the caller."""
    now, content = timezone.now(), None if campaign else ContentFactory.create(account=account)
    made = []
    for _ in range(number):
        status = dice.choice(Send.Status.values)
        held = {"claim_token": uuid4(), "lease_until": now, "handed_at": now, "attempts": 1}
        single = {"content": content, "context": {}, "expires": now} if content else {}
        closed = {"sent": {"sent_at": now}, "retry": {"next_attempt_at": now}}.get(status, {})
        made.append(
            Send(
                account=account, campaign=campaign, status=status,
                email=f"{dice.choice('abc')}{dice.choice('abc')}-{uuid4()}@example.org",
                job_id=f"message:{uuid4()}",
                **single, **closed,
                **(held if status in ("claimed", "sending", "in_doubt") else {}),
            )
        )  # fmt: skip
    Send.objects.bulk_create(made)


@pytest.fixture(params=range(2))
def accounts(request: pytest.FixtureRequest) -> list[Account]:
    """Three accounts with campaigns, some without a row, some pruned, and single messages."""
    dice = random.Random(request.param)
    found = AccountFactory.create_batch(3)
    campaigns = [CampaignFactory.create(account=dice.choice(found)) for _ in range(9)]
    for campaign in dice.choices([*campaigns[1:], None, None], k=14):
        account = campaign.account if campaign else dice.choice(found)
        sends(account, campaign, dice.randrange(12), dice)
    pruned = Send.objects.filter(campaign=dice.choice(campaigns), status="sent")
    for row in pruned:
        archived, _ = ArchivedCount.objects.get_or_create(
            campaign=row.campaign, status="sent", defaults={"number": 1, "at": timezone.now()}
        )
        ArchivedCount.objects.filter(pk=archived.pk).update(number=pruned.count())
    pruned.delete()
    return found


def expected(rows: Any) -> list[int]:
    """By the plain meaning of the order, without the database's."""
    keys = [(-1 if s.campaign_id is None else s.campaign_id, s.account_id, s.pk) for s in rows]
    return [pk for _, _, pk in sorted(keys, reverse=True)]


def walked(user: Any, query: dict[str, Any]) -> tuple[list[int], str]:
    """The ids of all pages, in order, and the number that they tell."""
    request = RequestFactory().get(url(Send, "changelist"), query)
    request.user = user
    shown = admin.site._registry[Send].get_changelist_instance(request)
    first = [row.pk for row in shown.result_list]
    pages = shown.paginator
    found = [row.pk for n in pages.page_range for row in pages.page(n).object_list]
    assert found[: len(first)] == first
    assert len(first) == min(len(found), PER_PAGE)
    return found, str(shown.result_count)


def questions(accounts: list[Account]) -> Iterator[tuple[dict[str, Any], Q]]:
    statuses: list[tuple[dict[str, Any], Q]] = [
        ({}, Q()),
        *(({"status__exact": s}, Q(status=s)) for s in ("sent", "queued", "failed")),
    ]
    campaign = Send.objects.filter(campaign__isnull=False).values_list("campaign_id", flat=True)[0]
    both = Q(account=accounts[0], campaign=campaign)
    whose: list[tuple[dict[str, Any], Q]] = [
        ({}, Q()),
        ({"account": accounts[1].pk}, Q(account=accounts[1])),
        ({"campaign": campaign}, Q(campaign=campaign)),
        ({"campaign": "none"}, Q(campaign=None)),
        ({"account": accounts[0].pk, "campaign": campaign}, both),
    ]  # fmt: skip
    search: list[tuple[dict[str, Any], Q]] = [({}, Q()), ({"q": "a"}, Q(email__startswith="a"))]
    for parts in (
        *product(statuses, whose, search[:1]),
        *product(statuses[:2], whose[:4], search[1:]),
    ):
        asked: dict[str, Any] = {}
        wanted = Q()
        for given, meant in parts:
            asked |= given
            wanted &= meant
        yield asked, wanted


@pytest.mark.parametrize("who", ["superuser", "one", "two", "none"])
def test_every_page_is_that_of_the_plain_query(accounts: list[Account], who: str) -> None:
    mine = {"superuser": accounts, "one": accounts[:1], "two": accounts[1:], "none": []}[who]
    _, user = member_client(*mine)
    user.is_superuser = who == "superuser"
    longest = 0
    for asked, wanted in questions(accounts):
        rows = expected(Send.objects.filter(wanted, account__in=mine))
        found, told = walked(user, asked)
        assert found == rows[:LIMIT], asked
        assert told == (f"{LIMIT}+" if len(rows) > LIMIT else str(len(rows))), asked
        longest = max(longest, len(rows))
    assert who in ("none", "one") or longest > 2 * PER_PAGE


def test_a_search_that_finds_few_is_not_looked_for_in_runs(
    accounts: list[Account], admin_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_lists, "FEW", 1000)
    rows = expected(Send.objects.filter(email__startswith="b"))
    assert rows
    assert walked(admin_user, {"q": "b"})[0] == rows[:LIMIT]


def test_rows_that_leave_between_two_statements_are_missing_and_none_comes_twice(
    accounts: list[Account],
) -> None:
    rows = Send.objects.filter(status="queued")
    there = expected(rows)
    runs = send_lists.Runs(rows, send_lists.Scope(None), 1000)
    assert len(runs) == len(there)
    gone = set(there[::3])
    Send.objects.filter(pk__in=gone).update(status="suppressed")
    found = [row.pk for bottom in range(0, len(there), 5) for row in runs.slice(bottom, bottom + 5)]
    assert len(found) == len(set(found))
    assert set(found) <= set(there) - gone


@pytest.mark.parametrize("sent", [0, 3, 20])
def test_sent_rows_of_a_campaign_that_begins_are_found_from_its_beginning(
    admin_user: Any, sent: int
) -> None:
    campaign = CampaignFactory.create()
    dice = random.Random(1)
    sends(campaign.account, campaign, 60, dice)
    Send.objects.update(
        status="queued", sent_at=None, next_attempt_at=None, claim_token=None, lease_until=None
    )
    first = list(Send.objects.order_by("pk").values_list("pk", flat=True)[:sent])
    Send.objects.filter(pk__in=first).update(status="sent", sent_at=timezone.now())
    with CaptureQueriesContext(connection) as caught:
        found, _ = walked(admin_user, {"status__exact": "sent"})
    assert found == first[::-1]
    upwards = [q for q in caught if '"campaign_id" ASC' in q["sql"] and "'sent'" in q["sql"]]
    assert bool(upwards) == (sent > 0)


ROWS = 20_000


@pytest.fixture
def long_ledger(monkeypatch: pytest.MonkeyPatch) -> Account:
    """A campaign of another account with nearly all rows, all sent but every 2,000th; and, older
    than all of them, a few rows of the account's own."""
    monkeypatch.setattr(paging.BoundedPaginator, "limit", 100)
    mine = CampaignFactory.create()
    other = CampaignFactory.create()
    for campaign, rows, beginning in ((mine, 10, 0), (other, ROWS, 10), (mine, 10, 10 + ROWS)):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO sendonce_sending_send (account_id, campaign_id, email, job_id, "
                "status, reason, attempts, doubt_tokens, provider_message_id, answer_stage, "
                "answer_enhanced, answer_text, sent_at) SELECT %s, %s, "
                "'p' || n || '@example.org', 'campaign:' || n, "
                "CASE WHEN n %% 2000 = 5 THEN 'failed' ELSE 'sent' END, '', 1, '{}', '', '', '', "
                "'', now() FROM generate_series(%s::int, %s::int) AS n",
                [campaign.account_id, campaign.pk, beginning, beginning + rows - 1],
            )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sendonce_sending_send")
    account: Account = mine.account
    return account


def passed_over(statement: str) -> int:
    """Rows of the ledger that a statement reads and throws away."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, TIMING off) " + statement.replace("%", "%%"))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    return sum(int(n) for n in re.findall(r"Rows Removed by Filter: (\d+)", plan))


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"status__exact": "failed"},
        {"status__exact": "queued"},
        {"campaign": "none"},
        {"campaign": "none", "status__exact": "failed"},
    ],
)
@pytest.mark.parametrize("who", ["member", "superuser"])
def test_a_page_reads_few_rows_of_a_long_ledger(
    long_ledger: Account, query: dict[str, Any], who: str
) -> None:
    client, user = member_client(long_ledger)
    user.is_superuser = who == "superuser"
    user.save()
    with CaptureQueriesContext(connection) as caught:
        answer = client.get(url(Send, "changelist"), query)
    assert answer.status_code == 200
    of_sends = [q["sql"] for q in caught if 'FROM "sendonce_sending_send"' in q["sql"]]
    assert of_sends
    read = {statement: passed_over(statement) for statement in of_sends}
    assert {statement: rows for statement, rows in read.items() if rows > 500} == {}
