"""Import a file with the command, beside COPY and one INSERT ... ON CONFLICT of the same rows.

    python -m benchmarks.bench_import --rows 1000000        (a file of about 60 MB)

The measure copies the file into an unlogged table without indexes (``COPY ... FROM STDIN``, as
CSV, by one client), then makes all of its people with one ``INSERT ... ON CONFLICT`` and their
memberships with another: the same tables, indexes and foreign keys, each in one transaction,
nothing checked, nothing counted, nothing rejected. Both run in the same run on the same server,
each in a database of its own; the command's start-up counts. A tenth of the rows is imported
first, to compare the peak of memory. Exits 1 when the ratio is below 0.4; the start-up outweighs a
few thousand rows, so not with ``--quick``.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from .harness import cluster, command_line, figures, table, timing
from .harness.timing import ROOT

LIMIT = 0.4
COLUMNS = ("email", "first_name", "last_name", "city", "locale")
FIRST = ("Ann", "Bob", "Chloé", "Dmitri", "Zoë", "Łukasz", "María")
LAST = ("Smith", "García", "Nowak", "Dubois", "Ivanova", "O'Brien", "Li")
CITY = ("Lyon", "Łódź", "Zaragoza", "Leeds", "Graz")

RAW = f"""
CREATE UNLOGGED TABLE raw ({", ".join(f"{name} text" for name in COLUMNS)})"""
COPY = r"COPY raw FROM STDIN (FORMAT csv, HEADER, NULL '\N')"
RAW_PEOPLE = """
INSERT INTO sendonce_subscribers_subscriber AS s
    (account_id, email, status, attributes, locale, timezone, consent_source, created, confirmed_at)
SELECT %(account)s, email, 'confirmed', jsonb_build_object('first_name', first_name,
    'last_name', last_name, 'city', city), locale, '', 'bench', now(), now() FROM raw
ON CONFLICT (account_id, email_lower) DO UPDATE
SET attributes = s.attributes || excluded.attributes, locale = excluded.locale"""
RAW_MEMBERS = """
INSERT INTO sendonce_subscribers_membership (segment_id, subscriber_id, joined_at)
SELECT %(segment)s, s.id, now() FROM sendonce_subscribers_subscriber s
JOIN raw ON lower(raw.email) = s.email_lower WHERE s.account_id = %(account)s
ON CONFLICT (segment_id, subscriber_id) DO NOTHING"""


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--rows", type=command_line.count, default=1_000_000)
    parser.add_argument("--profile", metavar="FILE", help="write the import's profile there")
    options = command_line.parse(parser, rows=20_000)
    timing.stop_like_ctrl_c()
    with cluster.server() as server, tempfile.TemporaryDirectory() as folder:
        run(server.url(), Path(folder), options)


def run(url: str, folder: Path, options: argparse.Namespace) -> None:
    manage(url, "migrate", "-v0")
    manage(url, "shell", "-v0", "-c", MAKE)
    for name in ("small", "raw", "full"):
        statement(url, f"CREATE DATABASE bench_{name} TEMPLATE {database_of(url)}")
    few, all_of_them = folder / "few.csv", folder / "people.csv"
    write(few, options.rows // 10)
    size = write(all_of_them, options.rows)
    print(f"{options.rows} rows, a file of {size / 1e6:.0f} MB")
    _, small = imported(sibling(url, "bench_small"), few)
    copied, upserted = raw(sibling(url, "bench_raw"), all_of_them)
    seconds, peak = imported(sibling(url, "bench_full"), all_of_them, options.profile)
    measure = copied + upserted
    print(f"COPY {copied:.1f} s + INSERT ... ON CONFLICT (people, memberships) {upserted:.1f} s")
    print(f"  {options.rows / measure:10,.0f} rows/s")
    print(f"import_subscribers {seconds:.1f} s, start-up included")
    print(f"  {options.rows / seconds:10,.0f} rows/s")
    print(f"peak memory {peak:.0f} MB; {small:.0f} MB with {options.rows // 10} rows")
    same = people(sibling(url, "bench_raw")), people(sibling(url, "bench_full"))
    if same[0] != same[1] or same[0] != (options.rows, options.rows):
        sys.exit(f"not the same people and members: {same}")
    ratio = measure / seconds
    print(f"ratio {ratio:.2f}")
    how = f"of COPY and upserts, start-up included; {LIMIT} asked"
    figures.tell("import", ratio, how, table.Extent(1, f"{options.rows:,} rows"))
    if ratio < LIMIT and not options.quick:
        sys.exit(f"slower than {LIMIT} of the measure")


def write(path: Path, rows: int) -> int:
    """People whose order in the file says nothing of their addresses; returns bytes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for n in range(rows):
            mixed = n * 2_654_435_761 % 2**32
            first, last = FIRST[mixed % 7], LAST[mixed // 7 % 7]
            email = f"person.{mixed:08x}.{n}@mail{n % 40}.example.org"
            writer.writerow((email, first, last, CITY[mixed % 5], ("", "fr", "es")[n % 3]))
    return path.stat().st_size


def raw(url: str, path: Path) -> tuple[float, float]:
    """Seconds of the COPY and of the two statements behind it."""
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(RAW)
        cursor.execute("CHECKPOINT")
        started = time.perf_counter()
        with cursor.copy(COPY) as copy, path.open("rb") as f:
            while data := f.read(64 * 1024):
                copy.write(data)
        copied = time.perf_counter()
        where = row(cursor, "SELECT account_id, id FROM sendonce_subscribers_segment")
        for sql in (RAW_PEOPLE, RAW_MEMBERS):
            cursor.execute(sql, {"account": where[0], "segment": where[1]})
        return copied - started, time.perf_counter() - copied


def imported(url: str, path: Path, profile: str | None = None) -> tuple[float, float]:
    """Seconds of the command, and its peak of memory in MB."""
    statement(url, "CHECKPOINT")
    profiler = ["-m", "cProfile", "-o", profile] if profile else []
    arguments = [str(path), "--account", "bench", "--segment", "all", "--confirmed"]
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *profiler, str(ROOT / "manage.py"), "import_subscribers", *arguments],
        env=cluster.environ(url),
        cwd=ROOT,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the import failed: exit code {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def people(url: str) -> Any:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        return row(
            cursor,
            "SELECT (SELECT count(*) FROM sendonce_subscribers_subscriber), "
            "(SELECT count(*) FROM sendonce_subscribers_membership)",
        )


def row(cursor: psycopg.Cursor, sql: Any) -> Any:
    return cursor.execute(sql).fetchone()


def statement(url: str, sql: Any) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


def database_of(url: str) -> str:
    return psycopg.conninfo.conninfo_to_dict(url)["dbname"]  # type: ignore[return-value]


def sibling(url: str, name: str) -> str:
    return url.replace(f"/{database_of(url)}?", f"/{name}?", 1)


def manage(url: str, *arguments: str) -> None:
    timing.run([timing.manage(*arguments)], cluster.environ(url))


MAKE = """
from subscribers.models import Account, Segment
account = Account.objects.create(
    name="Bench", slug="bench", from_email="news@example.org", postal_address="1 Example Street"
)
Segment.objects.create(account=account, name="All", slug="all")
"""


if __name__ == "__main__":
    main()
