"""A lane before a relay that gets each envelope with the end of the message before it: what ends a
lot in between leaves the announced row as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from campaigns.models import Campaign
from sending import clock
from sending.lanes import Lane
from sending.models import Send
from sending.sessions import SMTPSession
from sending.smtp_transaction import Transaction
from subscribers.conf import SMTP_BACKEND
from tests.crash.conftest import Sink
from tests.unit.back_to_back import TAKEN
from tests.unit.scripted_smtp import Peer, Talk, scripted

from .rows import LEASE, campaign_to, kinds_of, row, status_of, take
from .test_lane import assert_back, assert_has_nothing, give, lane, recipients

__all__ = ["lane"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


def through(port: int) -> override_settings:
    options = {"host": "127.0.0.1", "port": port, "back_to_back": True}
    transports = {"default": {"BACKEND": SMTP_BACKEND, "OPTIONS": options}}
    return override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": transports})


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Sink]:
    sink = Sink(tmp_path / "sink.jsonl", [])
    sink.start()
    with through(sink.port):
        yield sink
    sink.stop()


@pytest.fixture
def campaign() -> Campaign:
    return campaign_to(0)


@pytest.fixture
def sends(lane: Lane, campaign: Campaign) -> list[Send]:
    lane.shared.limits.refresh()  # there are none
    made = [row(campaign, "claimed") for _ in range(4)]
    give(lane, *made)
    return made


class Watch:
    """What a lane's session was given, and ``act`` after the answer of that number (from 1)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.announced: list[str | None] = []
        self.sessions: list[SMTPSession] = []
        self.acts: dict[int, Callable[[], Any]] = {}
        transaction = SMTPSession.transaction

        def watched(session: SMTPSession, message: Any, following: Any = None) -> Transaction:
            said = yield from transaction(session, message, following)
            self.sessions.append(session)
            self.announced.append(following and following.recipient)
            self.acts.get(len(self.sessions), lambda: None)()
            return said

        monkeypatch.setattr(SMTPSession, "transaction", watched)

    @property
    def waits(self) -> bool:
        """Whether the session waits for a message that was announced."""
        inner = self.sessions[-1]._backend._session
        return inner is not None and inner.is_open and inner.announced is not None


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def test_a_lot_goes_back_to_back_and_the_last_announces_nothing(
    lane: Lane, relay: Sink, sends: list[Send], watch: Watch
) -> None:
    assert lane.step(timeout=0)
    emails = [send.email for send in sends]
    assert watch.announced == [*emails[1:], None]
    assert recipients(relay) == emails
    assert [status_of(send) for send in sends] == ["sent"] * 4
    assert lane.sessions.is_open("default", 1), "the next lot goes on with it"
    assert_has_nothing(lane)


