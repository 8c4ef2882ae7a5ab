"""What is held for a person is told on the front page, whatever else is in doubt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sending import dashboard
from sending.dashboard import May, look
from tests.factories import AccountFactory, CampaignFactory, SendFactory

from .doubtful import doubtful

pytestmark = pytest.mark.django_db

ALL = May(campaigns=True, approve=True, sends=True, pauses=True, imports=True)


def test_messages_of_another_account_hide_none(monkeypatch: Any) -> None:
    monkeypatch.setattr(dashboard, "COUNTED", 3)
    mine, other = AccountFactory.create(), AccountFactory.create()
    for _ in range(3):
        SendFactory.create(account=other, transactional=True, in_doubt=True)
    SendFactory.create(account=mine, transactional=True, in_doubt=True)
    assert [held.rows for held in look([mine.pk], ALL).held] == [1]


def test_what_settles_itself_hides_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(dashboard, "COUNTED", 3)
    soon = timezone.now() + timedelta(minutes=5)
    old = CampaignFactory.create(sent=True, name="Old")
    doubtful(3, old, settle_at=soon)
    doubtful(1, old)
    for _ in range(dashboard.SHOWN):
        newer = CampaignFactory.create(sending=True, account__in_doubt_policy="assume_sent")
        doubtful(1, newer, settle_at=soon)
    assert [(held.name, held.rows) for held in look(None, ALL).held] == [("Old", 1)]
