"""What this app needs from the apps above it; they fill the hooks in their ``ready()``.

An empty hook is a working project: nothing is installed above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """One replaceable function. Calling an unfilled hook returns its default."""

    def __init__(self, default: Callable[P, R]) -> None:
        self.default = default
        self._filled: Callable[P, R] | None = None

    def fill(self, function: Callable[P, R]) -> None:
        """Set the implementation; filling it again replaces it (reload, tests)."""
        self._filled = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (self._filled or self.default)(*args, **kwargs)


def _withdraw_nothing(subscriber_ids: list[int]) -> int:
    return 0


def _no_web_version(subscriber_id: int, campaign_id: int) -> str | None:
    return None


#: ``(subscriber id, campaign id) -> HTML or None``: one person's message, for the browser.
web_version: Hook[[int, int], str | None] = Hook(_no_web_version)

#: ``(subscriber ids) -> rows withdrawn``: called after people left, inside their transaction's
#: ``on_commit``; withdraws open rows of running campaigns that no longer reach them.
withdraw_leavers: Hook[[list[int]], int] = Hook(_withdraw_nothing)
