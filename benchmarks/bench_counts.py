"""Count a campaign's audience, who of it lacks a field, and a segment's people among a million, on
the embedded PostgreSQL.

    python -m benchmarks.bench_counts --people 1000000 --explain

An account of ``--people`` subscribers, segments of all, half and a hundredth of them, and 20,000
suppressions. Each figure is the best of ``--rounds``, beside ``count(*)`` of the table of
subscribers in the same run, so that the ratio means something on any machine. The numbers are
compared with those of plain queries: a fast wrong answer fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .harness import cluster, command_line, figures, table, timing

#: The campaign takes the first two and excludes the third: each n-th person is in it.
SEGMENTS = {"All": 1, "Half": 2, "Few": 100}
#: Merge fields as preflight counts who lacks them: everybody has the first two, nobody the others.
FIELDS = ("first_name", "city", *(f"field_{n}" for n in range(7)), "order.city")


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=command_line.count, default=1_000_000)
    parser.add_argument("--suppressions", type=int, default=20_000)
    parser.add_argument("--rounds", type=command_line.count, default=5)
    parser.add_argument("--explain", action="store_true", help="print the plans, too")
    options = command_line.parse(parser, people=20_000, suppressions=400, rounds=2)
    timing.stop_like_ctrl_c()
    with cluster.server() as server:
        cluster.set_up(server.url())
        run(options)


def load(people: int, suppressions: int) -> Any:
    """A draft campaign of an account with so many people; returns it."""
    from django.db import connection

    from campaigns.models import Campaign
    from subscribers.models import Account, Segment

    account = Account.objects.create(
        name="Bench", slug="bench", from_email="news@example.org", postal_address="1 Example Street"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sendonce_subscribers_subscriber (account_id, email, status, attributes, "
            "locale, timezone, consent_source, created, paused_until) "
            "SELECT %s, 'person' || n || '@example.org', "
            "CASE n %% 20 WHEN 0 THEN 'unsubscribed' WHEN 1 THEN 'pending' ELSE 'confirmed' END, "
            "jsonb_build_object('first_name', 'Zoë ' || n, 'city', 'Łódź'), '', '', 'bench', "
            "now(), CASE WHEN n %% 500 = 7 THEN now() + interval '30 days' END "
            "FROM generate_series(1, %s) AS n",
            [account.pk, people],
        )
        segments = []
        for name, step in SEGMENTS.items():
            segment = Segment.objects.create(account=account, name=name, slug=name.lower())
            cursor.execute(
                "INSERT INTO sendonce_subscribers_membership "
                "(segment_id, subscriber_id, joined_at, left_at) "
                "SELECT %s, id, now() - (id %% 180) * interval '1 day', "
                "CASE WHEN id %% 53 = 0 THEN now() - (id %% 30) * interval '1 day' END "
                "FROM sendonce_subscribers_subscriber WHERE account_id = %s AND id %% %s = 0",
                [segment.pk, account.pk, step],
            )
            cursor.execute(
                "INSERT INTO sendonce_subscribers_membershipchange "
                "(segment_id, subscriber_id, kind, at, source) "
                "SELECT segment_id, subscriber_id, 'left', left_at, 'bench' "
                "FROM sendonce_subscribers_membership "
                "WHERE segment_id = %s AND left_at IS NOT NULL",
                [segment.pk],
            )
            segments.append(segment)
        cursor.execute(
            "INSERT INTO sendonce_subscribers_suppression "
            "(account_id, email, reason, evidence, created) "
            "SELECT %s, 'person' || n * 43 || '@example.org', 'hard_bounce', '', now() "
            "FROM generate_series(1, %s) AS n",
            [account.pk, suppressions],
        )
        # What autovacuum does within minutes of such an import.
        cursor.execute("VACUUM (ANALYZE)")
    campaign = Campaign.objects.create(account=account, name="Bench", subject="News", body="News")
    campaign.segments.set(segments[:2])
    campaign.exclude_segments.set(segments[2:])
    return campaign


def run(options: argparse.Namespace) -> None:
    from zoneinfo import ZoneInfo

    from django.utils import timezone

    from campaigns import audience
    from campaigns.preflight import field_counts
    from subscribers.models import Segment, Subscriber
    from subscribers.segments import numbers as segment_numbers

    campaign = load(options.people, options.suppressions)
    every = Segment.objects.get(slug="all")
    ids = list(Segment.objects.values_list("pk", flat=True))
    who = (
        campaign.account_id,
        list(campaign.segments.values_list("pk", flat=True)),
        list(campaign.exclude_segments.values_list("pk", flat=True)),
    )
    base = best(options.rounds, Subscriber.objects.count)
    print(f"count(*) of {options.people:,} subscribers      {base * 1000:7.1f} ms")
    for name, count in (
        ("the campaign's audience", lambda: audience.count(campaign)),
        ("the page of the segment of all", lambda: segment_numbers.numbers(every)),
        ("the list of segments", lambda: segment_numbers.present_in(ids)),
        ("a sample of ten", lambda: segment_numbers.sample(every)),
        ("who lacks which of ten fields", lambda: field_counts.count(*who, FIELDS)),
        (
            "its history by day",
            lambda: segment_numbers.history(every, "day", ZoneInfo("UTC"), timezone.now()),
        ),
    ):
        seconds, busy = best(options.rounds, count), processor_time(count)
        alone = f"   {busy * 1000:6.0f} ms of one processor" if busy is not None else ""
        print(f"{name:38} {seconds * 1000:7.1f} ms   {seconds / base:6.1f} x count(*){alone}")
        figures.tell(
            name,
            seconds / base,
            "times count(*), the best of the runs",
            table.Extent(options.rounds, f"{options.people:,} people"),
        )
    check(campaign, audience.count(campaign))
    if options.explain:
        explain(campaign)


def best(rounds: int, act: Callable[[], object]) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return min(times)


def processor_time(act: Callable[[], object]) -> float | None:
    """Seconds of processor time that the database takes for it in one process: what it would take
    on a machine with nothing else to do, and no second processor. Linux only."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT pg_backend_pid()")
        clock = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")
        try:
            started = clock.read_text()
            act()
            ended = clock.read_text()
        except OSError:
            return None
        finally:
            cursor.execute("RESET max_parallel_workers_per_gather")
    return (int(ended.split()[0]) - int(started.split()[0])) / 1e9


