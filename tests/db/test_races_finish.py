"""``finish`` against rows that open meanwhile, on two connections, beside its controls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from campaigns import hooks, lifecycle
from campaigns.models import Campaign
from sending import doubt
from sending.connections import Busy
from sending.models import Send

from .race_rules import (
    PASSING,
    gate_or_control,
    late_refusal,
    late_return,
    status_now,
    stop_before_commit,
)
from .racing import Race, without_gate
from .rows import assert_identity, campaign_to, kinds_of, row, status_of

pytestmark = pytest.mark.django_db(transaction=True)


def _built(campaign: Campaign) -> Campaign:
    Campaign.objects.filter(pk=campaign.pk).update(
        built_at=timezone.now(), audience=Send.objects.filter(campaign=campaign).count()
    )
    return campaign


@gate_or_control
@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_finish_against_a_row_that_opens(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held doubt lets a campaign finish; its late answer "not accepted" opens the row."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt(PASSING[opens])
        stop_before_commit(monkeypatch, halt)
        opening = race.start_to(halt, opens(send))
        finishing = race.start(lambda: lifecycle.finish(campaign))
        if gated:
            finishing.wait_until_blocked()
            halt.released.set()
            opening.result()
            assert finishing.result() is False
            assert status_now(campaign) == "sending"
        else:
            assert finishing.result() is True
            halt.released.set()
            opening.result()
            assert status_now(campaign) == "sent", "control: sent, with an open row"
    assert status_of(send) in ("retry", "queued")


@gate_or_control
@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_a_row_that_would_open_while_finish_decides_comes_again(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait at the gate: nothing is written, and the repeat finds what was decided."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    opening = opens(send)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(hooks, "open_rows", halt.behind(hooks.open_rows))
        finishing = race.start_to(halt, lambda: lifecycle.finish(campaign))
        if gated:
            with pytest.raises(Busy):
                opening()
            assert status_of(send) == "in_doubt"
            assert kinds_of(send) == []
        else:
            opening()
        halt.released.set()
        assert finishing.result() is True
    if gated:
        assert status_now(campaign) == "sent"
        opening()
        assert status_now(campaign) == "sending"
    else:
        assert status_now(campaign) == "sent", "control: sent, with an open row"
    assert status_of(send) in ("retry", "queued")


@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_a_row_that_opens_after_finish_opens_its_campaign(
    opens: Callable[[Send], Callable[[], object]],
) -> None:
    """The other order: a campaign is never left ``sent`` with a row that nobody would claim."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    assert lifecycle.finish(campaign) is True
    opens(send)()
    assert status_of(send) in ("retry", "queued")
    assert status_now(campaign) == "sending"
    campaign.refresh_from_db()
    assert campaign.finished_at is None
    assert "not to have been accepted" in campaign.status_reason
    assert lifecycle.finish(campaign) is False
    assert_identity(campaign)


@gate_or_control
def test_finish_against_send_again(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(hooks, "open_rows", halt.behind(hooks.open_rows))
        finishing = race.start_to(halt, lambda: lifecycle.finish(campaign))
        again = race.start(lambda: doubt.resolve([send], doubt.SEND_AGAIN))
        if gated:
            again.wait_until_blocked()
        else:
            assert again.result() == 1
        halt.released.set()
        assert finishing.result() is True
        assert again.result() == 1
    assert status_of(send) == "queued"
    if gated:
        assert status_now(campaign) == "sending"
    else:
        assert status_now(campaign) == "sent", "control: sent, with a queued row"
