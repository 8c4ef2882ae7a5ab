"""What the dispatcher claims, and when it leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from campaigns.models import Campaign
from sending import dispatcher
from sending.dispatcher import Dispatcher
from sending.lanes import Lane
from sending.shared import Shared
from tests.factories import WorkerFactory

from .rows import LEASE, campaign_to, row, status_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def made() -> Iterator[Dispatcher]:
    shared = Shared(
        lanes=1, lot_limit=4, lease=LEASE, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    shared.worker_id = WorkerFactory.create().pk
    yield Dispatcher(shared, [Lane(0, shared)])
    shared.pool.close()


def test_without_any_transport_rows_are_claimed_all_the_same(made: Dispatcher) -> None:
    """A lane then finds that there is none, and says so; unclaimed, they would wait in silence."""
    send = row(campaign_to(0))
    with override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": {}}):
        assert made.step() == 1
    assert status_of(send) == "claimed"


def test_nothing_is_claimed_while_enough_waits_for_every_transport(
    made: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    for _ in range(6):
        row(campaign)
    assert made.step() == dispatcher.SMALLEST_CLAIM

    def claim(*given: Any, **more: Any) -> Any:
        pytest.fail("it asked the database for rows that have no room")

    monkeypatch.setattr(dispatcher, "claim", claim)
    assert made.step() == -1, "there was no room"


def test_a_campaign_that_has_just_begun_is_claimed_at_the_news_of_it(
    made: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "REFRESH", 3600.0)
    monkeypatch.setattr(dispatcher, "REFRESH_AT_NEWS", 0.0)
    assert made.step() == 0, "it has looked"
    send = row(campaign_to(0))
    assert made.step() == 0, "and does not look again so soon"
    made.shared.wake_dispatcher.set()
    assert made.step() == 1
    assert status_of(send) == "claimed"
    assert Campaign.objects.count() == 1
