"""A transaction taken step by step, while somebody does other things in between."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from sending import smtp_wire
from sending.answers import Answer, Stage
from sending.smtp import EmailBackend, SMTPFailure
from sending.smtp_transaction import Transaction

from .scripted_smtp import Peer, scripted
from .smtp_relay import DATA, backend


@pytest.fixture
def go_on() -> threading.Event:
    return threading.Event()


@pytest.fixture
def relay(go_on: threading.Event) -> Iterator[EmailBackend]:
    """Its server answers the end of the message when it may."""

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        for _ in range(3):
            peer.line()
        peer.raw(b"250 ok\r\n250 ok\r\n354 go\r\n")
        peer.body()
        go_on.wait(10)
        with contextlib.suppress(OSError):  # it may be gone by now
            peer.say(b"250 2.0.0 queued")
            peer.rest()

    with scripted(talk) as server:
        made = backend(server)
        made.open()
        yield made
        go_on.set()
        made.abort()
        made.close()


def begun(relay: EmailBackend) -> Transaction:
    return relay.transaction("s@example.org", "a@example.org", DATA)


def until_its_end_is_written(steps: Transaction, relay: EmailBackend) -> None:
    """The first wait is for the envelope's replies, which come; the next for the answer."""
    next(steps)
    next(steps)


def end_of(steps: Transaction) -> Answer:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        said: Answer = end.value
        return said


def test_a_wait_is_given_up_for_a_while_after_each_tick(
    relay: EmailBackend, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_wire, "TICK", 0.05)
    steps = begun(relay)
    until_its_end_is_written(steps, relay)
    for _ in range(3):
        next(steps)  # nothing was said yet
    go_on.set()
    assert end_of(steps).code == 250


def test_an_answer_that_came_meanwhile_counts_however_late_it_is_read(
    relay: EmailBackend, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = begun(relay)
    until_its_end_is_written(steps, relay)
    go_on.set()
    session = relay._session
    assert session is not None
    while not session.wire._look.poll(100):  # type: ignore[union-attr]
        pass
    _let_pass(1000, monkeypatch)
    assert end_of(steps).code == 250


def test_the_time_for_an_answer_passes_while_others_are_heard(
    relay: EmailBackend, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time-outs of several sessions before a dead relay would come one after another."""
    steps = begun(relay)
    until_its_end_is_written(steps, relay)
    _let_pass(1000, monkeypatch)
    answering = threading.Timer(30.0, go_on.set)  # which is too late
    answering.start()
    with pytest.raises(SMTPFailure) as caught:
        end_of(steps)
    answering.cancel()
    assert (caught.value.answer.stage, caught.value.answer.text) == (Stage.DOT, "timed out")


def _let_pass(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + seconds)


@pytest.mark.parametrize("waits", [1, 2])
def test_an_abort_from_elsewhere_ends_a_transaction_that_is_suspended(
    waits: int, relay: EmailBackend
) -> None:
    steps = begun(relay)
    for _ in range(waits):
        next(steps)
    thread = threading.Thread(target=relay.abort)
    thread.start()
    thread.join()
    with pytest.raises(SMTPFailure) as caught:
        end_of(steps)
    assert caught.value.answer.code is None
    assert caught.value.answer.stage == (Stage.MAIL if waits == 1 else Stage.DOT)
    assert not relay.is_open
