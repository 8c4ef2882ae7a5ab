"""``run_sender --processes``: several senders under one parent; the sink's record is the oracle."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from sending.installation import installation
from sending.ledger import balance
from sending.models import Installation, Worker
from sending.stopping import TOGETHER
from tests.conftest import ROOT
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.crash.test_kills import _seed
from tests.forks import Forked

PROCESSES, LANES, LOT = 2, 3, 5
OPTIONS = ("--processes", str(PROCESSES), "--lanes", str(LANES), "--lot", str(LOT))


def said(senders: Senders) -> str:
    """What they have logged so far."""
    return senders.log.read_text() if senders.log.exists() else ""


def started(senders: Senders) -> dict[int, int]:
    """``{number: pid}`` of the latest start of each process."""
    found = re.findall(r" process_started number=(\d+) pid=(\d+) ", said(senders))
    return {int(number): int(pid) for number, pid in found}


def is_gone(pid: int) -> bool:
    """Ended; whoever inherited it may not have waited for it yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(FileNotFoundError):
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return False


def await_both(senders: Senders) -> dict[int, int]:
    """Both are at work; ``{number: pid}``."""
    wait_until(lambda: said(senders).count(" sender_started ") >= PROCESSES, "both to send")
    return started(senders)


def test_two_processes_drain_everything_once(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink("--delay", "0.01")
    campaign = make_campaign(addresses(300))
    parent = senders.start("--drain", *OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    sessions, threads = [], []
    while parent.poll() is None:
        sessions.append(_sessions())
        with contextlib.suppress(FileNotFoundError):
            threads.append(len(os.listdir(f"/proc/{parent.pid}/task")))
        time.sleep(0.01)
    told = said(senders)
    assert parent.wait(60) == 0, told
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=300)["sent"] == 300
    workers = list(Worker.objects.all())
    assert {w.pid for w in workers} == set(started(senders).values())
    assert [(w.lanes, w.ended is not None) for w in workers] == [(LANES, True)] * PROCESSES
    shares = [int(n) for n in re.findall(r" sender_stopped worker=\d+ rows_sent=(\d+) ", told)]
    assert len(shares) == PROCESSES
    assert min(shares) > 0, "both have sent"
    assert " processes_ended rows_sent=300 " in told
    assert 4 < max(sessions) <= 4 * PROCESSES
    assert set(threads) <= {1}, "a process that forks has one thread"


def test_killed_processes_are_started_again(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink("--delay", "0.02")
    people, kills = 500, 4
    campaign = make_campaign(addresses(people))
    parent = senders.start("--drain", *OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    dice = random.Random(_seed())
    for _ in range(kills):
        relay.wait_for(min(len(relay.accepted()) + 30, people - 1))
        time.sleep(dice.random() * 0.2)
        victim = dice.choice([p for p in started(senders).values() if not is_gone(p)])
        os.kill(victim, signal.SIGKILL)
    assert parent.wait(120) == 0, said(senders)
    told = said(senders)
    assert told.count(" process_lost number=") == kills
    assert 'why="signal 9"' in told
    counts = check(campaign, relay.accepted(), doubt_at_most=kills * LANES * LOT, people=people)
    assert counts["sent"] + counts["in_doubt"] == people
    assert all(is_gone(pid) for pid in started(senders).values())


def test_a_killed_parent_takes_its_processes_along(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(300))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    parent = senders.start(*OPTIONS, **mail)
    pids = await_both(senders)
    relay.wait_for(30)
    parent.kill()
    wait_until(lambda: all(map(is_gone, pids.values())), "the processes to end", 30)
    assert all(worker.ended for worker in Worker.objects.all()), said(senders)
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=300)
    assert counts["claimed"] == counts["sending"] == 0
    assert 30 <= counts["sent"] == len(relay.accepted()) < 300
    senders.drain(*OPTIONS, **mail)
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=300)["sent"] == 300


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_leaves_nothing_in_doubt_and_nothing_in_hand(
    number: int, sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(300))
    parent = senders.start(*OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    pids = await_both(senders)
    relay.wait_for(30)
    parent.send_signal(number)
    assert parent.wait(60) == 0, said(senders)
    assert all(map(is_gone, pids.values()))
    assert all(worker.ended for worker in Worker.objects.all())
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=300)
    assert 30 <= counts["sent"] == len(relay.accepted()) < 300
    assert counts["claimed"] == counts["sending"] == 0


def test_a_second_signal_ends_all_at_once(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink()
    campaign = make_campaign(addresses(120, prefix="silent"))
    parent = senders.start(*OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    pids = await_both(senders)
    relay.wait_for(LANES + 1)
    parent.send_signal(signal.SIGINT)
    wait_until(lambda: "processes_stopping" in said(senders), "the stop to begin")
    time.sleep(TOGETHER)
    parent.send_signal(signal.SIGINT)
    assert parent.wait(10) == 128 + signal.SIGINT
    wait_until(lambda: all(map(is_gone, pids.values())), "the processes to be killed", 10)
    assert balance(campaign.pk).holds
    assert balance(campaign.pk).counts["sending"] > LANES
    assert said(senders).count("ERROR ended_at_once signal=2") == 1


def test_what_the_parent_says_is_not_counted_as_a_signal(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    """A supervisor may signal every process it sees, in any order."""
    relay = sink()
    campaign = make_campaign(addresses(120, prefix="silent"))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}", "SENDONCE_GRACE": "2"}
    parent = senders.start(*OPTIONS, **mail)
    pids = await_both(senders)
    relay.wait_for(LANES + 1)
    parent.send_signal(signal.SIGTERM)
    wait_until(
        lambda: said(senders).count(" sender_stopping ") == PROCESSES, "both to have been told"
    )
    for pid in pids.values():
        os.kill(pid, signal.SIGTERM)
    assert parent.wait(60) == 0, said(senders)
    counts = check(campaign, relay.accepted(), doubt_at_most=PROCESSES * LANES, people=120)
    assert counts["in_doubt"] > LANES
    assert counts["in_doubt"] + counts["queued"] == 120


@pytest.fixture
def in_a_group(
    senders: Senders, environ: dict[str, str]
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``run_sender`` by its own command line, with its children in a process group of their own."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, **extra: str) -> subprocess.Popen[bytes]:
        with senders.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "run_sender", *arguments],
                cwd=ROOT,
                env={**environ, **extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        running.append(process)
        return process

    yield start
    for process in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_ctrl_c_at_a_terminal_counts_once(
    sink: Callable[..., Sink],
    senders: Senders,
    in_a_group: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """It goes to every process of the group."""
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(300))
    parent = in_a_group(*OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    pids = await_both(senders)
    relay.wait_for(30)
    os.killpg(parent.pid, signal.SIGINT)
    assert parent.wait(60) == 0, said(senders)
    assert all(map(is_gone, pids.values()))
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=300)
    assert 30 <= counts["sent"] < 300
    assert counts["claimed"] == counts["sending"] == 0


def test_ctrl_c_twice_ends_all_at_once(
    sink: Callable[..., Sink],
    senders: Senders,
    in_a_group: Callable[..., subprocess.Popen[bytes]],
) -> None:
    relay = sink()
    make_campaign(addresses(120, prefix="silent"))
    parent = in_a_group(*OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    pids = await_both(senders)
    relay.wait_for(LANES + 1)
    os.killpg(parent.pid, signal.SIGINT)
    wait_until(lambda: said(senders).count(" sender_stopping ") == PROCESSES, "all to stop")
    wait_until(lambda: "processes_stopping" in said(senders), "their parent, too")
    time.sleep(TOGETHER)
    os.killpg(parent.pid, signal.SIGINT)
    assert parent.wait(10) == 128 + signal.SIGINT
    wait_until(lambda: all(map(is_gone, pids.values())), "the processes to be gone", 10)


def test_one_that_was_stopped_alone_is_started_again(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    parent = senders.start(*OPTIONS, EMAIL_URL=f"smtp://127.0.0.1:{sink().port}")
    pids = await_both(senders)
    os.kill(pids[1], signal.SIGTERM)
    wait_until(lambda: started(senders)[1] != pids[1], "another one")
    assert 'why="exit code 0"' in said(senders)
    wait_until(lambda: Worker.objects.filter(ended__isnull=True).count() == 2, "both to be there")
    parent.terminate()
    assert parent.wait(60) == 0, said(senders)


def test_a_fault_at_the_start_is_told_once_and_is_that_of_the_whole(
    senders: Senders, environ: dict[str, str]
) -> None:
    parent = senders.start("--campaign", "999", *OPTIONS)
    assert parent.wait(60) == 2
    assert said(senders).count("there is no campaign 999") == 1
    away = environ["DATABASE_URL"].replace("host=", "host=/nowhere")
    parent = senders.start("--drain", *OPTIONS, DATABASE_URL=away)
    assert parent.wait(60) == 1
    assert said(senders).count("\nerror: ") == 1
    assert not Worker.objects.exists()


def test_another_cluster_ends_the_whole(senders: Senders) -> None:
    _another_cluster()
    parent = senders.start(*OPTIONS)
    assert parent.wait(60) == 4
    assert said(senders).count("this is another database cluster") == 1
    assert not Worker.objects.exists()


def test_confirming_a_cluster_does_not_confirm_one_that_comes_later(senders: Senders) -> None:
    _another_cluster()
    parent = senders.start("--confirm-cluster", *OPTIONS)
    pids = await_both(senders)
    _another_cluster()
    os.kill(pids[1], signal.SIGKILL)
    assert parent.wait(60) == 4, said(senders)
    assert "this is another database cluster" in said(senders)
    assert is_gone(pids[0])


def supervised(senders: Senders, mode: str) -> Forked:
    marker = senders.log.with_suffix(".marker")
    command = ["-m", "tests.crash.supervised", mode, str(marker)]
    process = senders.forks.start(command, env=senders.environ, out=senders.log)
    senders.running.append(process)
    return process


def test_one_that_does_not_end_is_killed(senders: Senders) -> None:
    parent = supervised(senders, "stubborn")
    wait_until(lambda: len(started(senders)) == PROCESSES, "both to start")
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(60) == 5
    assert " processes_killed " in said(senders)
    assert all(map(is_gone, started(senders).values()))


@pytest.mark.parametrize(
    ("mode", "why", "code"), [("abandons", "exit code 5", 5), ("fails", "exit code 1", 0)]
)
def test_one_that_failed_is_started_again_while_there_is_work(
    mode: str, why: str, code: int, senders: Senders
) -> None:
    assert supervised(senders, mode).wait(60) == code, said(senders)
    told = said(senders)
    assert f'why="{why}"' in told
    assert told.count(" process_started number=1 ") == 2
    assert told.count(" process_started number=0 ") == 1, "it had done its part"
    assert ("RuntimeError: a fault" in told) == (mode == "fails")
    assert " processes_ended rows_sent=3 " in told


def test_a_signal_waits_until_a_new_process_can_hear_it(senders: Senders) -> None:
    parent = supervised(senders, "deaf at first")
    wait_until(lambda: len(started(senders)) == PROCESSES, "both to start")
    os.kill(started(senders)[1], signal.SIGTERM)
    assert parent.wait(60) == 0
    assert sorted(re.findall(r"^heard (.*) at last$", said(senders), re.M)) == ["[15]", "[]"]


def test_the_last_figures_are_shown_however_soon_they_come(senders: Senders) -> None:
    """Both are up and gone within the time for which a display shows nothing new."""
    assert supervised(senders, "gone at once").wait(60) == 0, said(senders)
    shown = re.findall(r"^shown (.*)$", said(senders), re.M)
    assert shown[-1] == "sent=2 ending=True"


def test_a_terminal_shows_one_bar_for_all(
    sink: Callable[..., Sink], senders: Senders, environ: dict[str, str]
) -> None:
    pytest.importorskip("rich")
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(200))
    ours, theirs = pty.openpty()
    parent = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "run_sender", "--drain", *OPTIONS],
        cwd=ROOT,
        env={
            **environ,
            "EMAIL_URL": f"smtp://127.0.0.1:{relay.port}",
            "TERM": "xterm",
            "COLUMNS": "100",
        },
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while some := os.read(ours, 65536):
            drawn += some
    os.close(ours)
    text = drawn.decode()
    assert parent.wait(60) == 0, text
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=200)["sent"] == 200
    assert "2 processes: 200 sent" in text, text
    # Whole lines of the children, above the bar.
    whole = r'\d\dZ INFO sender_stopped worker=\d+ rows_sent=[^"\r\n]*"sender stopped"\r\n'
    assert len(re.findall(whole, text)) == PROCESSES, text


def _another_cluster() -> None:
    """As if the last sender had seen a server that is not this one."""
    Installation.objects.filter(pk=installation().pk).update(
        system_identifier=str(random.randrange(10**18)), timeline=1
    )


def _sessions() -> int:
    """Sessions of this test's own database besides the test's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])
