"""Runs an import in small batches, and stops it when it reaches a named point for the n-th time.

``python -m tests.crash.killable_import POINT COUNT SIGNAL import_subscribers FILE ...``. The points
are woven in from here; the product knows nothing of them. ``never`` is no point.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

#: A row is read, any transaction commits or has committed, the result is told or has been.
POINTS = ("row", "commit:before", "commit:after", "chunk:after", "tell:before", "tell:after")


def main(point: str, count: int, name: str, arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    weave(point, count, signal.Signals[name])
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *arguments])


def weave(point: str, count: int, number: signal.Signals) -> None:
    left = [count]

    def at(name: str) -> None:
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), number)

    def around(owner: Any, name: str, before: str, after: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            at(before)
            result = function(*args, **kwargs)
            at(after)
            return result

        setattr(owner, name, wrapped)

    from django.db.backends.base.base import BaseDatabaseWrapper

    from subscribers.importing import applying, staging
    from subscribers.management.commands.import_subscribers import Command
    from subscribers.tabular import Plan

    staging.ROWS, applying.ROWS = 50, 40
    around(BaseDatabaseWrapper, "_commit", "commit:before", "commit:after")
    around(applying.Applying, "_chunk", "", "chunk:after")
    around(Plan, "read", "row", "")
    around(Command, "_tell", "tell:before", "tell:after")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
