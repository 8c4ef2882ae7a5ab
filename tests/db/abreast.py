"""A lane with three sessions before a relay that a test scripts: fixtures and words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from campaigns.models import Campaign
from sending.lanes import Lane
from sending.models import Send
from subscribers.conf import SMTP_BACKEND
from tests.crash.relay import OK, Relay

from .rows import campaign_to, row, status_of
from .test_lane import give

SESSIONS = 3
#: The ways in which a message can go.
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "one by one": ((), {}),
    "pipelined": (("PIPELINING",), {}),
    "back to back": (("PIPELINING",), {"back_to_back": True}),
    "chunked": (("PIPELINING", "CHUNKING"), {"chunking": True}),
}
GONE = ""
BLOCKED = "550 5.7.1 your host is blocked"
NOBODY = "550 5.1.1 no such user"


class Gathering:
    """The relay's answers at the end of a message: the first ones are only given when so many have
    come, each in a session of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.answers: dict[str, str | None] = {}
        self.came: list[str] = []
        #: Whether the first waited in vain for the others.
        self.missed = False
        #: What happens when all have come, before any is answered.
        self.meanwhile: Callable[[], object] = lambda: None
        self._changed = threading.Condition()

    def __call__(self, recipient: str) -> str | None:
        with self._changed:
            self.came.append(recipient)
            if len(self.came) == self.size:
                self.meanwhile()
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(self.came) >= self.size, 10):
                self.missed = True
        return self.answers.get(recipient, OK)


@pytest.fixture
def gathering() -> Gathering:
    return Gathering(SESSIONS)


@pytest.fixture(params=["pipelined"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


every_way = pytest.mark.parametrize("way", WAYS, indirect=True)
announcing = pytest.mark.parametrize("way", ["pipelined", "back to back"], indirect=True)


@pytest.fixture
def relay(gathering: Gathering, way: str) -> Iterator[Relay]:
    with (
        Relay(at_dot=gathering, features=WAYS[way][0]) as made,
        through(made.port, **WAYS[way][1]),
    ):
        yield made


def through(port: int, *, connections: int | None = None, **options: Any) -> override_settings:
    entry: dict[str, Any] = {
        "BACKEND": SMTP_BACKEND,
        "OPTIONS": {"host": "127.0.0.1", "port": port, **options},
    }
    if connections is not None:
        entry["CONNECTIONS"] = connections
    return override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": {"default": entry}})


@pytest.fixture
def several(lane: Lane) -> None:
    lane.shared.sessions = SESSIONS
    lane.shared.limits.refresh()  # there are none
    lane.shared.freshness = 60  # however slow this machine is


@pytest.fixture
def campaign() -> Campaign:
    return campaign_to(0)


def rows(lane: Lane, campaign: Campaign, count: int) -> list[Send]:
    made = [row(campaign, "claimed") for _ in range(count)]
    give(lane, *made)
    return made


@pytest.fixture
def sends(lane: Lane, campaign: Campaign) -> list[Send]:
    return rows(lane, campaign, 9)


def statuses(sends: list[Send]) -> list[str]:
    return [status_of(send) for send in sends]


def assert_each_once(relay: Relay, sends: list[Send]) -> None:
    """All were sent, nobody twice, and no attempt was spent for nothing."""
    assert statuses(sends) == ["sent"] * len(sends)
    assert sorted(relay.accepted) == sorted(str(send.email) for send in sends)
    for send in sends:
        send.refresh_from_db()
        assert send.attempts == 1


def is_open(lane: Lane) -> list[bool]:
    return [session.seems_open for session in lane.sessions._sessions.get("default", [])]
