"""A confirmation is queued with what it confirms, and leaves once, whoever is killed meanwhile."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sending.models import Send
from subscribers.models import Account
from tests.crash.conftest import Senders, Sink
from tests.forks import Forks

#: Where a sender dies, and whether the message may have left then.
POINTS = {
    "claim:before_commit": False,
    "claim:after_commit": False,
    "hand_over:before_commit": False,
    "hand_over:after_commit": True,
    "body:after_dot": True,
    "settle:before_commit": True,
    "settle:after_commit": True,
}


@pytest.fixture
def account(own_database: str) -> Account:
    return Account.objects.create(name="Shop", slug="shop", from_email="news@example.org")


@pytest.fixture
def ask(
    account: Account, environ: dict[str, str], tmp_path: Path, forks: Forks
) -> Callable[[str, str], int]:
    """``ask(key, when)``: a web process queues the message and is killed then; its exit code."""

    def run(key: str, when: str) -> int:
        command = ["-m", "tests.crash.confirming", key, str(account.pk), when]
        process = forks.start(command, env=environ, out=tmp_path / "web.log")
        return process.wait(60)

    return run


def test_it_is_there_exactly_when_the_request_was_committed(
    ask: Callable[[str, str], int], sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    killed = -signal.SIGKILL
    assert ask("lost", "before_commit") == killed
    assert ask("kept", "after_commit") == killed
    assert ask("kept", "never") == 0, "the person tries again"
    assert ask("plain", "never") == 0
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    senders.drain(**mail)
    senders.drain(**mail)
    got = Counter(entry["recipient"] for entry in relay.accepted())
    assert got == {"kept@example.org": 1, "plain@example.org": 1}
    assert set(Send.objects.values_list("status", flat=True)) == {"sent"}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_sender_sends_it_once_or_leaves_it_in_doubt(
    point: str,
    ask: Callable[[str, str], int],
    sink: Callable[..., Sink],
    senders: Senders,
) -> None:
    relay = sink()
    assert ask("one", "after_commit") == -signal.SIGKILL
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    victim = senders.start_killable(point, 1, "--lanes", "1", **mail)
    assert victim.wait(60) == -signal.SIGKILL, senders.log.read_text()
    senders.drain("--lanes", "1", **mail)
    accepted = relay.accepted()
    status = Send.objects.get().status
    if POINTS[point]:
        assert len(accepted) <= 1
        assert status in ("sent", "in_doubt")
        assert accepted or status == "in_doubt"
    else:
        assert (len(accepted), status) == (1, "sent")
