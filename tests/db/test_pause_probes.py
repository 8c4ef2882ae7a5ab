"""What shows that a paused transport works: a session, a message, and a look at the pauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from sending import clock
from sending.models import TransportPause
from sending.pauses import LastSuccess, Pauses, lift, pause
from sending.queue import Claimed
from sending.sql.pauses import ERRORS, PAUSED
from subscribers.models import Account
from tests.factories import SendFactory

from .paused import LOST, REFUSED, SENDER, account_on, known_now, make_due, wait_and_failures
from .rows import held


@pytest.mark.parametrize(
    ("stage", "alias", "at_open"),
    [
        ("connect", "default", True),
        ("greeting", "default", True),
        ("auth", "default", True),
        # Over a backend that is not ours, opening may have connected to nothing.
        ("connect", "locmem", False),
        ("auth", "locmem", False),
        ("connect", "no such alias", False),
        ("mail", "default", False),
        ("rcpt", "default", False),
        ("http", "locmem", False),
        (ERRORS, "default", False),
        ("", "default", False),
    ],
)
def test_whether_a_session_that_opens_lifts_the_pause(
    stage: str, alias: str, at_open: bool
) -> None:
    transports = {
        "default": {"BACKEND": "sending.smtp.EmailBackend"},
        "locmem": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"},
    }
    known = Pauses()
    with override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": transports}):
        assert not known.lifts_at_open(alias)
        assert not known.probing(alias)
        known.note(alias, None, stage)
        assert known.lifts_at_open(alias) is at_open
        assert known.probing(alias) is not at_open


def _claimed(*accounts: Account) -> list[Claimed]:
    return [
        held(SendFactory.create(transactional=True, claimed=True, account=account))
        for account in accounts
    ]


def _failed_in_a_row(words: str = "10 errors in a row: dot: connection lost") -> None:
    pause("relay", None, LOST, stage=ERRORS, words=words)


@pytest.mark.django_db
def test_what_is_probed_by_a_message_lets_one_through_for_one_lane() -> None:
    account = account_on("relay")
    rows = _claimed(account, account, account)
    _failed_in_a_row()
    assert known_now().let_through("relay", rows) == ([], rows)
    make_due()
    known = known_now()
    assert not known.blocks("relay", account.pk)
    assert known.probe("relay", rows) == (rows[:1], rows[1:])
    assert known.probe("relay", rows) == ([], rows), "the next lane waits"
    assert known.blocks("relay", account.pk)
    known.worked("relay", None)
    assert known.let_through("relay", rows) == (rows, [])


@pytest.mark.django_db
def test_where_a_session_shows_it_a_whole_lot_may_try() -> None:
    account = account_on("default")
    rows = _claimed(account, account)
    pause("default", None, REFUSED)
    make_due()
    assert known_now().let_through("default", rows) == (rows, [])


@pytest.mark.django_db
def test_a_probe_that_nobody_had_a_message_for_is_anybodys_again() -> None:
    (row,) = _claimed(account_on("relay"))
    _failed_in_a_row()
    make_due()
    here = known_now()
    assert TransportPause.objects.get().failures == 2
    assert here.refresh() is False, "for a moment it is the others'"
    assert TransportPause.objects.get().failures == 1
    there = known_now()
    assert there.probe("relay", [row]) == ([row], [])
    there.refresh()
    assert there.refresh() is False
    assert TransportPause.objects.get().failures == 2, "this one was made"


@pytest.mark.django_db
def test_only_a_blocked_accounts_rows_wait() -> None:
    refused, other = account_on("relay"), account_on("relay")
    rows = _claimed(refused, other)
    pause("relay", refused.pk, SENDER)
    assert known_now().let_through("relay", rows) == (rows[1:], rows[:1])


@pytest.mark.django_db
def test_a_refresh_says_whether_a_probe_is_ours() -> None:
    _failed_in_a_row()
    known = Pauses()
    assert known.refresh() is False
    make_due()
    assert known.refresh() is True
    assert known.refresh() is False


@pytest.mark.django_db
def test_errors_in_a_row_say_so_and_stay_that_whatever_a_probe_meets() -> None:
    _failed_in_a_row()
    row = TransportPause.objects.get()
    assert (row.stage, row.reason) == (ERRORS, "10 errors in a row: dot: connection lost")
    known = known_now()
    assert known.reasons == ["relay: 10 errors in a row: dot: connection lost"]
    # The probe finds the relay closed for a moment: that it opens again shows nothing of messages.
    pause("relay", None, REFUSED)
    known.note("relay", None, "connect")
    assert known.probing("relay")
    row.refresh_from_db()
    assert (row.stage, row.reason) == (ERRORS, "connection refused")
    assert known_now().probing("relay")


@pytest.mark.django_db
def test_errors_in_a_row_outrank_a_pause_that_a_session_would_lift() -> None:
    pause("relay", None, REFUSED)
    _failed_in_a_row()
    assert TransportPause.objects.get().stage == ERRORS


@pytest.mark.django_db
def test_after_errors_the_probes_grow_rare() -> None:
    rows = _claimed(account_on("relay"))
    _failed_in_a_row()
    seen = [wait_and_failures()[0]]
    for _ in range(12):
        make_due()
        assert known_now().probe("relay", rows) == (rows, [])  # in vain
        seen.append(wait_and_failures()[0])
    expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]
    assert all(w <= e < w + 0.9 for w, e in zip(seen, expected, strict=True)), seen


def test_a_recent_success_is_recent_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 100.0
    monkeypatch.setattr(clock, "now", lambda: at)
    last = LastSuccess()
    assert not last.recent("relay")
    last.note("relay")
    at = 104.9
    assert last.recent("relay")
    assert not last.recent("other")
    at = 105.1
    assert not last.recent("relay")


@pytest.mark.django_db
def test_what_is_about_to_be_paused_stays_so_through_a_read_that_cannot_show_it_yet() -> None:
    known, account = known_now(), account_on("relay")
    known.note("relay", None, ERRORS)
    known.refresh()
    assert known.blocks("relay", account.pk)
    assert known.probing("relay"), "whoever gets through now must lift it"
    known.write("relay", None, LOST, stage=ERRORS)
    known.refresh()
    assert known.blocks("relay", account.pk)
    lift("relay", None)
    known.refresh()
    assert not known.blocks("relay", account.pk)


def _while_it_reads(known: Pauses, happens: Callable[[], None]) -> None:
    """``happens`` after ``refresh`` has read the pauses and before it takes note of them."""

    def execute(run: Any, statement: Any, *rest: Any) -> Any:
        found = run(statement, *rest)
        if statement == PAUSED:
            happens()
        return found

    with connection.execute_wrapper(execute):
        known.refresh()


@pytest.mark.django_db
def test_a_pause_made_while_the_pauses_are_read_is_known() -> None:
    known, account = known_now(), account_on("relay")

    def breaks() -> None:
        known.note("relay", None, ERRORS)
        known.write("relay", None, LOST, stage=ERRORS)

    _while_it_reads(known, breaks)
    assert known.blocks("relay", account.pk)
    assert known.knows("relay", None)
    lift("relay", None)
    known.refresh()
    assert not known.blocks("relay", account.pk), "the next read shows it lifted"


@pytest.mark.django_db
def test_a_pause_lifted_while_the_pauses_are_read_does_not_come_back() -> None:
    account = account_on("relay")
    pause("relay", None, LOST, stage=ERRORS)
    pause("relay", account.pk, SENDER)
    known = known_now()

    def works() -> None:
        known.worked("relay", None)
        known.worked("relay", account.pk)

    _while_it_reads(known, works)
    assert not known.blocks("relay", account.pk)
    assert not known.knows("relay", None)
    pause("relay", None, LOST, stage=ERRORS)
    known.refresh()
    assert known.blocks("relay", account.pk), "a later one is seen"
