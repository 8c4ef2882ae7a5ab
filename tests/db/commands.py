"""Commands as an operator types them, and campaigns for them to tell of."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from campaigns.models import Campaign
from tests.factories import CampaignFactory, SendFactory


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def refused(*arguments: str, code: int) -> str:
    """The one line with which the command refuses."""
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert caught.value.returncode == code
    assert "\n" not in str(caught.value)
    return str(caught.value)


def campaign_with(counts: dict[str, int], *, audience: int | None = None, **given: Any) -> Campaign:
    """A campaign with so many rows per trait of ``SendFactory``; ``queued`` is none."""
    campaign = CampaignFactory.create(
        **{"sending": True, "built_at": timezone.now(), **given},
        audience=sum(counts.values()) if audience is None else audience,
    )
    for trait, number in counts.items():
        traits = {} if trait == "queued" else {trait: True}
        SendFactory.create_batch(number, campaign=campaign, **traits)
    return campaign


ONE_OF_EACH = {
    "queued": 1,
    "claimed": 1,
    "handed_over": 1,
    "retry": 1,
    "sent": 1,
    "bounced": 1,
    "failed": 1,
    "suppressed": 1,
    "in_doubt": 1,
    "canceled": 1,
}
