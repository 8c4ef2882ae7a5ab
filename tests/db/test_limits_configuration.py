"""Limits follow what the configuration says."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from sending.models import RateLimit
from sending.ready import Ready
from subscribers.models import Account
from tests.factories import AccountFactory

from . import limited
from .limited import configured, known, limit, lot

pytestmark = pytest.mark.django_db

account = limited.account


def test_limits_follow_the_configuration(account: Account) -> None:
    with configured(rate=10.0, gmail_com=5.0, googlemail_com=3.0):
        known()
        assert dict(RateLimit.objects.values_list("key", "usual")) == {
            "transport:relay": 10.0,
            "domain:google": 3.0,
        }
    account.max_per_hour = 7200
    account.save()
    with configured(rate=20.0):
        limits = known()
        assert dict(RateLimit.objects.values_list("key", "rate")) == {
            "transport:relay": 20.0,
            f"account:{account.pk}": 2.0,
        }
        assert limits.concerns("relay", lot(account, "example.org"))
        assert not limits.concerns("other", lot(AccountFactory.create(), "gmail.com"))
    account.max_per_hour = None
    account.save()
    with configured():
        known()
        assert not RateLimit.objects.exists()


def test_a_slow_down_outlives_a_change_of_the_configuration() -> None:
    with configured(gmail_com=8.0):
        known()
        RateLimit.objects.update(rate=2.0, slowed_at=Now(), reason="421")
    with configured(gmail_com=1.5):
        known()
        assert (limit("domain:google").usual, limit("domain:google").rate) == (1.5, 1.5)
        RateLimit.objects.update(rate=0.5)
    with configured():
        known()
        left = limit("domain:google")
        assert (left.usual, left.rate, left.ceiling) == (None, 0.5, 1.5)


def test_a_changed_limit_lets_the_line_out(account: Account) -> None:
    with configured(gmail_com=0.01):
        limits = known()
        ready = Ready(lines=limits.lines)
        rows = lot(account, *["gmail.com"] * 4)
        ready.wait(limits.admit("relay", rows).waiting)
        assert ready.take(5, 0) is None
    with configured():
        limits.refresh(0)
        taken = ready.take(5, 0)
        assert taken is not None
        assert len(taken[1]) == 3
        assert not limits.concerns("relay", taken[1])
