"""One structured line per event worth having: ``time level event key=value ... "message"``."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from typing import Any, TextIO

log = logging.getLogger("sendonce.sender")

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "event"}


class LineFormatter(logging.Formatter):
    """``2026-01-31T03:00:00Z WARNING rescued campaign=7 rows=20 "rows of a lost worker ..."``"""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        given = {k: v for k, v in record.__dict__.items() if k not in _STANDARD}
        event = getattr(record, "event", record.name)
        pairs = "".join(f" {k}={_quoted(v)}" for k, v in given.items() if v is not None)
        line = f"{at} {record.levelname} {event}{pairs} {_quoted(record.getMessage(), always=True)}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _quoted(value: Any, *, always: bool = False) -> str:
    text = " ".join(str(value).split())
    if always or " " in text or "=" in text or '"' in text or not text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def descriptor() -> int:
    """The file that the sender's log goes to; standard error where that has no number."""
    for handler in log.handlers:
        if isinstance(handler, logging.StreamHandler):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                return int(handler.stream.fileno())
    return 2


def configure(stream: TextIO, *, level: str) -> None:
    """Send the sender's log to ``stream``, and nowhere else; repeated calls replace it."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    for old in list(log.handlers):
        log.removeHandler(old)
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False
