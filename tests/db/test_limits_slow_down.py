"""Slow-downs: what slows whom, and how it recovers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from sending.answers import Answer, Verdict
from sending.limits import slow_rates
from sending.limits.admission import Limits
from sending.models import RateLimit
from subscribers.models import Account

from . import limited
from .limited import SENT, SLOWER, TOO_MANY, configured, known, limit, lot

pytestmark = pytest.mark.django_db

account = limited.account


def _wished(limits: Limits, account: Account, *told: tuple[Verdict, Answer]) -> None:
    (gmail,) = lot(account, "gmail.com")
    for verdict, answer in told:
        limits.note("relay", gmail, verdict, answer)


def test_a_complaint_slows_the_recipients_provider_for_everybody(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    limits, other = known(), known()
    with django_assert_num_queries(0):
        _wished(limits, account, *[SENT] * 100, SLOWER)
        assert limits.concerns("relay", lot(account, "googlemail.com"))
        assert not limits.concerns("relay", lot(account, "example.org"))
    limits.refresh(0)
    slowed = limit("domain:google")
    assert slowed.usual is None
    assert slowed.rate == pytest.approx(50.5, rel=0.3), "half of 101 in its first second"
    assert slowed.ceiling == pytest.approx(slowed.rate * 8)
    assert slowed.slowed_at is not None
    assert slowed.reason == "421 4.7.28 unusual rate of mail"
    other.refresh(0)
    assert other.concerns("relay", lot(account, "gmail.com"))


def test_many_complaints_are_one_within_a_while(account: Account) -> None:
    with configured(gmail_com=8.0):
        workers = [known() for _ in range(3)]
        for limits in workers * 2:
            _wished(limits, account, SLOWER, SLOWER)
            limits.refresh(0)
        assert limit("domain:google").rate == 4.0
        RateLimit.objects.update(slowed_at=Now() - timedelta(seconds=slow_rates.PATIENCE + 1))
        for limits in workers:
            _wished(limits, account, SLOWER)
            limits.refresh(0)
        assert limit("domain:google").rate == 2.0


def test_no_slower_than_one_a_minute(account: Account) -> None:
    with configured(gmail_com=8.0):
        limits = known()
        RateLimit.objects.update(rate=0.02)
        _wished(limits, account, SLOWER)
        limits.refresh(0)
        assert limit("domain:google").rate == pytest.approx(1 / 60)


def test_retry_after_closes_the_transport_for_everybody(account: Account) -> None:
    limits, other = known(), known()
    assert not limits.closed("relay")
    _wished(limits, account, TOO_MANY)
    assert limits.closed("relay"), "at once, for the rest of the lot"
    rows = lot(account, "example.org", "example.org")
    assert limits.admit("relay", rows).go == []
    assert limits.held_accounts() == {account.pk}
    other.refresh(0)
    assert other.closed("relay")
    assert other.held_accounts() == {account.pk}
    assert other.admit("relay", rows).go == []
    RateLimit.objects.update(updated=Now() - timedelta(seconds=10))
    other.refresh(0)
    assert not other.closed("relay")
    assert len(other.admit("relay", rows).go) == 1


def test_it_recovers_step_by_step_up_to_the_usual_rate(account: Account) -> None:
    with configured(gmail_com=8.0):
        limits = known()
        _wished(limits, account, SLOWER)
        limits.refresh(0)
        seen = [limit("domain:google").rate]
        for _ in range(4):
            RateLimit.objects.update(
                slowed_at=Now() - timedelta(seconds=300),
                raised_at=Now() - timedelta(seconds=slow_rates.RECOVERY + 1),
            )
            for _ in range(2):  # two workers look, one raises
                known()
            seen.append(limit("domain:google").rate)
        assert seen == [4.0, 5.0, 6.25, 7.8125, 8.0]


def test_back_at_the_usual_rate_nothing_is_slow_any_more() -> None:
    with configured(gmail_com=8.0):
        known()
        RateLimit.objects.update(
            rate=7.0, slowed_at=Now() - timedelta(seconds=31), reason="unusual rate"
        )
        known()
        now = limit("domain:google")
        assert (now.rate, now.slowed_at, now.raised_at, now.reason) == (8.0, None, None, "")


def test_where_there_was_no_limit_there_is_none_in_the_end() -> None:
    limit_ = RateLimit.objects.create(
        key="domain:google", rate=4.0, ceiling=7.0, slowed_at=Now() - timedelta(seconds=31)
    )
    known()
    limit_.refresh_from_db()
    assert limit_.rate == 5.0
    known()
    limit_.refresh_from_db()
    assert limit_.rate == 5.0, "not again within the while"
    RateLimit.objects.update(rate=6.0, raised_at=Now() - timedelta(seconds=31))
    limits = known()
    assert not RateLimit.objects.exists()
    assert not limits.concerns("relay", [])


def test_nothing_is_raised_while_it_is_closed() -> None:
    RateLimit.objects.create(
        key="transport:relay",
        rate=1.0,
        ceiling=9.0,
        slowed_at=Now() - timedelta(seconds=99),
        updated=Now() + timedelta(seconds=60),
    )
    known()
    assert limit("transport:relay").rate == 1.0
