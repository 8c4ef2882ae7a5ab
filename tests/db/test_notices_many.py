"""Mail to the staff of many accounts, and about what can't be told."""

from __future__ import annotations

from typing import Any

import pytest

from campaigns.models import Campaign
from sending import health, notice_texts, notices
from sending.answers import Answer, Stage
from sending.models import Send
from sending.pauses import pause
from subscribers.models import Account
from tests.factories import AccountFactory, CampaignFactory, StaffFactory

LOGIN = Answer(Stage.AUTH, 535, "5.7.8", "bad password")

pytestmark = pytest.mark.django_db


def _account(address: str = "ann@example.org", **fields: Any) -> Account:
    made: Account = AccountFactory.create(members=[StaffFactory.create(email=address)], **fields)
    return made


def _tripped(account: Account) -> Campaign:
    campaign: Campaign = CampaignFactory.create(account=account, sending=True)
    assert health.pause(campaign.pk, "20 refusals in a row (policy): 550 5.7.1 blocked")
    return campaign


def test_many_accounts_of_a_transport_are_told_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "MOST", 2)
    for number in range(5):
        _account(f"p{number}@example.org")
    pause("default", None, LOGIN)
    assert [notices.tell() for _ in range(4)] == [2, 2, 1, 0]


def test_a_time_zone_that_is_none_keeps_nobody_uninformed() -> None:
    _account(timezone="Mars/Base")
    pause("default", None, LOGIN)
    assert notices.tell() == 1


def test_a_notice_that_cannot_be_made_keeps_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    account = _account()
    broken, other = _tripped(account), _tripped(account)
    made = notice_texts.paused
    calls: list[str] = []

    def failing(*given: Any, **more: Any) -> Any:
        calls.append("")
        if len(calls) == 1:
            raise RuntimeError("a bug")
        return made(*given, **more)

    monkeypatch.setattr(notice_texts, "paused", failing)
    assert notices.tell() == 1
    assert "a notice can't be made" in caplog.text
    assert notices.tell() == 1, "and is tried again"
    told = Send.objects.order_by("pk").values_list("job_id", flat=True)
    assert [job.split(":")[4] for job in told] == [str(other.pk), str(broken.pk)]
