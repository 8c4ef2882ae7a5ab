"""Signals that ask a process to end: which of them is a second one, and an end at any rate.

Handlers run between any two steps of the main thread, also while that waits for ever for somebody
to read its log: nothing here takes a lock or waits for a reader.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from .logs import LineFormatter, descriptor

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Seconds. Who signals a process and then its whole group (``timeout`` does, supervisors do, and
#: Ctrl-C beside them) has asked once.
TOGETHER = 1.0
#: Exit code: outcomes were not written, or a process hangs.
EXIT_ABANDONED = 5


class Requests:
    """The signals so far; true once there was one."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._is_over = False
        self._within = 0.0
        self._kill: Callable[[], object] = lambda: None

    def __bool__(self) -> bool:
        return self._first is not None

    def hear(self, within: float, kill: Callable[[], object] = lambda: None) -> None:
        """Note ``SIGNALS`` from now on. The process ends at once at a second request, and
        ``within`` so many seconds of the first, whatever hangs; ``kill`` is called before."""
        self._within, self._kill = within, kill
        atexit.register(_ignore)
        signal.signal(signal.SIGALRM, self._on_alarm)
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def over(self) -> None:
        """All is done: who asks from now on asks for nothing more."""
        self._is_over = True
        signal.alarm(0)

    def is_second(self) -> bool:
        """Count a signal that came now; whether it asks for more than the first."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
        return now - self._first > TOGETHER

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:
            return
        is_first = self._first is None
        if self.is_second():
            self._kill()
            end_at_once(
                128 + number,
                "ended_at_once",
                "ended at once by a second signal: messages that are on the wire will be in doubt",
                signal=number,
            )
        if is_first:
            signal.alarm(max(1, math.ceil(self._within)))

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        self._kill()
        end_at_once(
            EXIT_ABANDONED,
            "ended_hanging",
            "told to end and still there, ended at once: messages that are on the wire will be in "
            "doubt",
        )


def _ignore() -> None:
    """As the interpreter ends it gives signals that are handled back to the system, and one that
    comes then would make a failure of an end in order."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def end_at_once(code: int, event: str, said: str, **told: object) -> NoReturn:
    """Say so in the log, if that takes it, and end the process."""
    try:
        record = logging.makeLogRecord({"levelname": "ERROR", "msg": said, "event": event, **told})
        to = descriptor()
        room = select.poll()
        room.register(to, select.POLLOUT)
        if room.poll(0):
            os.write(to, f"{LineFormatter().format(record)}\n".encode())
    finally:
        os._exit(code)
