"""How fast it went lately: of campaigns that went on to their end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sending.durations import lately
from sending.models import LedgerCount
from tests.factories import CampaignFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minutes", "hours", "rate"),
    [
        ((50, 60), [0], 10),
        # Opened again a day later for one that was in doubt.
        ((50, 26 * 60), [0, 26], None),
        ((50, 130), [1], 6000 / 4800),
        # What happens after it was finished (a bounce) is no part of it.
        ((10, 20), [0, 5], 10),
        ((10, 130), [0, 2, 5], None),
    ],
)
def test_one_that_lay_still_says_nothing(
    minutes: tuple[int, int], hours: list[int], rate: float | None
) -> None:
    started, finished = (NOON + timedelta(minutes=at) for at in minutes)
    campaign = CampaignFactory.create(
        sent=True, audience=6000, started_at=started, finished_at=finished
    )
    for hour in hours:
        LedgerCount.objects.create(
            campaign=campaign, status="sent", what=0, hour=NOON + timedelta(hours=hour), number=1
        )
    found = lately(campaign.account.transport)
    assert found == (rate if rate is None else pytest.approx(rate))
