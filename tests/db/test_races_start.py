"""A campaign starts once, and its build loses no newcomer; beside their controls."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import build, sql
from sending.build import build_chunk
from sending.models import Send

from .race_rules import status_now
from .racing import Race, without_gate
from .rows import assert_identity, campaign_to, member

pytestmark = pytest.mark.django_db(transaction=True)


# --- due -------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarded", [True, False], ids=["compare-and-set", "control"])
def test_two_due_at_once_start_it_once(guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compare-and-set decides; the gate only orders it with the rest, and stands open in
    both. The control takes the row's lock and the compare-and-set away."""
    campaign = campaign_to(0, status="approved")
    without_gate(monkeypatch)
    if not guarded:

        def only_write(found: Campaign, verb: str, expected: object, **changes: Any) -> None:
            Campaign.objects.filter(pk=found.pk).update(**changes)

        monkeypatch.setattr(lifecycle, "_compare_and_set", only_write)
        monkeypatch.setattr(
            type(Campaign.objects.all()), "select_for_update", lambda self, **_: self
        )
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "is_approved_as_it_is", halt.behind(lambda found: True))
        first = race.start_to(halt, lambda: lifecycle.due(campaign))
        second = race.start(lambda: lifecycle.due(Campaign.objects.get(pk=campaign.pk)))
        if guarded:
            second.wait_until_blocked()
        else:
            assert second.result() is True
        halt.released.set()
        results = sorted([first.result(), second.result()])
    assert results == ([False, True] if guarded else [True, True])
    assert status_now(campaign) == "sending"


# --- building against importing --------------------------------------------------------------


@pytest.mark.parametrize("locked", [True, False], ids=["cursor lock", "control"])
def test_a_chunk_of_newcomers_against_the_closing_sweep(
    locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One builder sweeps and counts; another finds a newcomer beyond the cursor meanwhile. The
    sweep's count must not be older than the rows it closes."""
    campaign = campaign_to(2)
    assert build_chunk(campaign.pk, size=100) is not None
    if not locked:
        monkeypatch.setattr(build, "_sweep", _sweep_without_lock)
    # The sweep stands in its one statement: it counts rows, then waits for the campaign's row.
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
            sweeping = race.start(lambda: build_chunk(campaign.pk, size=100))
            sweeping.wait_until_blocked()
            member(campaign)
            chunk = build_chunk(campaign.pk, size=100)
            assert chunk is not None
            assert chunk.inserted == 1
        swept = sweeping.result()
    campaign.refresh_from_db()
    rows = Send.objects.filter(campaign=campaign).count()
    if locked:
        assert swept is None, "another builder moved on: its sweep comes later"
        build.build(campaign.pk, size=100)
        assert_identity(campaign)
    else:
        assert campaign.built_at is not None
        assert (campaign.audience, rows) == (2, 3), "control: a row without a person"


def _sweep_without_lock(cursor: Any, place: dict[str, int]) -> object:
    cursor.execute(sql.SWEEP, place)
    return build.Progress(inserted=cursor.fetchone()[0], done=True)
