"""What the log says of a campaign that is over, and of a sender that begins."""

from __future__ import annotations

import logging

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.upkeep import _tell_finished

from .commands import campaign_with


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("counts", "level"),
    [({"sent": 3, "bounced": 1}, "INFO"), ({"sent": 2, "in_doubt": 2}, "WARNING")],
)
def test_what_became_of_all_and_doubt_is_no_success(
    counts: dict[str, int], level: str, caplog: pytest.LogCaptureFixture
) -> None:
    campaign = campaign_with(counts, started_at=timezone.now())
    with caplog.at_level(logging.INFO, logger="sendonce.sender"):
        _tell_finished(Campaign.objects.get(pk=campaign.pk))
    (record,) = caplog.records
    assert record.levelname == level
    assert ("in doubt" in record.getMessage()) is (level == "WARNING")
    told = {name: value for name, value in record.__dict__.items() if name in [*counts, "audience"]}
    assert told == {**counts, "audience": 4}
    assert record.__dict__["seconds"] >= 0
