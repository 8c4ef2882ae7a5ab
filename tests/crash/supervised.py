"""Two processes under a supervisor that do something else than send.

``python -m tests.crash.supervised MODE FILE``: each tells that it is up, and then does what
``MODE`` says; the file is there once the second of them has lived before.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

PATIENCE = 0.5


def main(mode: str, marker: Path) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from sending import logs
    from sending.processes import Supervisor, Tie
    from sending.processes_reports import Reporter, decode, encode
    from sending.progress import Figures

    logs.configure(sys.stdout, level="INFO")

    def work(tie: Tie) -> int:
        tie.tell(encode(os.getpid(), Figures({"sent": 1}, None, [])))
        lives_again = marker.exists()
        if tie.number == 1:
            marker.touch()
        if mode == "stubborn":
            time.sleep(600)
        if mode == "deaf at first":
            heard: list[int] = []
            time.sleep(1.0)
            signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
            tie.hear_signals()
            print(f"heard {heard} at last", flush=True)
            return 0
        if mode == "gone at once":
            return 0
        if tie.number == 1 and not lives_again:
            if mode == "abandons":
                return 5
            raise RuntimeError("a fault")
        return 0

    def show(report: bytes) -> None:
        _, figures = decode(report)
        print(f"shown sent={figures.counts.get('sent', 0)} ending={figures.ending}", flush=True)

    # The least of the displays that leave out what comes too soon after the last.
    display = Reporter(sys.stdout, show, count_every=60.0)
    supervisor = Supervisor(2, work, drain=True, patience=PATIENCE)
    supervisor.handle_signals()
    return supervisor.run(display.show)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