def _stop(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    lane.shared.stopping.set()


def _brake(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    lane.shared.brake.urgent = True


def _sleep(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.now() + 2 * LEASE
    monkeypatch.setattr(clock, "now", lambda: later)


def _stall(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    lane.shared.freshness = 0.01
    time.sleep(0.05)


def _close_limits(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane.shared.limits, "closed", lambda alias: True)


@pytest.mark.parametrize("end", [_stop, _brake, _sleep, _stall, _close_limits])
def test_what_ends_a_lot_leaves_the_announced_row_as_it_was(
    end: Callable[[Lane, pytest.MonkeyPatch], None],
    lane: Lane,
    relay: Sink,
    campaign: Campaign,
    sends: list[Send],
    watch: Watch,
) -> None:
    waited: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:

        def act() -> None:
            waited.append(watch.waits)
            end(lane, patch)

        watch.acts[2] = act
        assert lane.step(timeout=0)
    assert waited == [True], "the third was announced"
    assert not watch.sessions[-1].seems_open, "nobody goes on with that session"
    assert recipients(relay) == [send.email for send in sends[:2]]
    assert [status_of(send) for send in sends[:2]] == ["sent"] * 2
    assert_back(*sends[2:])
    assert [kinds_of(send) for send in sends[2:]] == [[], []]
    assert lane.hand.current() is None

    # What was given back goes by another session, once.
    lane.shared.stopping.clear()
    lane.shared.freshness = 5
    lane.shared.ready.put((r.alias, r) for r in take([campaign.pk], 4))
    while lane.step(timeout=0):  # a lot, or several where the clock says that the relay is slow
        pass
    assert recipients(relay) == [send.email for send in sends]
    for send in sends:
        send.refresh_from_db()
        assert (send.status, send.attempts) == ("sent", 1)
    assert watch.sessions[-1].is_open
    assert_has_nothing(lane)


def test_a_fault_of_ours_leaves_the_announced_row_as_it_was(
    lane: Lane, relay: Sink, sends: list[Send], watch: Watch
) -> None:
    def fault() -> None:
        raise RuntimeError("a bug")

    watch.acts[2] = fault
    with pytest.raises(RuntimeError, match="a bug"):
        lane.step(timeout=0)
    assert [status_of(send) for send in sends] == ["sent", "in_doubt", "queued", "queued"]
    assert_back(*sends[2:])
    assert not watch.sessions[-1].seems_open
    assert recipients(relay) == [send.email for send in sends[:2]]


def test_a_permit_announces_nothing(
    lane: Lane, relay: Sink, sends: list[Send], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came of one message may stop the next."""
    monkeypatch.setattr(lane.shared.limits, "concerns", lambda alias, rows: True)
    assert lane.step(timeout=0)
    assert watch.announced == [None] * 4
    assert recipients(relay) == [send.email for send in sends]
    assert [status_of(send) for send in sends] == ["sent"] * 4


# --- relays that end the session in between ---------------------------------------------------


def _envelope(peer: Peer, send: Send) -> None:
    assert peer.line().startswith(b"MAIL FROM:")
    assert peer.line() == f"RCPT TO:<{send.email}>".encode()
    assert peer.line() == b"DATA"


def _all(*sends: Send) -> Talk:
    """All of these are taken, back to back."""

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        _envelope(peer, sends[0])
        peer.raw(TAKEN)
        for following in (*sends[1:], None):
            assert peer.body()
            if following is not None:
                _envelope(peer, following)
            peer.raw(b"250 ok\r\n" + (TAKEN if following else b""))
        peer.bye()

    return talk


def _two(peer: Peer, sends: list[Send], answer: bytes) -> None:
    peer.hello(b"PIPELINING")
    _envelope(peer, sends[0])
    peer.raw(TAKEN)
    assert peer.body()
    _envelope(peer, sends[1])
    peer.raw(answer)


@pytest.mark.parametrize(
    ("answer", "became"),
    [
        (b"250 ok\r\n", "sent"),
        (b"250 ok\r\n421 4.3.2 closing\r\n", "sent"),
        (b"451 4.3.0 later\r\n", "retry"),
        (b"554 5.7.1 looks like spam\r\n", "failed"),
        # One reply too many: whose the refusal is nobody knows.
        (b"554 5.7.1 looks like spam\r\n250 ok\r\n" + TAKEN, "in_doubt"),
    ],
)
def test_an_announced_row_whose_session_ended_goes_by_another_in_the_same_lot(
    answer: bytes, became: str, lane: Lane, sends: list[Send]
) -> None:
    def first(peer: Peer) -> None:
        _two(peer, sends, answer)

    with scripted(first, _all(*sends[1:])) as server, through(server.port):
        assert lane.step(timeout=0)
        lane.sessions.close()
    assert [status_of(send) for send in sends] == [became, "sent", "sent", "sent"]
    for send in sends:
        send.refresh_from_db()
        assert send.attempts == 1
    assert_has_nothing(lane)


def test_doubt_about_the_one_before_is_no_doubt_about_the_announced(
    lane: Lane, sends: list[Send]
) -> None:
    with (
        scripted(lambda peer: _two(peer, sends, b""), _all(*sends[1:])) as server,
        through(server.port),
    ):
        assert lane.step(timeout=0)
        lane.sessions.close()
    assert [status_of(send) for send in sends] == ["in_doubt", "sent", "sent", "sent"]


def test_a_refused_recipient_that_was_announced_is_told_by_itself(
    lane: Lane, sends: list[Send]
) -> None:
    def talk(peer: Peer) -> None:
        _two(peer, sends, b"250 ok\r\n250 ok\r\n550 5.1.1 nobody\r\n354 go\r\n")
        assert peer.line() == b"."
        peer.say(b"554 no valid recipients")
        assert peer.ask(b"250 ok") == b"RSET"
        _envelope(peer, sends[2])
        peer.raw(TAKEN)
        assert peer.body()
        _envelope(peer, sends[3])
        peer.raw(b"250 ok\r\n" + TAKEN)
        assert peer.body()
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server, through(server.port):
        assert lane.step(timeout=0)
        lane.sessions.close()
    assert [status_of(send) for send in sends] == ["sent", "bounced", "sent", "sent"]
