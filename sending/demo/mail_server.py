"""The demo's mail server: the sink, with faults that are sure to strike somebody."""

from __future__ import annotations

from pathlib import Path

from sending.sink import Fault, Faults
from subscribers.models import Segment, Subscriber, Suppression

from .children import Child, Children

#: Per cent of the people who meet each fault.
FAULTS = {Fault.GREYLIST: 4.0, Fault.REFUSE: 2.0, Fault.DROP: 1.0}
GREYLIST_S = 5.0
#: About how long the first pass takes: there must be something to see, and a middle.
PASS_S = 9.0
#: MAIL, RCPT, DATA and the final dot each wait for one.
REPLIES = 4
LONGEST_DELAY_S = 0.05


def start_sink(
    children: Children, record: Path, segment: Segment, *, first_seed: int, people: int, lanes: int
) -> tuple[Child, int]:
    """Start it on a free port; the process and the port. Raises ``ChildFailed``."""
    faults = [part for fault, share in FAULTS.items() for part in (f"--{fault}", str(share))]
    sink = children.start(
        "sink",
        *("sink", "--port", "0", "--record", str(record)),
        *("--seed", telling_seed(_addresses(segment), first=first_seed), *faults),
        *("--greylist-seconds", str(GREYLIST_S), "--delay", f"{reply_delay(people, lanes):.5f}"),
        environment={},
    )
    address = sink.await_line("listening ")
    return sink, int(address.rpartition(":")[2])


def reply_delay(people: int, lanes: int) -> float:
    """Seconds that the server waits before each reply, so that the first pass can be watched:
    a thousand people take about ``PASS_S``, a hundred thousand no longer than they must."""
    delay = PASS_S * lanes / (people * REPLIES)
    return 0.0 if delay < 0.0005 else min(delay, LONGEST_DELAY_S)


def telling_seed(addresses: list[str], *, first: int) -> str:
    """The first seed from ``first`` on with which each fault meets somebody, also in a small
    audience; after a thousand tries any will do."""
    for number in range(first, first + 1000):
        faults = Faults(FAULTS, str(number))
        if set(FAULTS) <= {faults.of(address) for address in addresses}:
            return str(number)
    return str(first)


def _addresses(segment: Segment) -> list[str]:
    """Who will get it: those whose address bounced in an earlier run will not."""
    blocked = Suppression.objects.filter(account=segment.account).values("email_lower")
    people = Subscriber.objects.filter(segments=segment).exclude(email_lower__in=blocked)
    return list(people.values_list("email", flat=True))
