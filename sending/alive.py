"""Whether senders live, and for what: one that was started for a campaign alone serves no other."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from .models import Worker

#: A worker that was seen so long ago is lost: it beats every two seconds.
ALIVE_WITHIN = timedelta(seconds=10)
#: Some live, but not for what is asked about.
NONE_SERVES = "each sender that is alive was started for another campaign alone"


def worker_state(ended: datetime | None, seen: datetime, now: datetime) -> str:
    """``ended`` (signed off), ``alive`` or ``lost``: neither signed off nor seen lately."""
    if ended is not None:
        return "ended"
    return "alive" if now - seen <= ALIVE_WITHIN else "lost"


def served(now: datetime) -> frozenset[int | None]:
    """Whom the senders that live serve: the campaigns that some were started for alone, and None
    where one serves everything. Empty: none lives."""
    alive = Worker.objects.filter(ended__isnull=True, seen__gte=now - ALIVE_WITHIN)
    return frozenset(alive.order_by().values_list("only_campaign", flat=True).distinct())


def serves(served: Collection[int | None], campaign_id: int | None) -> bool:
    """Whether a campaign is among those; None: single messages. Pure."""
    return None in served or (campaign_id is not None and campaign_id in served)


def has_sender(now: datetime, campaign_id: int | None = None) -> bool:
    """Whether a sender is alive that serves this campaign; None: one that serves everything."""
    return serves(served(now), campaign_id)


def without_sender(served: Collection[int | None], campaign_id: int | None) -> str:
    """That no sender takes a campaign (None: single messages), or "". Pure."""
    if serves(served, campaign_id):
        return ""
    return NONE_SERVES if served else "no sender is alive"
