"""What canceling a campaign keeps, and what it stops, in numbers of recipients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import hooks
from ..models import Campaign
from .verb_words import CANCEL

#: Statuses of recipients in the order and words of the page.
_STOPPED = ("queued", "claimed", "retry")
_KEPT = (
    ("sent", "sent", ""),
    ("sending", "being handed over just now", "recorded as they end"),
    ("in_doubt", "in doubt", "until evidence comes or somebody decides"),
    ("bounced", "bounced", ""),
    ("failed", "failed", ""),
    ("suppressed", "suppressed", "who were not to get it"),
)


def keeps(campaign: Campaign) -> dict[str, Any]:
    """The context of the page that asks. One statement where sending has begun, none before."""
    started = campaign.started_at is not None
    return {
        "can_cancel": campaign.status in CANCEL.states,
        "started": started,
        "built": campaign.built_at is not None,
        **(split(hooks.counts(campaign.pk)) if started else {"kept": [], "stopped": 0}),
    }


def split(counts: Mapping[str, int]) -> dict[str, Any]:
    """``kept``: (number, what they are, what becomes of them) of each that there is; ``stopped``:
    how many have not been sent and will not be. Pure."""
    kept = [(counts[name], label, told) for name, label, told in _KEPT if counts.get(name)]
    return {"kept": kept, "stopped": sum(counts.get(name, 0) for name in _STOPPED)}
