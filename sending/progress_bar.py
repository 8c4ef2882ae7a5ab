"""The live bar; needs ``rich``, the extra ``progress``. Import it only where that may be missing.

Log lines print above the bar, because both go through one ``rich`` console.
"""

from __future__ import annotations

import contextlib
import io
from types import TracebackType
from typing import Any, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from . import clock
from .progress import DRAW_EVERY, Display, Figures, Reading, complaints, headline, tallied


class SteadyConsole(Console):
    """A console that neither needs a good end nor makes one."""

    def show_cursor(self, show: bool = True) -> bool:
        """Never hides it: a process that is killed could not show it again."""
        return False

    def on_broken_pipe(self) -> None:
        """Say no more; ``rich`` would end the thread that happened to write."""
        self.quiet = True


class ConsoleStream(io.TextIOBase):
    """A text stream whose lines appear above whatever is live on the console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._console.is_terminal

    def write(self, text: str) -> int:
        line = text.removesuffix("\n")
        if line:
            # Log lines are data: no markup, no emoji codes, no wrapping in the middle of a word.
            self._console.print(Text(line), soft_wrap=True)
        return len(text)


class Bar(Display):
    """A bar with the figures behind it, what the source did, and why anything waits."""

    draws = True

    def __init__(self, stream: Any, *, console: Console | None = None) -> None:
        super().__init__(stream)
        self.console = console or SteadyConsole(file=stream, highlight=False)
        self.stream = cast(Any, ConsoleStream(self.console))
        self._live = Live(
            console=self.console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._next = float("-inf")

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):  # its terminal may be gone
            self._live.stop()

    def present(self, figures: Figures) -> None:
        now = clock.now()
        if now < self._next and not figures.ending:
            return
        self._next = now + DRAW_EVERY
        self._live.update(render(self.combine(now, figures)), refresh=True)


def render(reading: Reading) -> RenderableType:
    """The reading as something ``rich`` can draw, one to six lines high."""
    first = Table.grid(padding=(0, 2), expand=True)
    first.add_column(ratio=1)
    first.add_column(no_wrap=True)
    known = reading.total is not None and reading.done is not None
    first.add_row(
        ProgressBar(
            total=max(1, reading.total or 0) if known else None,
            completed=reading.done or 0,
            pulse=not known,
        ),
        Text(headline(reading)),
    )
    lines: list[RenderableType] = [first]
    done = tallied(reading.counts)
    if done:
        who = f"{reading.processes} processes" if reading.processes else "this process"
        lines.append(Text(f"{who}: {done}", style="dim", overflow="ellipsis", no_wrap=True))
    lines += [
        Text(f"waiting: {reason}", style="yellow", overflow="ellipsis", no_wrap=True)
        for reason in complaints(reading.reasons)
    ]
    return Group(*lines)
