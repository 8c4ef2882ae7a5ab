"""What the races of the protocol share, each of which stands beside its control.

Every control takes one guard away (the gate, the second statement, the compare-and-set) and
shows that the race is then lost: the test proves that the guard matters, not only that all is
well today.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending import events
from sending.handover import give_back
from sending.models import Send
from sending.settle import settle

from .racing import Halt
from .rows import held, told


def just_now() -> datetime:
    return timezone.now() - timedelta(seconds=1)


gate_or_control = pytest.mark.parametrize("gated", [True, False], ids=["gate", "control"])


def stop_before_commit(monkeypatch: pytest.MonkeyPatch, halt: Halt) -> None:
    """Outcomes, hand-overs, give-backs and rescues note their events last."""
    monkeypatch.setattr(events, "record", halt.behind(events.record))


def status_now(campaign: Campaign) -> str:
    return Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk)


def late_refusal(send: Send) -> Callable[[], object]:
    return lambda: settle([told(held(send), "retry")], doubt_wait=0)


def late_return(send: Send) -> Callable[[], object]:
    return lambda: give_back([held(send)])


#: How often it passes ``events.record`` before the transaction that opens the row: a give-back
#: looks for rows that are merely claimed first.
PASSING: dict[Any, int] = {late_refusal: 0, late_return: 1}
