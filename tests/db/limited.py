"""Limits of a transport and of domains, a process that knows them, and rows before them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import override_settings

from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.limits.admission import Limits
from sending.models import RateLimit
from sending.queue import Claimed
from subscribers.models import Account
from tests.claimed_rows import claimed_row
from tests.factories import AccountFactory

SENT = (Verdict(Outcome.SENT, Reason.ACCEPTED), Answer(Stage.DOT, 250))
SLOWER = (
    Verdict(Outcome.RETRY, Reason.THROTTLED),
    Answer(Stage.RCPT, 421, "4.7.28", "unusual rate of mail"),
)
TOO_MANY = (
    Verdict(Outcome.RETRY, Reason.THROTTLED),
    Answer(Stage.HTTP, 429, "", "too many requests", retry_after=60.0),
)


def configured(
    *, rate: float | None = None, connections: int | None = None, **domains: float
) -> Any:
    """Settings with these limits of the transport ``relay`` and of domains (``gmail_com``)."""
    entry: dict[str, Any] = {"BACKEND": "sending.smtp.EmailBackend"}
    entry |= {"RATE": rate} if rate else {}
    entry |= {"CONNECTIONS": connections} if connections else {}
    rates = {name.replace("_", "."): value for name, value in domains.items()}
    return override_settings(SENDONCE={"TRANSPORTS": {"relay": entry}, "DOMAIN_RATES": rates})


@pytest.fixture
def account() -> Account:
    made: Account = AccountFactory.create(transport="relay")
    return made


def known() -> Limits:
    """A process that has just looked."""
    limits = Limits()
    limits.refresh(0)
    return limits


def lot(account: Account, *domains: str, transactional: bool = False) -> list[Claimed]:
    """Rows as a lane has them in hand; they need not be in the database for a permit."""
    return [
        claimed_row(
            number,
            account_id=account.pk,
            campaign_id=None if transactional else 1,
            email=f"p{number}@{domain}",
        )
        for number, domain in enumerate(domains, 1)
    ]


def limit(key: str) -> RateLimit:
    return RateLimit.objects.get(key=key)


def hold(key: str, tokens: float) -> None:
    """So many tokens, and so many for the test's length: none come in."""
    RateLimit.objects.filter(key=key).update(tokens=tokens, updated=Now(), rate=0.001)


def ids(rows: list[Claimed]) -> list[int]:
    return [r.id for r in rows]
