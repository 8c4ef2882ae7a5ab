"""Permits, by a process at a time against the real database, and rows put off."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from campaigns.models import Campaign
from sending import clock
from sending.limits.admission import SHORTEST_LINE, Limits
from sending.models import RateLimit, Send
from sending.ready import Ready
from subscribers.models import Account
from tests.factories import AccountFactory

from . import limited
from .limited import configured, hold, ids, known, limit, lot
from .rows import campaign_to, held, kinds_of, row

pytestmark = pytest.mark.django_db

account = limited.account


# --- where there is no limit -----------------------------------------------------------------


def test_without_limits_the_database_is_not_asked(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    limits, rows = known(), lot(account, "gmail.com", "example.org")
    with django_assert_num_queries(0):
        assert not limits.concerns("relay", rows)
        assert limits.admit("relay", rows).go == rows
        assert limits.held_accounts() == set()
        assert limits.shares.may_hold("relay") is None
    with configured(gmail_com=5.0):
        limits = known()
        others = lot(account, "example.org", "example.net")
        with django_assert_num_queries(0):
            assert not limits.concerns("relay", others)
            assert limits.concerns("relay", rows)
            assert limits.admit("relay", others).go == others


def test_a_process_that_has_never_looked_looks_first(account: Account) -> None:
    with configured(rate=1.0):
        limits, rows = Limits(), lot(account, "example.org", "example.org", "example.org")
        assert limits.concerns("relay", rows)
        assert ids(limits.admit("relay", rows).go) == [1]


# --- permits ---------------------------------------------------------------------------------


def test_as_many_as_there_are_tokens_and_a_token_for_each(account: Account) -> None:
    with configured(rate=40.0):
        limits, rows = known(), lot(account, *["example.org"] * 5)
        RateLimit.objects.update(updated=Now() - timedelta(hours=1))
        found = limits.admit("relay", rows)
        assert ids(found.go) == [1, 2, 3], "a token and five percent of a second's worth"
        assert [(row.id, key) for row, key in found.waiting] == [
            (4, "transport:relay"),
            (5, "transport:relay"),
        ]
        assert (found.give_back, found.later) == ([], [])
        left = limit("transport:relay")
        assert (left.tokens, left.updated) == (0.0, found.at)


def test_what_one_limit_refuses_costs_the_other_nothing(account: Account) -> None:
    with configured(rate=10.0, gmail_com=10.0):
        limits = known()
        hold("transport:relay", 1.0)
        hold("domain:google", 0.0)
        found = limits.admit("relay", lot(account, "gmail.com", "googlemail.com", "example.org"))
        assert ids(found.go) == [3]
        assert [(row.id, key) for row, key in found.waiting] == [
            (1, "domain:google"),
            (2, "domain:google"),
        ]
        assert limit("transport:relay").tokens == pytest.approx(0.0, abs=0.05)
        assert limit("domain:google").tokens == 0.0, "untouched"


def test_a_transactional_message_has_the_token_that_there_is(account: Account) -> None:
    with configured(rate=10.0):
        limits = known()
        hold("transport:relay", 1.0)
        bulk = lot(account, "example.org", "example.org")
        urgent = lot(account, "example.org", transactional=True)
        found = limits.admit("relay", [*bulk, *urgent])
        assert found.go == urgent


def test_whoever_comes_later_stands_behind_those_in_line(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with configured(rate=10.0):
        limits = known()
        ready = Ready(lines=limits.lines)
        hold("transport:relay", 0.0)
        first = lot(account, "example.org")
        ready.wait(limits.admit("relay", first).waiting)
        hold("transport:relay", 1.0)
        later = lot(account, "example.org")
        with django_assert_num_queries(0):
            assert limits.admit("relay", later).go == []
        limits.lines.pace("transport:relay", clock.now(), 1)
        taken = ready.take(5, 0)
        assert taken == ("relay", first)
        assert limits.admit("relay", first).go == first


def test_a_long_line_gives_back_what_the_dispatcher_can_leave_alone(account: Account) -> None:
    account.max_per_hour = 60
    account.save()
    with configured():
        limits = known()
        ready = Ready(lines=limits.lines)
        assert limit(f"account:{account.pk}").usual == pytest.approx(1 / 60)
        rows = lot(account, *["example.org"] * 20)
        found = limits.admit("relay", rows)
        ready.wait(found.waiting)
        assert ids(found.go) == [1]
        assert [r.id for r, _ in found.waiting] == list(range(2, 2 + SHORTEST_LINE))
        assert ids(found.give_back) == list(range(2 + SHORTEST_LINE, 21))
        assert found.later == []
        assert limits.held_accounts() == {account.pk}
        urgent = lot(account, "example.org", transactional=True)
        for _ in range(2):
            found = limits.admit("relay", urgent)
            assert found.give_back == [], "it would be claimed again at once"


def test_a_long_line_for_a_domain_puts_off_and_lets_others_pass(account: Account) -> None:
    with configured(gmail_com=0.1):
        limits = known()
        ready = Ready(lines=limits.lines)
        rows = lot(account, *["gmail.com", "example.org"] * 10)
        found = limits.admit("relay", rows)
        ready.wait(found.waiting)
        assert ids(found.go) == [1, *range(2, 21, 2)]
        assert len(found.waiting) == SHORTEST_LINE
        waits = [seconds for _, seconds in found.later]
        assert waits == pytest.approx([38.5 + n * 10 for n in range(9 - SHORTEST_LINE)], rel=0.05)
        more = limits.admit("relay", lot(account, "gmail.com")).later
        assert more[0][1] == pytest.approx(38.5 + 50, rel=0.05), "behind those"
        assert found.give_back == []
        assert limits.held_accounts() == set()


def test_where_nobody_came_for_a_while_there_is_no_backlog(account: Account) -> None:
    with configured(gmail_com=0.1):
        limits = known()
        limits.admit("relay", lot(account, *["gmail.com"] * 20))
        assert limit("domain:google").spread_until is not None
        RateLimit.objects.update(updated=Now() - timedelta(seconds=60))
        limits.admit("relay", lot(account, "gmail.com"))
        assert limit("domain:google").spread_until is None


def test_several_limits_hold_those_accounts_that_they_are_of() -> None:
    with configured(rate=0.05):
        one = AccountFactory.create(transport="relay")
        two = AccountFactory.create(transport="relay")
        AccountFactory.create(transport="default")
        limits = known()
        found = limits.admit("relay", lot(one, *["example.org"] * 10))
        limits.lines.add(found.waiting)
        assert limits.held_accounts() == {one.pk, two.pk}


# --- rows put off ----------------------------------------------------------------------------


def test_a_row_put_off_is_in_retry_and_spent_no_attempt() -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    lost = held(sends[2], token=uuid4())
    moved = known().defer([(held(sends[1]), 60.0), (held(sends[0]), 30.0), (lost, 5.0)])
    assert moved == 2
    first, second, third = Send.objects.order_by("pk")
    assert (first.status, first.reason, first.attempts) == ("retry", "rate_limited", 0)
    assert (first.claim_token, first.lease_until, first.worker) == (None, None, None)
    assert first.next_attempt_at is not None
    assert second.next_attempt_at is not None
    gap = (second.next_attempt_at - first.next_attempt_at).total_seconds()
    assert gap == pytest.approx(30.0, abs=1.0)
    assert third.status == "claimed", "somebody else's by now"


def test_a_row_put_off_in_a_canceled_campaign_is_closed() -> None:
    campaign = campaign_to(0)
    plain = row(campaign, "claimed")
    earlier = uuid4()
    doubted = row(campaign, "claimed", doubt_tokens=[earlier], handed_at=Now(), attempts=1)
    Campaign.objects.filter(pk=campaign.pk).update(status="canceled")
    rows = [held(Send.objects.get(pk=send.pk)) for send in (plain, doubted)]
    known().defer([(r, 30.0) for r in rows])
    plain.refresh_from_db()
    doubted.refresh_from_db()
    assert (plain.status, plain.reason) == ("canceled", "canceled")
    assert (doubted.status, doubted.claim_token, doubted.doubt_tokens) == ("in_doubt", earlier, [])
    assert kinds_of(plain) == ["canceled"]
