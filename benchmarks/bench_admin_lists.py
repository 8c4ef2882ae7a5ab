"""Every list of the admin at a thousand rows and at a million, on the embedded PostgreSQL.

    python -m benchmarks.bench_admin_lists --rows 1000000

Asked for as a superuser, as staff of one account of five that share the rows, and as staff of one
that has the oldest few of them: the list, its second page, a search and two choices of each filter.
Seconds are the processor's, the page made and not sent, in the site's process and in its session of
the database (no parallel workers): what it takes on a machine with nothing else to do. A figure is
the median of ``--rounds``; the ratio is that of a page with many rows to the same with ``--few``,
where it has at least 20 ms more: below that it is noise.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

from .harness import cluster, command_line, figures, table, timing
from .scale import admin_rows

#: What is asked for: seconds, and how many times the page with few rows.
LIMIT_S, RATIO = 0.300, 3.0
NOISE_S = 0.020
SEARCHES = {"providerevent": "event-77", "deliveryevent": "event-77", "archivedcount": "Campaign 7"}


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--rows", type=command_line.count, default=1_000_000)
    parser.add_argument("--few", type=command_line.count, default=1_000)
    parser.add_argument("--rounds", type=command_line.count, default=3)
    parser.add_argument("--all", action="store_true", help="print every page, not the slowest")
    parser.add_argument("--only", default="", help="a part of the model's name")
    options = command_line.parse(parser, rows=20_000, rounds=1)
    timing.stop_like_ctrl_c()
    # What is filled in is not kept: only reading is measured.
    with cluster.server({"fsync": "off", "max_wal_size": "8GB"}) as server:
        cluster.set_up(server.url())
        run(options)


def run(options: argparse.Namespace) -> None:
    few = measure(options.few, options)
    many = measure(options.rows, options)
    rows = []
    for page, (seconds, database) in many.items():
        before = few.get(page, (seconds, database))[0]
        ratio = seconds / before if seconds - before >= NOISE_S else 1.0
        rows.append((seconds, ratio, database, before, page))
    rows.sort(reverse=True)
    print(f"{'ms':>7} {'in SQL':>7} {'few':>7} {'ratio':>6}  page, of {options.rows:,} rows")
    for seconds, ratio, database, before, page in rows if options.all else rows[:25]:
        mark = " !" if seconds > LIMIT_S or ratio > RATIO else ""
        print(
            f"{seconds * 1000:7.1f} {database * 1000:7.1f} {before * 1000:7.1f} {ratio:6.1f}  "
            f"{page}{mark}"
        )
    extent = table.Extent(options.rounds, f"{options.rows:,} rows")
    slowest, ratio = max(row[0] for row in rows), max(row[1] for row in rows)
    figures.tell("slowest list", slowest, "seconds, the median of the rounds", extent)
    figures.tell("list at many rows", ratio, "times the same with few, the worst page", extent)
    print(
        f"{len(rows)} pages, the slowest {slowest * 1000:.0f} ms, the worst ratio {ratio:.1f} "
        f"(asked for: {LIMIT_S * 1000:.0f} ms, {RATIO:g})"
    )


def measure(rows: int, options: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Seconds of the server, and of its database, by page."""
    started = time.perf_counter()
    admin_rows.fill(rows)
    print(f"{rows:,} rows are there after {time.perf_counter() - started:.0f} s", flush=True)
    admin_rows.execute("SET max_parallel_workers_per_gather = 0")
    found = {}
    for who, client in clients().items():
        for page, address in pages(client, options.only):
            found[f"{who}: {page}"] = timed(client, address, options.rounds)
    return found


def clients() -> dict[str, Any]:
    """Logged in: a superuser, staff of a large account, staff of a small one."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Permission
    from django.test import Client

    from subscribers.models import Account

    found = {}
    for who, account in (("superuser", None), ("staff", 2), ("small", admin_rows.ACCOUNTS + 1)):
        users: Any = get_user_model()._default_manager
        user, _ = users.get_or_create(
            username=who, defaults={"is_staff": True, "is_superuser": account is None}
        )
        if account is not None:
            user.user_permissions.set(
                Permission.objects.filter(content_type__app_label__startswith="sendonce_")
            )
            Account.objects.get(pk=account).members.add(user)
        found[who] = Client(HTTP_HOST="127.0.0.1")
        found[who].force_login(user)
    return found


def pages(client: Any, only: str) -> Iterator[tuple[str, str]]:
    """Name and address of every list, and of what one asks it for."""
    from django.contrib import admin
    from django.test.utils import setup_test_environment, teardown_test_environment
    from django.urls import reverse

    for model in admin.site._registry:
        opts = model._meta
        if not opts.app_label.startswith("sendonce_") or only not in str(opts.model_name):
            continue
        address = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
        setup_test_environment()  # contexts are kept only now, and not while a page is timed
        answer = client.get(address)
        shown = answer.context["cl"] if answer.status_code == 200 else None
        teardown_test_environment()
        if shown is None:
            continue
        name = str(opts.model_name)
        yield name, address
        yield f"{name}, page 2", f"{address}?p=2"
        if shown.search_fields:
            term = SEARCHES.get(name, "person77")
            yield f"{name}, search", f"{address}?q={term}"
            yield f"{name}, search in vain", f"{address}?q=nobody-at-all"
        for spec in shown.filter_specs:
            choices = [c for c in spec.choices(shown) if "query_string" in c][1:]
            for choice in {c["query_string"]: c for c in (*choices[:1], *choices[-1:])}.values():
                yield f"{name}, {spec.title} {choice['display']}", address + choice["query_string"]


def timed(client: Any, address: str, rounds: int) -> tuple[float, float]:
    """Processor seconds of the page, and of the database's part of it: the machine may be busy."""
    client.get(address)
    whole, database = [], []
    for _ in range(rounds):
        in_database, here = admin_rows.processor_seconds(), time.process_time()
        answer = client.get(address)
        here = time.process_time() - here
        in_database = admin_rows.processor_seconds() - in_database
        whole.append(here + in_database)
        database.append(in_database)
        if answer.status_code != 200:
            raise timing.Failed(f"{address}: {answer.status_code}")
        if whole[-1] > 5:
            break  # slow enough to be sure
    if min(whole) > LIMIT_S:
        print(f"{min(whole) * 1000:7.0f} ms  {address}", flush=True)
    return statistics.median(whole), statistics.median(database)


if __name__ == "__main__":
    main()
