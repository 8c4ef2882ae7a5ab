"""A process that takes permits as fast as the limits let it and sends nothing:
``python -m tests.crash.permits SECONDS FILE``.

It says "ready" and waits for the file. Then it prints when it took each permit, by the database's
clock, as JSON: ``[[domain, seconds], ...]``.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from pathlib import Path

import django


def main(seconds: float, go: Path) -> None:
    django.setup()
    from django.db import connections

    from sending import clock
    from sending.limits.admission import Limits
    from sending.queue import Claimed
    from sending.ready import Ready
    from tests.claimed_rows import claimed_row

    numbers = itertools.count()

    def rows(count: int) -> list[Claimed]:
        made = []
        for number in itertools.islice(numbers, count):
            email = f"p@{('one.example.org', 'two.example.org')[number % 2]}"
            made.append(claimed_row(number, subscriber_id=1, email=email, alias="default"))
        return made

    limits = Limits()
    ready = Ready(lines=limits.lines)
    limits.refresh(0)
    taken: list[tuple[str, float]] = []
    print("ready", flush=True)
    while not go.exists():
        time.sleep(0.005)
    end = clock.now() + seconds

    def lane() -> None:
        while clock.now() < end:
            if ready.waiting() < 20:
                ready.put(("default", row) for row in rows(20))
            lot = ready.take(20, 0.02)
            if lot is None:
                continue
            found = limits.admit(*lot)
            ready.wait(found.waiting)
            assert found.at is not None or not found.go
            taken.extend(
                (row.email.partition("@")[2], found.at.timestamp())
                for row in found.go
                if found.at is not None
            )
            if found.give_back or found.later:
                threading.Event().wait(0.05)  # it would claim no more of these
        connections.close_all()

    lanes = [threading.Thread(target=lane) for _ in range(2)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    print(json.dumps(taken))


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
