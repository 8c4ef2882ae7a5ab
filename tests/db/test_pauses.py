"""Transports that take no mail: paused for all, probed by one, lifted when it works."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test import override_settings

from sending import clock
from sending.answers import Answer, Stage
from sending.models import TransportPause
from sending.pauses import LastSuccess, Pauses, lift, pause
from sending.queue import Claimed
from sending.sql.pauses import ERRORS, PAUSED
from subscribers.models import Account
from tests.factories import AccountFactory, SendFactory

from .racing import Race
from .rows import held

REFUSED = Answer(Stage.CONNECT, None, "", "connection refused")
LOST = Answer(Stage.DOT, None, "", "connection lost")
SENDER = Answer(Stage.MAIL, 550, "5.7.1", "sender not allowed")


def _known() -> Pauses:
    """A process that has just looked."""
    found = Pauses()
    found.refresh()
    return found


def _make_due() -> None:
    TransportPause.objects.update(probe_at=Now() - timedelta(seconds=1))


def _account(transport: str) -> Account:
    account: Account = AccountFactory.create(transport=transport)
    return account


@pytest.mark.django_db
def test_an_outage_is_one_warning_however_many_lanes_run_into_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    account = _account("relay")
    with caplog.at_level(logging.DEBUG, logger="sendonce.sender"):
        for _ in range(3):
            pause("relay", None, REFUSED)
            pause("relay", account.pk, SENDER)
            _make_due()
            Pauses().refresh()  # takes the probe
        lift("relay", None)
        pause("relay", None, REFUSED)
    levels = [r.levelname for r in caplog.records if r.getMessage() == "transport paused"]
    assert levels == ["WARNING"] * 2 + ["DEBUG"] * 4 + ["WARNING"]


@pytest.mark.django_db
def test_a_transport_is_paused_for_every_account_that_uses_it_and_says_why() -> None:
    on_it, elsewhere = _account("relay"), _account("default")
    pause("relay", None, REFUSED)
    known = _known()
    assert known.blocks(on_it.transport, on_it.pk)
    assert not known.blocks(elsewhere.transport, elsewhere.pk)
    assert known.blocked_accounts() == [on_it.pk]
    assert known.reasons == ["relay: connection refused"]
    row = TransportPause.objects.get()
    assert (row.stage, row.code, row.failures, row.account) == ("connect", None, 1, None)


@pytest.mark.django_db
def test_a_refused_sender_pauses_its_account_alone() -> None:
    refused, other = _account("relay"), _account("relay")
    pause("relay", refused.pk, SENDER)
    known = _known()
    assert known.blocked_accounts() == [refused.pk]
    assert not known.blocks(other.transport, other.pk)
    assert known.aliases == set()
    assert TransportPause.objects.get().reason == "550 5.7.1 sender not allowed"


@pytest.mark.django_db
def test_an_account_that_changes_its_transport_is_free() -> None:
    account = _account("relay")
    pause("relay", account.pk, SENDER)
    Account.objects.filter(pk=account.pk).update(transport="other")
    account.refresh_from_db()
    assert not _known().blocks(account.transport, account.pk)


def _wait_and_failures() -> tuple[float, int]:
    row = TransportPause.objects.annotate(db_now=Now()).get()
    return (row.probe_at - row.db_now).total_seconds(), row.failures


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_the_wait_grows_with_every_probe(for_account: bool) -> None:
    account = _account("relay").pk if for_account else None
    pause("relay", account, REFUSED)
    seen = [_wait_and_failures()]
    for _ in range(8):
        _make_due()
        _known()  # takes the probe, which fails
        pause("relay", account, REFUSED)
        seen.append(_wait_and_failures())
    assert [failures for _, failures in seen] == list(range(1, 10))
    expected = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    # The clock has moved on a little between the two statements.
    assert all(w <= e < w + 0.9 for (w, _), e in zip(seen, expected, strict=True)), seen


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_an_outage_that_many_lanes_run_into_is_one_failure(for_account: bool) -> None:
    account = _account("relay").pk if for_account else None
    for _ in range(8):
        pause("relay", account, REFUSED)
    wait, failures = _wait_and_failures()
    assert failures == 1
    assert wait <= 1, "the first probe comes after a second, not after a minute"


@pytest.mark.django_db
def test_lanes_that_fail_late_do_not_put_the_probe_off() -> None:
    pause("relay", None, REFUSED)
    _make_due()
    due = TransportPause.objects.get().probe_at
    pause("relay", None, REFUSED)
    assert TransportPause.objects.get().probe_at == due


@pytest.mark.django_db
def test_a_repeat_keeps_since_and_takes_the_newest_reason() -> None:
    pause("relay", None, REFUSED)
    since = TransportPause.objects.get().since
    pause("relay", None, Answer(Stage.AUTH, 535, "5.7.8", "bad password"))
    row = TransportPause.objects.get()
    assert (row.since, row.stage, row.code) == (since, "auth", 535)
    assert row.reason == "535 5.7.8 bad password"


@pytest.mark.django_db
def test_nobody_probes_before_it_is_time() -> None:
    account = _account("relay")
    pause("relay", None, REFUSED)
    TransportPause.objects.update(probe_at=Now() + timedelta(seconds=60))
    assert _known().blocks(account.transport, account.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_one_worker_probes_and_the_others_wait(for_account: bool) -> None:
    account = _account("relay")
    pause("relay", account.pk if for_account else None, REFUSED)
    _make_due()
    first, second = _known(), _known()
    assert not first.blocks(account.transport, account.pk)
    assert second.blocks(account.transport, account.pk)
    # Probing is a look of its own, not a lifting: the next one waits again, longer.
    first.refresh()
    assert first.blocks(account.transport, account.pk)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_look_at_once_do_not_both_probe() -> None:
    account = _account("relay")
    pause("relay", None, REFUSED)
    _make_due()
    with Race() as race:
        with transaction.atomic():
            mine = _known()
            # Skips the locked pause instead of waiting for it.
            theirs = race.start(_known).result()
        assert not mine.blocks(account.transport, account.pk)
        assert theirs.blocks(account.transport, account.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_it_is_lifted_for_all_when_it_works(for_account: bool) -> None:
    account = _account("relay")
    owner = account.pk if for_account else None
    pause("relay", owner, REFUSED)
    known = _known()
    assert known.knows("relay", owner)
    known.worked("relay", owner)
    assert not known.knows("relay", owner)
    assert not known.blocks(account.transport, account.pk)
    assert not _known().blocks(account.transport, account.pk)
    assert not TransportPause.objects.exists()
    assert lift("relay", owner) is False


@pytest.mark.django_db
def test_lifting_one_pause_leaves_the_other() -> None:
    account = _account("relay")
    pause("relay", None, REFUSED)
    pause("relay", account.pk, SENDER)
    assert lift("relay", None) is True
    assert _known().blocks(account.transport, account.pk)
    pause("relay", None, REFUSED)
    assert lift("relay", account.pk) is True
    assert _known().aliases == {"relay"}


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_the_process_that_pauses_does_not_wait_for_its_next_look(for_account: bool) -> None:
    account, other = _account("relay"), _account("relay")
    known = _known()
    whose = account.pk if for_account else None
    known.note("relay", whose)
    assert known.blocks(account.transport, account.pk)
    assert known.blocks(other.transport, other.pk) is not for_account
    known.write("relay", whose, LOST)
    lift("relay", whose)
    known.refresh()
    assert not known.blocks(account.transport, account.pk), "the database says that it works"


@pytest.mark.django_db
def test_a_long_reason_is_cut_and_an_empty_one_named() -> None:
    pause("relay", None, Answer(Stage.CONNECT, None, "", "x" * 900))
    assert len(TransportPause.objects.get().reason) == 500
    pause("relay", None, Answer(Stage.CONNECT, None))
    assert TransportPause.objects.get().reason == "no answer"


# --- what shows that it works --------------------------------------------------------------


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
    account = _account("relay")
    rows = _claimed(account, account, account)
    _failed_in_a_row()
    assert _known().let_through("relay", rows) == ([], rows)
    _make_due()
    known = _known()
    assert not known.blocks("relay", account.pk)
    assert known.probe("relay", rows) == (rows[:1], rows[1:])
    assert known.probe("relay", rows) == ([], rows), "the next lane waits"
    assert known.blocks("relay", account.pk)
    known.worked("relay", None)
    assert known.let_through("relay", rows) == (rows, [])


@pytest.mark.django_db
def test_where_a_session_shows_it_a_whole_lot_may_try() -> None:
    account = _account("default")
    rows = _claimed(account, account)
    pause("default", None, REFUSED)
    _make_due()
    assert _known().let_through("default", rows) == (rows, [])


@pytest.mark.django_db
def test_a_probe_that_nobody_had_a_message_for_is_anybodys_again() -> None:
    (row,) = _claimed(_account("relay"))
    _failed_in_a_row()
    _make_due()
    here = _known()
    assert TransportPause.objects.get().failures == 2
    assert here.refresh() is False, "for a moment it is the others'"
    assert TransportPause.objects.get().failures == 1
    there = _known()
    assert there.probe("relay", [row]) == ([row], [])
    there.refresh()
    assert there.refresh() is False
    assert TransportPause.objects.get().failures == 2, "this one was made"


@pytest.mark.django_db
def test_only_a_blocked_accounts_rows_wait() -> None:
    refused, other = _account("relay"), _account("relay")
    rows = _claimed(refused, other)
    pause("relay", refused.pk, SENDER)
    assert _known().let_through("relay", rows) == (rows[1:], rows[:1])


@pytest.mark.django_db
def test_a_refresh_says_whether_a_probe_is_ours() -> None:
    _failed_in_a_row()
    known = Pauses()
    assert known.refresh() is False
    _make_due()
    assert known.refresh() is True
    assert known.refresh() is False


@pytest.mark.django_db
def test_errors_in_a_row_say_so_and_stay_that_whatever_a_probe_meets() -> None:
    _failed_in_a_row()
    row = TransportPause.objects.get()
    assert (row.stage, row.reason) == (ERRORS, "10 errors in a row: dot: connection lost")
    known = _known()
    assert known.reasons == ["relay: 10 errors in a row: dot: connection lost"]
    # The probe finds the relay closed for a moment: that it opens again shows nothing of messages.
    pause("relay", None, REFUSED)
    known.note("relay", None, "connect")
    assert known.probing("relay")
    row.refresh_from_db()
    assert (row.stage, row.reason) == (ERRORS, "connection refused")
    assert _known().probing("relay")


@pytest.mark.django_db
def test_errors_in_a_row_outrank_a_pause_that_a_session_would_lift() -> None:
    pause("relay", None, REFUSED)
    _failed_in_a_row()
    assert TransportPause.objects.get().stage == ERRORS


@pytest.mark.django_db
def test_after_errors_the_probes_grow_rare() -> None:
    rows = _claimed(_account("relay"))
    _failed_in_a_row()
    seen = [_wait_and_failures()[0]]
    for _ in range(12):
        _make_due()
        assert _known().probe("relay", rows) == (rows, [])  # in vain
        seen.append(_wait_and_failures()[0])
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
    known, account = _known(), _account("relay")
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
    known, account = _known(), _account("relay")

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
    account = _account("relay")
    pause("relay", None, LOST, stage=ERRORS)
    pause("relay", account.pk, SENDER)
    known = _known()

    def works() -> None:
        known.worked("relay", None)
        known.worked("relay", account.pk)

    _while_it_reads(known, works)
    assert not known.blocks("relay", account.pk)
    assert not known.knows("relay", None)
    pause("relay", None, LOST, stage=ERRORS)
    known.refresh()
    assert known.blocks("relay", account.pk), "a later one is seen"
