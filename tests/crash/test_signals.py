"""SIGTERM and SIGINT: finish what is on the wire, give back the rest, exit 0."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sending.ledger import balance
from sending.models import Send, Worker
from sending.stopping import EXIT_ABANDONED, TOGETHER
from tests.conftest import ROOT
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_leaves_nothing_in_doubt_and_nothing_in_hand(
    number: int, sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(200))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    process = senders.start_anew("--lanes", "4", **mail)
    relay.wait_for(30)
    process.send_signal(number)
    assert process.wait(60) == 0, senders.log.read_text()
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=200)
    assert 30 <= counts["sent"] < 200
    assert counts["sent"] == len(relay.accepted())
    assert counts["claimed"] == counts["sending"] == 0
    assert set(
        Send.objects.filter(campaign=campaign, status="queued").values_list("attempts", flat=True)
    ) == {0}, "the attempt of what was given back is refunded"
    assert Worker.objects.get().ended is not None
    senders.drain("--lanes", "4", **mail)
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=200)["sent"] == 200


def test_the_message_on_the_wire_is_in_doubt_when_the_grace_is_over(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    campaign = make_campaign(addresses(2, prefix="silent"))
    process = senders.start(
        "--lanes", "1", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}", SENDONCE_GRACE="1"
    )
    relay.wait_for(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0, senders.log.read_text()
    counts = check(campaign, relay.accepted(), doubt_at_most=1, people=2)
    assert counts["in_doubt"] == 1
    assert counts["queued"] == 1


def test_a_second_signal_exits_at_once(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink()
    campaign = make_campaign(addresses(1, prefix="silent"))
    process = senders.start_anew("--lanes", "1", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    relay.wait_for(1)
    process.send_signal(signal.SIGTERM)
    # Two pending signals of a kind are one: the first must have been seen.
    wait_until(lambda: "sender_stopping" in senders.log.read_text(), "the stop to begin")
    time.sleep(TOGETHER)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    assert balance(campaign.pk).counts["sending"] == 1
    assert "ERROR ended_at_once signal=15" in senders.log.read_text()


@pytest.mark.parametrize("gap", [0.55, 0.75, 0.95])
def test_who_asks_again_while_it_ends_makes_no_failure_of_it(gap: float, senders: Senders) -> None:
    """The interpreter gives signals back to the system before it is gone."""
    make_campaign(addresses(1))
    process = senders.start_anew("--lanes", "2", EMAIL_URL="smtp://127.0.0.1:1")
    wait_until(lambda: "sender_started" in senders.log.read_text(), "the start")
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    time.sleep(gap)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0, senders.log.read_text()


def _hears(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_log_that_nobody_reads_keeps_no_sender_from_ending(
    processes: str, senders: Senders, environ: dict[str, str]
) -> None:
    make_campaign(addresses(1))
    code = (
        "import sys, django; django.setup(); "
        "from sending import worker; from sending.management.commands import run_sender; "
        "worker.LAST_WRITES = run_sender.LAST_WRITES = run_sender.LAST_BATCH = 0.5; "
        "run_sender.SLACK = 0.5; from django.core.management import execute_from_command_line; "
        "execute_from_command_line(['manage.py', *sys.argv[1:]])"
    )
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * 4096)
    with open(reading, "rb"), open(writing, "wb", buffering=0) as log:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "run_sender", "--processes", processes, "--no-progress"],
            cwd=ROOT,
            env={
                **environ,
                "DJANGO_SETTINGS_MODULE": "config.settings",
                "EMAIL_URL": "smtp://127.0.0.1:1",
                "SENDONCE_GRACE": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: _hears(process.pid, signal.SIGTERM), "its handlers")
            time.sleep(1)
            process.terminate()
            assert process.wait(60) == EXIT_ABANDONED
        finally:
            process.kill()
            process.wait()


def test_what_signals_a_process_and_its_group_has_asked_once(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    campaign = make_campaign(addresses(2, prefix="silent"))
    process = senders.start_anew(
        "--lanes", "1", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}", SENDONCE_GRACE="2"
    )
    relay.wait_for(1)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    assert process.wait(30) == 0, senders.log.read_text()
    counts = check(campaign, relay.accepted(), doubt_at_most=1, people=2)
    assert counts["in_doubt"] == counts["queued"] == 1
