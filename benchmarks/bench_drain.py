"""Drain a campaign over SMTP on the embedded PostgreSQL, beside ``smtp-source`` into the same sink.

    make bench ARGS="--people 50000"      (or: python benchmarks/bench_drain.py --people 50000)

Both run in the same run on the same machine, so that their ratio means something on any. Needs
Postfix's ``smtp-sink`` and ``smtp-source`` (Debian: package postfix); without them our own sink
is used and no ratio is printed. Traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BODY = """<!doctype html><html lang="en"><body style="font-family:sans-serif">
<h1>Hello {{ first_name|default:"there" }}</h1>
<p>Your city, {{ city }}, and what is new there.</p>
PARAGRAPHS
<p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p></body></html>
""".replace(
    "PARAGRAPHS",
    "\n".join(
        f'<p style="margin:0 0 12px">Paragraph {n}: the quick brown fox jumps over the lazy dog, '
        f'again and <a href="https://www.example.org/{n}">again</a>.</p>'
        for n in range(18)
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--lot", type=int, default=20)
    options = parser.parse_args()

    from config.embedded.cluster import Cluster

    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        os.chmod(folder, 0o755)
        cluster = Cluster(Path(folder) / "postgres")
        cluster.ensure()
        try:
            run(cluster.url(), options)
        finally:
            cluster.destroy()


def run(database_url: str, options: argparse.Namespace) -> None:
    port = free_port()
    sink = start_sink(port)
    environ = {
        **os.environ,
        "DATABASE_URL": database_url,
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
        "SECRET_KEY": "for-the-benchmark-only",
        "SENDONCE_DIRECT_CONNECTION": "true",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    os.environ.update(environ)
    try:
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        campaign_id = load(options.people)
        wire = ceiling(port, min(options.people, 20_000))
        seconds = drain(campaign_id, options, environ)
        report(campaign_id, options, seconds, wire)
    finally:
        sink.kill()
        sink.wait()


def load(people: int) -> int:
    """An approved campaign to ``people`` recipients; returns its id."""
    from django.db import connection

    from campaigns import lifecycle
    from campaigns.models import Campaign
    from subscribers.models import Account, Segment

    account = Account.objects.create(
        name="Bench", slug="bench", from_email="news@example.org", postal_address="1 Example Street"
    )
    segment = Segment.objects.create(account=account, name="All", slug="all")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sendonce_subscribers_subscriber (account_id, email, status, attributes, "
            "locale, timezone, consent_source, created) "
            "SELECT %s, 'person' || n || '@example.org', 'confirmed', "
            "jsonb_build_object('first_name', 'Zoë ' || n, 'city', 'Łódź'), '', '', 'bench', now() "
            "FROM generate_series(1, %s) AS n",
            [account.pk, people],
        )
        cursor.execute(
            "INSERT INTO sendonce_subscribers_membership (segment_id, subscriber_id, joined_at) "
            "SELECT %s, id, now() FROM sendonce_subscribers_subscriber WHERE account_id = %s",
            [segment.pk, account.pk],
        )
        cursor.execute("ANALYZE")
    campaign = Campaign.objects.create(
        account=account, name="Bench", subject="News for {{ first_name }}", body=BODY
    )
    campaign.segments.add(segment)
    lifecycle.approve(campaign, by=None)
    return campaign.pk


def drain(campaign_id: int, options: argparse.Namespace, environ: dict[str, str]) -> float:
    """Seconds from the start of the processes to the end of the last."""
    command = [
        sys.executable,
        str(ROOT / "manage.py"),
        "run_sender",
        "--drain",
        "--no-progress",
        "--campaign",
        str(campaign_id),
        "--lanes",
        str(options.lanes),
        "--lot",
        str(options.lot),
    ]
    started = time.perf_counter()
    running = [
        subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL)
        for _ in range(options.processes)
    ]
    codes = [process.wait(3600) for process in running]
    seconds = time.perf_counter() - started
    if any(codes):
        sys.exit(f"a sender failed: exit codes {codes}")
    return seconds


def report(
    campaign_id: int, options: argparse.Namespace, seconds: float, wire: float | None
) -> None:
    from sending.ledger import balance

    found = balance(campaign_id)
    rate = found.counts["sent"] / seconds
    print(
        f"run_sender   {found.counts['sent']:>7} sent in {seconds:6.1f} s  {rate:8.0f} messages/s"
        f"   ({options.processes} x {options.lanes} lanes, lot {options.lot}, start-up included)"
    )
    if wire is not None:
        print(f"smtp-source  same sink, 20 sessions           {wire:8.0f} messages/s")
        print(f"ratio        {rate / wire:.3f}")
    if not found.holds or found.counts["sent"] != options.people:
        sys.exit(f"the ledger does not add up: {found}")


def ceiling(port: int, messages: int) -> float | None:
    """What ``smtp-source`` reaches into the same sink with the same size of message."""
    tool = find("smtp-source")
    if tool is None:
        return None
    command = [
        tool,
        "-d",
        "-s",
        "20",
        "-l",
        "6000",
        "-m",
        str(messages),
        "-f",
        "news@example.org",
        "-t",
        "person@example.org",
        f"127.0.0.1:{port}",
    ]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return messages / (time.perf_counter() - started)


def start_sink(port: int) -> subprocess.Popen[bytes]:
    tool = find("smtp-sink")
    if tool is None:
        print("smtp-sink not found; using our own sink, no ratio", file=sys.stderr)
        command = [sys.executable, "-m", "sending.sink", "--port", str(port)]
    else:
        unprivileged = ["-u", "nobody"] if os.geteuid() == 0 else []
        command = [tool, *unprivileged, f"127.0.0.1:{port}", "1000"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    sys.exit("the sink did not start")


def find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