def check(campaign: Any, found: Any) -> None:
    """The same numbers by plain queries, which take their time."""
    from django.db.models import Q
    from django.db.models.functions import Now

    from campaigns import audience
    from subscribers.models import Suppression

    people = audience.addressed(campaign)
    listed = Suppression.objects.filter(
        Q(account=campaign.account_id) | Q(account=None), Q(expires=None) | Q(expires__gt=Now())
    )
    suppressed = Q(email_lower__in=listed.values("email_lower"))
    plain = (
        people.count(),
        people.filter(suppressed).count(),
        people.filter(~suppressed, paused_until__gt=Now()).count(),
    )
    if plain != (found.addressed, found.suppressed, found.paused):
        sys.exit(f"counted {found}, but there are {plain}")
    print(
        f"as plain queries say: {plain[0]:,} addressed, {plain[1]:,} suppressed, "
        f"{plain[2]:,} paused"
    )


def explain(campaign: Any) -> None:
    from campaigns import audience
    from subscribers.segments.big_counts import merging, one_snapshot

    ids = [*campaign.segments.order_by("name", "pk"), *campaign.exclude_segments.all()]
    names = ("include_0", "include_1", "exclude_0")
    parameters = {
        "account": campaign.account_id,
        **dict(zip(names, (s.pk for s in ids), strict=True)),
    }
    with one_snapshot() as cursor:
        with merging(cursor):
            show(cursor, audience.count_sql(2, 1), parameters)
        show(cursor, audience.suppressed_sql(2, 1), parameters)


def show(cursor: Any, statement: str, parameters: dict[str, int]) -> None:
    cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS OFF) {statement}", parameters)
    print("\n".join(line for (line,) in cursor.fetchall()))


if __name__ == "__main__":
    main()
