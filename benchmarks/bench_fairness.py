"""How long a small campaign waits for its first message while a big one drains.

    python -m benchmarks.bench_fairness --people 1000000 --times 5

While the sender drains the big campaign, campaigns to ``--few`` people are approved one after
another. Each figure goes from the return of ``lifecycle.approve``, so from its commit, to the
hand-over of the campaign's first message, which is right before the wire; both by the database's
clock. The sender is stopped when all were measured. Traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import TYPE_CHECKING

from config.embedded.cluster import Cluster

from .harness import campaign, cluster, command_line, figures, sink, table, timing
from .harness.sink import Sink
from .harness.timing import Failed

if TYPE_CHECKING:
    from campaigns.models import Campaign

#: How long the big campaign may take to begin, and a small one's first message to come.
PATIENCE_S = 120.0
PEOPLE = 1_000_000
INTERVAL_S = 0.02


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument(
        "--people", type=command_line.count, default=PEOPLE, help="of the big campaign"
    )
    parser.add_argument("--few", type=command_line.count, default=20, help="people of a small one")
    parser.add_argument("--times", type=command_line.count, default=5)
    parser.add_argument("--lanes", type=command_line.count, default=8)
    parser.add_argument("--lot", type=command_line.count, default=20)
    options = command_line.parse(parser, people=100_000, times=3)
    timing.stop_like_ctrl_c()
    with cluster.server() as server, sink.running() as relay:
        run(options, server, relay)


def run(options: argparse.Namespace, server: Cluster, relay: Sink) -> None:
    cluster.set_up(server.url())
    account = campaign.account()
    small = [
        campaign.people(account, options.few, f"few{n}", first=options.people + 1 + n * options.few)
        for n in range(options.times)
    ]
    big = campaign.approved(campaign.people(account, options.people), "Big")
    command = timing.manage(
        *("run_sender", "--no-progress", "--verbosity", "0"),
        *("--lanes", str(options.lanes), "--lot", str(options.lot)),
    )
    waited = []
    with timing.started(command, cluster.environ(server.url(), relay.email_url)):
        first_hand_over(big.pk)
        # Let it come into its stride.
        time.sleep(2)
        for segment in small:
            waited.append(wait(campaign.approved(segment, segment.name)))
            print(f"first message of {options.few} after {waited[-1] * 1000:7.1f} ms", flush=True)
            time.sleep(1)
        sent = still_draining(big.pk)
    p50 = table.median(waited)
    print(
        f"p50 {p50 * 1000:.1f} ms, most {max(waited) * 1000:.1f} ms, {len(waited)} times, "
        f"while {sent:,} of {options.people:,} were sent"
    )
    figures.tell(
        "fairness",
        max(waited),
        f"the longest of the runs, p50 {p50:.3f} s",
        table.Extent(
            len(waited), f"beside {options.people:,} people", smaller=options.people < PEOPLE
        ),
    )


def wait(campaign: Campaign) -> float:
    """Seconds from now to the first hand-over of an approved campaign; 0 when it has been."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        approved_at = cursor.fetchone()[0]
    return max((first_hand_over(campaign.pk) - approved_at).total_seconds(), 0.0)


def first_hand_over(campaign_id: int) -> datetime:
    """When it was, by the database's clock; waits for it. Raises ``timing.Failed``."""
    from sending.models import Send

    deadline = time.monotonic() + PATIENCE_S
    handed = Send.objects.filter(campaign=campaign_id, handed_at__isnull=False)
    while time.monotonic() < deadline:
        found = handed.order_by("handed_at").values_list("handed_at", flat=True).first()
        if found is not None:
            return found
        time.sleep(INTERVAL_S)
    raise Failed(f"campaign {campaign_id}: no message in {PATIENCE_S:.0f} s")


def still_draining(campaign_id: int) -> int:
    """How many of the big campaign are sent. Raises ``timing.Failed`` when it is over: then the
    small ones had nothing to wait for."""
    from sending.models import Send

    rows = Send.objects.filter(campaign=campaign_id)
    if not rows.filter(status=Send.Status.QUEUED).exists():
        raise Failed("the big campaign was over too soon: more --people")
    return rows.filter(status=Send.Status.SENT).count()


if __name__ == "__main__":
    main()
