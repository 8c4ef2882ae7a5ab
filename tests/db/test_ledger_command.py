"""``ledger``: every row of a campaign, and whether they add up."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from sending.ledger import STATUSES
from sending.models import Send
from tests.factories import CampaignFactory

from .commands import ONE_OF_EACH, campaign_with, refused, run

pytestmark = pytest.mark.django_db


def test_the_ledger_of_nothing() -> None:
    CampaignFactory.create()
    assert run("ledger") == "No campaign has started yet.\n"
    assert json.loads(run("ledger", "--json")) == []


def test_the_ledger_shows_every_status_and_the_identity() -> None:
    campaign = campaign_with(ONE_OF_EACH)
    data = json.loads(run("ledger", "--campaign", str(campaign.pk), "--json"))
    assert data == [
        {
            "campaign": campaign.pk,
            "name": campaign.name,
            "status": "sending",
            "built": True,
            **dict.fromkeys(STATUSES, 1),
            "archived": {},
            "audience": 10,
            "difference": 0,
            "holds": True,
            "counters": [],
        }
    ]
    lines = run("ledger", "--campaign", str(campaign.pk)).splitlines()
    shown = {line[:12].strip(): line[12:].split()[0] for line in lines if line.startswith("  ")}
    words = {str(Send.Status(status).label): "1" for status in STATUSES}
    assert words.items() <= shown.items()
    assert (shown["rows"], shown["people"], shown["difference"]) == ("10", "10", "0")
    assert "every recipient is accounted for" in lines[-1]


def test_the_ledger_of_all_has_a_line_each() -> None:
    first, second = campaign_with({"sent": 3}), campaign_with(ONE_OF_EACH)
    lines = run("ledger").splitlines()
    cells = dict(zip(lines[0].split("  "), lines[0].split("  "), strict=True))
    assert "in doubt" in {cell.strip() for cell in cells}
    assert lines[1].split()[0] == str(first.pk)
    # people, open (queued, claimed, sending, retry), sent, ..., difference
    assert lines[2].split()[-9:] == ["10", "4", "1", "1", "1", "1", "1", "1", "0"]
    assert lines[2].split()[0] == str(second.pk)
    assert lines[-1] == "Every recipient is accounted for."


@pytest.mark.parametrize(("audience", "words"), [(4, "people have no row"), (2, "no person")])
def test_a_ledger_that_does_not_add_up_exits_1(audience: int, words: str) -> None:
    campaign_with({"sent": 1})
    broken = campaign_with({"sent": 3}, audience=audience)
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("ledger", stdout=out)
    assert caught.value.returncode == 1
    assert str(caught.value) == f"the ledger does not add up for campaign {broken.pk}"
    assert words in out.getvalue()
    assert "Every recipient" not in out.getvalue()
    refused("ledger", "--campaign", str(broken.pk), "--json", code=1)


@pytest.mark.parametrize("given", ["99", "x", "-1", "1.5", "", "9" * 30, "٣"])
def test_an_unknown_campaign_exits_2(given: str) -> None:
    assert refused("ledger", f"--campaign={given}", code=2) == f"there is no campaign {given!r}"
