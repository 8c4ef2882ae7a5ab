"""What can go wrong with a campaign; every message says what was found and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .preflight.findings import Report

#: Errors of a preflight that are told in one sentence; beyond them it says how many more.
_TOLD = 5


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
    """Somebody edited the campaign (or ``what``) since it was read."""

    def __init__(self, verb: str, what: str = "campaign") -> None:
        super().__init__(
            f"cannot {verb}: the {what} was edited meanwhile; look at it again and repeat"
        )


class ApprovalRefused(CampaignError):
    """The content or the approver does not allow approval; the message says which and why."""


class PreflightFailed(ApprovalRefused):
    """Preflight found errors, of which the message names the first. ``report`` has all."""

    def __init__(self, report: Report) -> None:
        self.report = report
        told = [_inside(finding.title) for finding in report.errors]
        more = len(told) - _TOLD
        named = "; ".join(told[:_TOLD])
        super().__init__(f"{named}; and {more} more" if more > 0 else named)


class NotAgreed(ApprovalRefused):
    """What preflight found is not what the approver agreed to; the message says what is another.
    ``report`` has all."""

    def __init__(self, report: Report, why: str) -> None:
        self.report = report
        super().__init__(why)


def _inside(title: str) -> str:
    """A sentence's text as a part of another one."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


class GateBusy(CampaignError):
    """Another transaction holds the campaign's gate, and did so for long; try again."""

    def __init__(self) -> None:
        super().__init__(
            "the campaign is busy: another process decides about it or works on it; try again"
        )
