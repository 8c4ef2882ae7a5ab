"""The demo's screen on a terminal, with ``rich``. Import it only where that may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sending.progress_bar import SteadyConsole

from .screen import Moment, Screen

INDENT = 18


class LiveScreen(Screen):
    """Steps scroll by above a bar that stays."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.console = SteadyConsole(file=stream, highlight=False)
        self._live: Live | None = None

    def title(self, text: str) -> None:
        self.console.print(Text(text, style="bold"))
        self.write("")

    def step(self, name: str, text: str) -> None:
        self._number += 1
        self.console.print(
            Text.assemble((f"{self._number:>2}  ", "dim"), (f"{name:<12}  ", "bold"), text),
            soft_wrap=True,
        )

    def write(self, text: str) -> None:
        self.console.print(Text(text), soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[None]:
        with Live(
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as self._live:
            try:
                yield
            finally:
                self._live = None

    def moment(self, moment: Moment, *, last: bool = False) -> None:
        if last:
            self.detail(moment.line)  # the bar goes, this stays
        elif self._live is not None:
            self._live.update(drawn(moment), refresh=True)


def drawn(moment: Moment) -> RenderableType:
    """A bar with its figures below."""
    rows = Table.grid()
    rows.add_row(ProgressBar(total=max(1, moment.audience), completed=moment.settled, width=50))
    rows.add_row(Text(moment.line, overflow="ellipsis", no_wrap=True))
    return Padding(rows, (0, 0, 0, INDENT))
