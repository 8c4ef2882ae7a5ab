"""Runs a command that kills itself (SIGKILL) when it reaches a named point for the n-th time.

``python -m tests.crash.killable POINT COUNT run_sender --drain ...``. The points are woven in
from here; the product knows nothing of them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

#: Around the COMMIT of these verbs, and before and after the verbs themselves.
VERBS = ("claim", "hand_over", "settle")
PLACES = ("before", "before_commit", "after_commit", "after")
POINTS = (
    *(f"{verb}:{place}" for verb in VERBS for place in PLACES),
    "body:before_dot",
    "body:after_dot",
    "reply:read",
)
#: For senders that speak to a provider over HTTP.
HTTP_POINTS = (*POINTS[:12], "request:before", "request:after", "reply:read")

_lock = threading.Lock()
_inside = threading.local()


def main(point: str, count: int, arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    weave(point, count)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *arguments])


def weave(point: str, count: int) -> None:
    """Wrap the functions of the sender so that ``point`` kills at its ``count``-th passing."""
    left = [count]

    def at(name: str) -> None:
        if name != point:
            return
        with _lock:
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()

    from django.db.backends.base.base import BaseDatabaseWrapper

    import sending.desks
    import sending.dispatcher
    from sending.sessions import BackendSession, SMTPSession
    from sending.smtp_transaction import FINAL_DOT, Transaction
    from sending.smtp_wire import Wire

    def around(verb: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            at(f"{verb}:before")
            _inside.verb = verb
            try:
                result = function(*args, **kwargs)
            finally:
                _inside.verb = None
            at(f"{verb}:after")
            return result

        return wrapped

    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def killing_commit(self: Any) -> Any:
        verb = getattr(_inside, "verb", None)
        at(f"{verb}:before_commit")
        result = commit(self)
        at(f"{verb}:after_commit")
        return result

    BaseDatabaseWrapper._commit = killing_commit  # type: ignore[attr-defined]
    for module, verb in (
        (sending.dispatcher, "claim"),
        (sending.desks, "hand_over"),
        (sending.desks, "settle"),
    ):
        setattr(module, verb, around(verb, getattr(module, verb)))

    write = Wire.write

    def killing_write(self: Any, data: bytes, *args: Any, **kwargs: Any) -> Any:
        # Back to back it is one write with the body before and the next envelope behind it.
        has_dot = data == FINAL_DOT or b"\r\n" + FINAL_DOT in data
        if has_dot:
            at("body:before_dot")
        result = write(self, data, *args, **kwargs)
        if has_dot:
            at("body:after_dot")
        return result

    def reading(transaction: Callable[..., Transaction]) -> Callable[..., Transaction]:
        def killing_transaction(self: Any, *args: Any, **kwargs: Any) -> Transaction:
            result = yield from transaction(self, *args, **kwargs)
            at("reply:read")
            return result

        return killing_transaction

    Wire.write = killing_write  # type: ignore[method-assign]
    SMTPSession.transaction = reading(SMTPSession.transaction)  # type: ignore[method-assign]
    BackendSession.transaction = reading(BackendSession.transaction)  # type: ignore[method-assign]
    if point.startswith("request:"):
        import requests

        request = requests.Session.send

        def killing_request(self: Any, *args: Any, **kwargs: Any) -> Any:
            at("request:before")
            result = request(self, *args, **kwargs)
            at("request:after")
            return result

        requests.Session.send = killing_request  # type: ignore[method-assign]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
