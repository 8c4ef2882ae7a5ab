"""Mail to staff by a road of its own: who is blocked must still be able to say so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from sending.models import Send
from sending.queue import Claimed, Rotation, claim
from sending.transactional import enqueue
from subscribers.conf_values import wrong_values
from subscribers.models import Account
from tests.factories import AccountFactory, ContentFactory

pytestmark = pytest.mark.django_db


def _message(account: Account, key: str, transport: str = "") -> Send:
    return enqueue(
        account,
        kind="notice",
        key=key,
        to="staff@example.org",
        content=ContentFactory.create(account=account),
        context={},
        expires=timezone.now() + timedelta(days=1),
        transport=transport,
    )


def _claim(blocked: list[int], closed: set[str]) -> list[Claimed]:
    return claim(
        Rotation(), worker_id=1, total=9, lease=60, margin=10, blocked=blocked, closed=closed
    )


def test_it_goes_while_the_accounts_own_transport_takes_nothing() -> None:
    account = AccountFactory.create(transport="default")
    own, other = _message(account, "own"), _message(account, "other", transport="staff")
    (claimed,) = _claim([account.pk], {"default"})
    assert (claimed.id, claimed.alias) == (other.pk, "staff")
    (claimed,) = _claim([], set())
    assert (claimed.id, claimed.alias) == (own.pk, "default")


def test_it_waits_while_its_own_road_takes_nothing() -> None:
    account = AccountFactory.create(transport="default")
    _message(account, "other", transport="staff")
    assert _claim([], {"staff"}) == []


def test_a_road_that_is_none_is_a_wrong_setting() -> None:
    transports = {"default": {"BACKEND": "sending.smtp.EmailBackend"}}
    assert wrong_values({"TRANSPORTS": transports, "NOTICES_TRANSPORT": "default"}) == []
    (said,) = wrong_values({"TRANSPORTS": transports, "NOTICES_TRANSPORT": "staff"})
    assert "NOTICES_TRANSPORT" in said
