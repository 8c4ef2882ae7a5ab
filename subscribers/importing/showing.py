"""An import's progress for whoever started it: two bars on a terminal, now and then a line
elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .report import Progress, Step

#: Seconds between two lines in a log.
_EVERY = 10.0


@contextmanager
def shown(out: TextIO) -> Iterator[Progress]:
    """What to pass as ``progress``. Nothing is written of an import that takes a moment."""
    bars = _bars() if out.isatty() else None
    if bars is None:
        yield _Lines(out)
        return
    with bars as progress:
        yield _Bars(progress)


class _Lines:
    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.next = time.monotonic() + _EVERY

    def __call__(self, step: Step) -> None:
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + _EVERY
        if step.phase == "reading":
            share = f", {100 * step.done // step.total} % of the file" if step.total else ""
            self.out.write(f"read {step.rows} rows{share}\n")
        else:
            self.out.write(f"written {step.done} of {step.total} rows\n")
        self.out.flush()


class _Bars:
    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.tasks: dict[str, Any] = {}

    def __call__(self, step: Step) -> None:
        if step.phase not in self.tasks:
            if "reading" in self.tasks:
                self.progress.update(self.tasks["reading"], total=1, completed=1)
            self.tasks[step.phase] = self.progress.add_task(step.phase, rows="")
        self.progress.update(
            self.tasks[step.phase],
            completed=min(step.done, step.total),
            total=step.total or None,
            rows=f"{step.rows if step.phase == 'reading' else step.done:,} rows",
        )


def _bars() -> Any:
    """``None``: rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            """rich would end the process in the middle of the import."""
            self.quiet = True

    return Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeRemainingColumn(),
        console=Quiet(stderr=True),
        transient=True,
    )
