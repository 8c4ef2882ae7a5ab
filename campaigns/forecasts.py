"""What the app that sends can tell before a campaign is sent; ``hooks`` asks it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Duration:
    """How long sending to so many people will take. ``seconds`` None: nobody can tell.

    ``bound_by`` names what limits it (``account Example``), "" for nothing known; ``words`` is
    one sentence for staff.
    """

    seconds: float | None
    bound_by: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class TransportState:
    """An account's transport now. ``problem``: why it takes no mail, a sentence; "" when it does.
    ``stays_here``: its mail goes no further than this machine, a rehearsal."""

    is_known: bool = True
    problem: str = ""
    stays_here: bool = False
