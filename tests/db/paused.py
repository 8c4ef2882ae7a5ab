"""Paused transports as a process that has just looked at them knows them, and when they are due."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from sending.answers import Answer, Stage
from sending.models import TransportPause
from sending.pauses import Pauses
from subscribers.models import Account
from tests.factories import AccountFactory

REFUSED = Answer(Stage.CONNECT, None, "", "connection refused")
LOST = Answer(Stage.DOT, None, "", "connection lost")
SENDER = Answer(Stage.MAIL, 550, "5.7.1", "sender not allowed")


def known_now() -> Pauses:
    """A process that has just looked."""
    found = Pauses()
    found.refresh()
    return found


def make_due() -> None:
    TransportPause.objects.update(probe_at=Now() - timedelta(seconds=1))


def account_on(transport: str) -> Account:
    account: Account = AccountFactory.create(transport=transport)
    return account


def wait_and_failures() -> tuple[float, int]:
    row = TransportPause.objects.annotate(db_now=Now()).get()
    return (row.probe_at - row.db_now).total_seconds(), row.failures
