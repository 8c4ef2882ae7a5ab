"""The pages of one campaign while it sends, at a thousand sends and at a million.

    python -m benchmarks.bench_progress_page --rows 1000000 --explain

Asked for over Django's test client as a superuser: the progress page, the part of it that is asked
for again and again, the report, and the admin's front page, which tells of both campaigns. What is
measured is the database's time: all statements of a request together with the way there and back,
and beside it what the server's process worked for them, which tells the same on a busy machine.
Figures are medians of ``--rounds``, the small campaign and the large in turn. Asked for are 50 ms;
both have the same mix of statuses, retries, doubt, rows in flight and events. The numbers shown are
compared with a count of the rows.

With ``--pinned 2000000`` they are then asked for anew while another session holds a snapshot of
before so many changes of the large campaign that were rolled up since.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from .harness import cluster, command_line, figures, table, timing
from .scale import ledger_table

LIMIT_S = 0.050
FEW = 1_000
PAGES = ("progress", "progress_state", "report", "front")
#: Changes that a sender finds each time it rolls up: of five seconds, at 1,000 statements a second.
ROLLED_UP = 5_000
#: Of a thousand rows, how many are in which status, and why. The rest is queued.
MIX = (
    (500, "sent", ""),
    (12, "bounced", "address_dead"),
    (5, "failed", "policy"),
    (30, "suppressed", "unsubscribed"),
    (20, "retry", "greylisted"),
    (10, "retry", "rate_limited"),
    (3, "in_doubt", "connection_lost"),
)
IN_FLIGHT = 400


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--rows", type=command_line.count, default=1_000_000)
    parser.add_argument("--rounds", type=command_line.count, default=15)
    parser.add_argument(
        "--pinned", type=command_line.count, metavar="CHANGES",
        help="and once more under a snapshot of before so many changes",
    )  # fmt: skip
    parser.add_argument("--explain", action="store_true", help="print the slowest statements, too")
    options = command_line.parse(parser, rows=20_000, rounds=3)
    timing.stop_like_ctrl_c()
    with cluster.server() as server:
        cluster.set_up(server.url())
        run(options)


def run(options: argparse.Namespace) -> None:
    small, large = campaign_of(FEW), campaign_of(options.rows)
    ledger_table.execute("VACUUM (ANALYZE)")
    ledger_table.execute("CHECKPOINT")
    for campaign in (small, large):
        check(campaign)
    client = superuser()
    measure(client, small, large, options, f"{options.rows:,} sends")
    if options.pinned:
        with old_snapshot():
            roll_up(large, options.pinned)
            what = f"{options.rows:,} sends, {options.pinned:,} changes after a pinned snapshot"
            print(what)
            measure(client, small, large, options, what)
            check(large)
    if options.explain:
        explain(client, large)


def measure(client: Any, small: Any, large: Any, options: argparse.Namespace, what: str) -> None:
    extent = table.Extent(options.rounds, what)
    print(f"{'milliseconds':>16} {FEW:>9,} {options.rows:>12,}   ratio   of one processor")
    for page in PAGES:
        few, many = timed(client, page, small, large, options.rounds)
        ratio = many.seconds / few.seconds
        print(
            f"{page:>16} {few.seconds * 1000:9.1f} {many.seconds * 1000:12.1f}   {ratio:5.2f}   "
            f"{few.worked * 1000:.1f} and {many.worked * 1000:.1f}"
        )
        figures.tell(f"{page} at many sends", ratio, f"times that at {FEW:,}", extent)
        figures.tell(f"{page}, milliseconds", many.seconds * 1000, "of the database", extent)
        if many.seconds > LIMIT_S:
            print(f"{page}: more than the {LIMIT_S * 1000:.0f} ms asked for")


@contextmanager
def old_snapshot() -> Iterator[None]:
    """Held by another session meanwhile, as a long export or ``pg_dump`` does."""
    import psycopg
    from django.db import connection

    with psycopg.connect(connection.connection.info.dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT 1 FROM sendonce_sending_send LIMIT 1")
        yield


def roll_up(campaign: Any, changes: int) -> None:
    """So many changes that come to nothing in the end, as senders write them and roll them up."""
    from sending import counters

    for start in range(0, changes, ROLLED_UP):
        ledger_table.execute(
            "INSERT INTO sendonce_sending_ledgerchange "
            "(campaign_id, what, status, reason, hour, number) "
            "SELECT %s, 0, CASE WHEN n %% 2 = 0 THEN 'sent' ELSE 'sending' END, '', "
            "date_bin('1 hour', now(), timestamptz '1970-01-01 00:00:00+00'), "
            "CASE WHEN n / 2 %% 2 = 0 THEN 20 ELSE -20 END FROM generate_series(1, %s) n",
            [campaign.pk, min(ROLLED_UP, changes - start) // 4 * 4],
        )
        counters.compact()


def campaign_of(rows: int) -> Any:
    """A running campaign with so many rows, its events and a sender."""
    from django.utils import timezone

    from campaigns.models import Campaign, Content
    from sending import counters
    from sending.models import Worker
    from sending.sql import counters as statements
    from subscribers.models import Account

    account = Account.objects.create(
        name=f"Bench {rows}", slug=f"bench-{rows}", from_email="news@example.org",
        postal_address="1 Example Street",
    )  # fmt: skip
    now = timezone.now()
    campaign = Campaign.objects.create(
        account=account, name=f"Of {rows}", subject="News", body="News",
        content=Content.objects.create(
            account=account, subject="News", html="", text="News",
            from_email=account.from_email, from_name="", account_fields={},
        ),
        status="sending", scheduled_for=now, approved_at=now, approved_digest="0" * 64,
        started_at=now, built_at=now, audience=rows,
    )  # fmt: skip
    # Alive however long the filling takes: else nothing but that would be told.
    seen = now + timedelta(days=1)
    worker = Worker.objects.create(host="bench", pid=1, lanes=8, started=now, seen=seen)
    with ledger_table.bare():
        insert_rows(campaign, worker, rows)
    insert_events(campaign, rows)
    # The rows were made behind the triggers' backs.
    ledger_table.execute(statements.REBUILD, {"campaign": campaign.pk})
    counters.compact()
    return campaign


def insert_rows(campaign: Any, worker: Any, rows: int) -> None:
    """Sent ones first, as they are claimed by their ids; the last of them in the last minutes."""
    bounds, upto = [], 0
    for number, status, reason in MIX:
        upto += number
        bounds.append((upto, status, reason))
    status = "".join(f"WHEN k < {most} THEN '{name}' " for most, name, _ in bounds)
    reason = "".join(f"WHEN k < {most} THEN '{why}' " for most, _, why in bounds)
    ledger_table.execute(
        "INSERT INTO sendonce_sending_send (account_id, campaign_id, email, job_id, status, "
        "reason, attempts, doubt_tokens, provider_message_id, answer_stage, answer_enhanced, "
        "answer_text, claim_token, handed_at, sent_at, next_attempt_at, lease_until, worker_id) "
        "SELECT %(account)s, %(campaign)s, 'p' || n || '@d' || n %% 400 || '.example.org', "
        "'campaign:' || %(campaign)s || ':' || n, status, reason, (status <> 'queued')::int, "
        "'{}', '', '', '', '', CASE WHEN status IN ('claimed', 'sending', 'in_doubt', 'sent') "
        "THEN gen_random_uuid() END, CASE WHEN status NOT IN ('queued', 'claimed', 'suppressed') "
        "THEN now() - (%(front)s - n) * interval '2 ms' END, "
        "CASE WHEN status = 'sent' THEN now() END, "
        "CASE WHEN status = 'retry' THEN now() + n %% 3600 * interval '1 second' END, "
        "CASE WHEN status IN ('claimed', 'sending') THEN now() + interval '10 minutes' END, "
        "CASE WHEN status NOT IN ('queued', 'suppressed') THEN %(worker)s END "
        "FROM (SELECT n, "
        f"CASE WHEN flying AND n %% 2 = 0 THEN 'sending' WHEN flying THEN 'claimed' "
        f"WHEN n > %(front)s THEN 'queued' {status} ELSE 'sent' END AS status, "
        f"CASE WHEN flying OR n > %(front)s THEN '' {reason} ELSE '' END AS reason "
        "FROM (SELECT n, n %% 580 AS k, n > %(front)s AND n <= %(front)s + %(flying)s AS flying "
        "  FROM generate_series(1, %(rows)s) AS n) numbered) shaped ORDER BY n",
        {
            "account": campaign.account_id,
            "campaign": campaign.pk,
            "rows": rows,
            "front": rows * 58 // 100,
            "flying": min(IN_FLIGHT, rows // 10),
            "worker": worker.pk,
        },
    )


def insert_events(campaign: Any, rows: int) -> None:
    """One for each row that was not just sent, as the senders leave them."""
    ledger_table.execute(
        "INSERT INTO sendonce_sending_deliveryevent (send_id, account_id, kind, stage, code, "
        "enhanced, text, reason, by_name, at) "
        "SELECT s.id, s.account_id, s.status, 'rcpt', 451, '4.7.1', "
        "'try again in ' || s.id %% 90 || ' s', s.reason, '', "
        "now() - s.id %% 7200 * interval '1 second' "
        "FROM sendonce_sending_send s WHERE s.campaign_id = %s "
        "AND s.status IN ('bounced', 'failed', 'retry', 'in_doubt', 'suppressed') "
        "ORDER BY s.id",
        [campaign.pk],
    )


def check(campaign: Any) -> None:
    """A fast wrong answer fails."""
    from sending import ledger
    from sending.progress_page import progress

    found, there = progress(campaign), ledger.counts(campaign)
    if {**found.counts, "audience": found.audience} != there:
        sys.exit(f"the page says {found.counts}, but there are {there}")


def superuser() -> Any:
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.create_superuser("bench"))
    return client


@contextmanager
def database_time() -> Iterator[list[tuple[float, str, Any]]]:
    """Seconds, statement and parameters of all that is asked meanwhile."""
    from django.db import connection

    taken: list[tuple[float, str, Any]] = []

    def timed_execute(
        execute: Callable[..., Any], statement: str, parameters: Any, many: bool, context: Any
    ) -> Any:
        started = time.perf_counter()
        try:
            return execute(statement, parameters, many, context)
        finally:
            taken.append((time.perf_counter() - started, statement, parameters))

    with connection.execute_wrapper(timed_execute):
        yield taken


def asked(client: Any, page: str, campaign: Any) -> list[tuple[float, str, Any]]:
    from django.urls import reverse

    name = f"admin:sendonce_sending_send_{page}"
    url = reverse("admin:index") if page == "front" else reverse(name, args=[campaign.pk])
    with database_time() as taken:
        answer = client.get(url, secure=True)
    if answer.status_code != 200:
        sys.exit(f"{url} answered {answer.status_code}")
    return taken


class Cost(NamedTuple):
    """Seconds of a request's statements, and of the server's process in them."""

    seconds: float
    worked: float


def timed(client: Any, page: str, small: Any, large: Any, rounds: int) -> tuple[Cost, Cost]:
    """For each campaign, the medians of the rounds, after one to warm up."""
    found: dict[Any, list[Cost]] = {small.pk: [], large.pk: []}
    for _ in range(rounds + 1):
        for campaign in (small, large):
            # On the one connection that the test client uses, too.
            before = ledger_table.processor_seconds()
            seconds = sum(one[0] for one in asked(client, page, campaign))
            worked = ledger_table.processor_seconds() - before
            found[campaign.pk].append(Cost(seconds, worked))
    few, many = (
        Cost(*(statistics.median(part) for part in zip(*costs[1:], strict=True)))
        for costs in found.values()
    )
    return few, many


def explain(client: Any, campaign: Any) -> None:
    """The five slowest statements of these pages, with their plans."""
    for page in ("progress", "report", "front"):
        taken = asked(client, page, campaign)
        print(f"\n{page}: {len(taken)} statements")
        for seconds, statement, parameters in sorted(taken, key=lambda one: -one[0])[:5]:
            print(f"\n{seconds * 1000:.1f} ms")
            if statement.lstrip().upper().startswith(("SELECT", "WITH")):
                plan = ledger_table.execute(f"EXPLAIN (ANALYZE, BUFFERS) {statement}", parameters)
                print("\n".join(line for (line,) in plan))


if __name__ == "__main__":
    main()
