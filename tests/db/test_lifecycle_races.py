"""Two callers of a campaign's verbs at once, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import lifecycle
from campaigns.errors import CampaignError, WrongState
from campaigns.gate import enter_exclusive
from campaigns.models import Approval, Campaign
from tests.factories import StaffFactory

from .lifecycles import VERBS, approved, in_status, stored
from .racing import Race


def _outcome(verb: Callable[[Campaign], object], campaign_id: int) -> object:
    """What a caller on another connection gets: its value, or the refusal."""
    try:
        return verb(Campaign.objects.get(pk=campaign_id))
    except CampaignError as refusal:
        return refusal


RACES: dict[str, tuple[str, str]] = {
    "approve": ("draft", "approved"),
    "withdraw": ("approved", "draft"),
    "pause": ("sending", "paused"),
    "resume": ("paused", "sending"),
    "cancel": ("sending", "canceled"),
    "due": ("approved", "sending"),
    "finish": ("sending", "sent"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", list(RACES))
def test_of_two_callers_at_once_one_wins(verb: str) -> None:
    start, end = RACES[verb]
    campaign = approved() if start == "approved" else in_status(start)
    if verb == "finish":
        Campaign.objects.filter(pk=campaign.pk).update(built_at=timezone.now())
    by = StaffFactory.create()

    def call(found: Campaign) -> object:
        if verb == "due":
            return lifecycle.due(found)
        if verb == "finish":
            return lifecycle.finish(found)
        return VERBS[verb](found, by)

    with Race() as race:
        # Both have read the campaign and stand before its gate before either decides.
        with transaction.atomic(), connection.cursor() as cursor:
            enter_exclusive(cursor, campaign.pk)
            both = [race.start(lambda: _outcome(call, campaign.pk)) for _ in range(2)]
            for racer in both:
                racer.wait_until_blocked()
        results = [racer.result() for racer in both]
    losers = [r for r in results if r is False or isinstance(r, WrongState)]
    assert len(losers) == 1, results
    if isinstance(losers[0], WrongState):
        assert losers[0].found == end
    assert stored(campaign).status == end
    if verb == "approve":
        assert Approval.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["approve", "pause", "due"])
def test_a_transition_is_notified_once_it_is_committed(verb: str) -> None:
    start = RACES[verb][0]
    campaign = approved() if start == "approved" else in_status(start, built_at=timezone.now())
    by = StaffFactory.create()
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {lifecycle.CHANNEL}")
    raw = connection.connection
    with transaction.atomic():
        if verb in VERBS:
            VERBS[verb](campaign, by)
        else:
            getattr(lifecycle, verb)(campaign)
        assert list(raw.notifies(timeout=0)) == []
    heard = list(raw.notifies(timeout=5, stop_after=1))
    with connection.cursor() as cursor:
        cursor.execute("UNLISTEN *")
    assert [n.payload for n in heard] == [f"campaign:{campaign.pk}"]
