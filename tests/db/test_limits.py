"""Permits, slow-downs and shares of sessions, by a process at a time against the real database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from campaigns.models import Campaign
from sending import clock
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.limits import slow_rates
from sending.limits.admission import SHORTEST_LINE, Limits
from sending.models import RateLimit, Send, Worker
from sending.queue import Claimed
from sending.ready import Ready
from subscribers.models import Account
from tests.factories import AccountFactory, WorkerFactory

from .rows import campaign_to, held, kinds_of, row

pytestmark = pytest.mark.django_db

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
        Claimed(
            id=number,
            token=uuid4(),
            account_id=account.pk,
            campaign_id=None if transactional else 1,
            subscriber_id=number,
            email=f"p{number}@{domain}",
            email_lower=f"p{number}@{domain}",
            job_id=f"job-{number}",
            content_id=1,
            context=None,
            attributes=None,
            alias="relay",
            trusted_until=0.0,
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


# --- where there is no limit -----------------------------------------------------------------


def test_without_limits_the_database_is_not_asked(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    limits, rows = known(), lot(account, "gmail.com", "example.org")
    with django_assert_num_queries(0):
        assert not limits.concerns("relay", rows)
        assert limits.admit("relay", rows).go == rows
        assert limits.held_accounts() == set()
        assert limits.sessions("relay") is None
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


# --- what the configuration says -------------------------------------------------------------


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


# --- slowing down ----------------------------------------------------------------------------


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


# --- sessions --------------------------------------------------------------------------------


def _worker(**fields: Any) -> Worker:
    fields = {"started": Now() - timedelta(minutes=5), "seen": Now(), **fields}
    made: Worker = WorkerFactory.create(**fields)
    return made


def test_sessions_are_shared_by_the_workers_alive() -> None:
    with configured(connections=5):
        first, second = _worker(), _worker()
        _worker(seen=Now() - timedelta(minutes=1))
        _worker(ended=Now())
        limits = Limits()
        assert limits.sessions("relay") == 0, "it does not know the others yet"
        limits.refresh(first.pk)
        assert (limits.sessions("relay"), limits.sessions("other")) == (3, None)
        limits.refresh(second.pk)
        assert limits.sessions("relay") == 2


def test_a_worker_opens_what_the_others_have_let_go_of() -> None:
    with configured(connections=4):
        old, young = _worker(), _worker(started=Now())
        mine, its = Limits(), Limits()
        mine.shares.held = lambda: {"relay": 4, "other": 0}
        mine.refresh(old.pk)
        old.refresh_from_db()
        assert old.sessions == {"relay": 4}
        assert mine.shares.keeps("relay") == 2
        its.refresh(young.pk)
        assert its.sessions("relay") == 0
        Worker.objects.filter(pk=young.pk).update(started=Now() - timedelta(seconds=4))
        its.refresh(young.pk)
        assert its.sessions("relay") == 0, "none was let go"
        mine.shares.held = lambda: {"relay": 2}
        mine.refresh(old.pk)
        its.refresh(young.pk)
        assert its.sessions("relay") == 2


def test_who_has_not_looked_for_long_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with configured(connections=4):
        limits = Limits()
        limits.refresh(_worker().pk)
        assert limits.sessions("relay") == 4
        later = clock.now() + 60
        monkeypatch.setattr(clock, "now", lambda: later)
        assert (limits.sessions("relay"), limits.shares.keeps("relay")) == (0, 4)
