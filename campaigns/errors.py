"""What can go wrong with a campaign; every message says what was found and what to do."""

from __future__ import annotations


class CampaignError(Exception):
    """Base of all: something about a campaign was refused and nothing was changed."""


class WrongState(CampaignError):
    """The campaign's status does not allow the verb. ``found`` is the status it has."""

    def __init__(self, verb: str, found: str, allowed: tuple[str, ...]) -> None:
        self.verb, self.found, self.allowed = verb, found, allowed
        super().__init__(
            f"cannot {verb}: the campaign is {found}, it would have to be {' or '.join(allowed)}"
        )


class Conflict(CampaignError):
    """Somebody edited the campaign since it was read."""

    def __init__(self, verb: str) -> None:
        super().__init__(
            f"cannot {verb}: the campaign was edited meanwhile; look at it again and repeat"
        )


class ApprovalRefused(CampaignError):
    """The content or the approver does not allow approval; the message says which and why."""


class GateBusy(CampaignError):
    """Another transaction holds the campaign's gate, and did so for long; try again."""

    def __init__(self) -> None:
        super().__init__(
            "the campaign is busy: another process decides about it or works on it; try again"
        )
