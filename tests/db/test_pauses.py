"""Transports that take no mail: paused for all, probed by one, lifted when it works."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from sending.answers import Answer, Stage
from sending.logs import LineFormatter
from sending.models import TransportPause
from sending.pauses import Pauses, lift, pause
from subscribers.models import Account

from .paused import LOST, REFUSED, SENDER, account_on, known_now, make_due, wait_and_failures
from .racing import Race


@pytest.mark.django_db
def test_an_outage_is_one_warning_however_many_lanes_run_into_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    account = account_on("relay")
    with caplog.at_level(logging.DEBUG, logger="sendonce.sender"):
        for _ in range(3):
            pause("relay", None, REFUSED)
            pause("relay", account.pk, SENDER)
            make_due()
            Pauses().refresh()  # takes the probe
        lift("relay", None)
        pause("relay", None, REFUSED)
    levels = [r.levelname for r in caplog.records if r.getMessage() == "transport paused"]
    assert levels == ["WARNING"] * 2 + ["DEBUG"] * 4 + ["WARNING"]


@pytest.mark.django_db
def test_where_it_is_is_told_by_the_log_alone(
    caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    options = {"host": "127.0.0.1", "port": 2525}
    transports = {"relay": {"BACKEND": "sending.smtp.EmailBackend", "OPTIONS": options}}
    settings.SENDONCE = {**settings.SENDONCE, "TRANSPORTS": transports}
    pause("relay", None, Answer(Stage.CONNECT, None, text="no connection: Connection refused"))
    assert TransportPause.objects.get().reason == "no connection: Connection refused"
    (line,) = [LineFormatter().format(record) for record in caplog.records]
    assert "where=127.0.0.1:2525" in line


@pytest.mark.django_db
def test_a_transport_is_paused_for_every_account_that_uses_it_and_says_why() -> None:
    on_it, elsewhere = account_on("relay"), account_on("default")
    pause("relay", None, REFUSED)
    known = known_now()
    assert known.blocks(on_it.transport, on_it.pk)
    assert not known.blocks(elsewhere.transport, elsewhere.pk)
    assert known.blocked_accounts() == [on_it.pk]
    assert known.reasons == ["relay: connection refused"]
    row = TransportPause.objects.get()
    assert (row.stage, row.code, row.failures, row.account) == ("connect", None, 1, None)


@pytest.mark.django_db
def test_a_refused_sender_pauses_its_account_alone() -> None:
    refused, other = account_on("relay"), account_on("relay")
    pause("relay", refused.pk, SENDER)
    known = known_now()
    assert known.blocked_accounts() == [refused.pk]
    assert not known.blocks(other.transport, other.pk)
    assert known.aliases == set()
    assert TransportPause.objects.get().reason == "550 5.7.1 sender not allowed"


@pytest.mark.django_db
def test_an_account_that_changes_its_transport_is_free() -> None:
    account = account_on("relay")
    pause("relay", account.pk, SENDER)
    Account.objects.filter(pk=account.pk).update(transport="other")
    account.refresh_from_db()
    assert not known_now().blocks(account.transport, account.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_the_wait_grows_with_every_probe(for_account: bool) -> None:
    account = account_on("relay").pk if for_account else None
    pause("relay", account, REFUSED)
    seen = [wait_and_failures()]
    for _ in range(8):
        make_due()
        known_now()  # takes the probe, which fails
        pause("relay", account, REFUSED)
        seen.append(wait_and_failures())
    assert [failures for _, failures in seen] == list(range(1, 10))
    expected = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    # The clock has moved on a little between the two statements.
    assert all(w <= e < w + 0.9 for (w, _), e in zip(seen, expected, strict=True)), seen


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_an_outage_that_many_lanes_run_into_is_one_failure(for_account: bool) -> None:
    account = account_on("relay").pk if for_account else None
    for _ in range(8):
        pause("relay", account, REFUSED)
    wait, failures = wait_and_failures()
    assert failures == 1
    assert wait <= 1, "the first probe comes after a second, not after a minute"


@pytest.mark.django_db
def test_lanes_that_fail_late_do_not_put_the_probe_off() -> None:
    pause("relay", None, REFUSED)
    make_due()
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
    account = account_on("relay")
    pause("relay", None, REFUSED)
    TransportPause.objects.update(probe_at=Now() + timedelta(seconds=60))
    assert known_now().blocks(account.transport, account.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_one_worker_probes_and_the_others_wait(for_account: bool) -> None:
    account = account_on("relay")
    pause("relay", account.pk if for_account else None, REFUSED)
    make_due()
    first, second = known_now(), known_now()
    assert not first.blocks(account.transport, account.pk)
    assert second.blocks(account.transport, account.pk)
    # Probing is a look of its own, not a lifting: the next one waits again, longer.
    first.refresh()
    assert first.blocks(account.transport, account.pk)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_look_at_once_do_not_both_probe() -> None:
    account = account_on("relay")
    pause("relay", None, REFUSED)
    make_due()
    with Race() as race:
        with transaction.atomic():
            mine = known_now()
            # Skips the locked pause instead of waiting for it.
            theirs = race.start(known_now).result()
        assert not mine.blocks(account.transport, account.pk)
        assert theirs.blocks(account.transport, account.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_it_is_lifted_for_all_when_it_works(for_account: bool) -> None:
    account = account_on("relay")
    owner = account.pk if for_account else None
    pause("relay", owner, REFUSED)
    known = known_now()
    assert known.knows("relay", owner)
    known.worked("relay", owner)
    assert not known.knows("relay", owner)
    assert not known.blocks(account.transport, account.pk)
    assert not known_now().blocks(account.transport, account.pk)
    assert not TransportPause.objects.exists()
    assert lift("relay", owner) is False


@pytest.mark.django_db
def test_lifting_one_pause_leaves_the_other() -> None:
    account = account_on("relay")
    pause("relay", None, REFUSED)
    pause("relay", account.pk, SENDER)
    assert lift("relay", None) is True
    assert known_now().blocks(account.transport, account.pk)
    pause("relay", None, REFUSED)
    assert lift("relay", account.pk) is True
    assert known_now().aliases == {"relay"}


@pytest.mark.django_db
@pytest.mark.parametrize("for_account", [False, True])
def test_the_process_that_pauses_does_not_wait_for_its_next_look(for_account: bool) -> None:
    account, other = account_on("relay"), account_on("relay")
    known = known_now()
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
