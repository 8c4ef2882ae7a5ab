"""Signals that ask a process to end: which of them is a second one, and the last words then."""

from __future__ import annotations

import logging
import os
import select
import time

from .logs import LineFormatter, descriptor

#: Seconds. Who signals a process and then its whole group (``timeout`` does, supervisors do, and
#: Ctrl-C beside them) has asked once.
TOGETHER = 1.0


class Requests:
    """The signals so far; true once there was one. Takes no lock, so that a handler may use it."""

    def __init__(self) -> None:
        self._first: float | None = None

    def __bool__(self) -> bool:
        return self._first is not None

    def is_second(self) -> bool:
        """Count a signal that came now; whether it asks for more than the first."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
        return now - self._first > TOGETHER


def end_at_once(number: int) -> None:
    """Say so in the log and end the process with 128 + ``number``. For a signal handler: it takes
    no logger's lock, which the interrupted code may hold, and waits for no reader."""
    said = "ended at once by a second signal: messages that are on the wire will be in doubt"
    record = logging.makeLogRecord(
        {"levelname": "ERROR", "msg": said, "event": "ended_at_once", "signal": number}
    )
    try:
        to = descriptor()
        room = select.poll()
        room.register(to, select.POLLOUT)
        if room.poll(0):
            os.write(to, f"{LineFormatter().format(record)}\n".encode())
    finally:
        os._exit(128 + number)
