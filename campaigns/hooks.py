"""What campaigns need from the app that sends; ``sending`` fills the hooks in ``ready()``."""

from __future__ import annotations

from subscribers.hooks import Hook


def _no_open_rows(campaign_id: int) -> bool:
    return False


def _cancel_nothing(campaign_id: int) -> int:
    return 0


def _no_counts(campaign_id: int) -> dict[str, int]:
    return {}


def _no_brakes(campaign_id: int) -> list[tuple[str, str]]:
    return []


def _waits_for_nothing(campaign_id: int) -> str:
    return ""


#: ``(campaign id) -> bool``: is any row of it open? Asked by ``finish`` behind the gate.
open_rows: Hook[[int], bool] = Hook(_no_open_rows)

#: ``(campaign id) -> rows canceled``: cancel what is queued, in retry or claimed.
cancel_rows: Hook[[int], int] = Hook(_cancel_nothing)

#: ``(campaign id) -> {status: rows, ..., "audience": people}``.
counts: Hook[[int], dict[str, int]] = Hook(_no_counts)

#: ``(campaign id) -> [(what, its count and limit in words), ...]``: what may pause it.
brakes: Hook[[int], list[tuple[str, str]]] = Hook(_no_brakes)

#: ``(campaign id) -> a sentence``: what a campaign waits for that could be sent; "": for nothing.
waits: Hook[[int], str] = Hook(_waits_for_nothing)
