"""SIGKILL and lost answers over the providers' APIs; their own record of what they accepted is the
oracle."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from campaigns.models import Campaign
from sending.models import Send
from tests.crash.conftest import Senders, addresses, make_campaign
from tests.crash.oracle import check
from tests.providers.running import ProviderServer, backend, options

pytest.importorskip("anymail")

LANES, LOT = 2, 5
OPTIONS = ("--lanes", str(LANES), "--lot", str(LOT))
PEOPLE = 100
KILLS = 2
#: Per cent of the people; each meets a fault once, after its message was accepted. (A 429 would
#: slow all senders down for longer than a test can wait.)
FAULTS = {"error": 6.0, "reset": 6.0, "cut": 3.0, "garbage": 3.0, "late": 2.0}
#: A lease and an answer time-out that a test can wait for.
SHORT = {
    "SENDONCE_LEASE": "4",
    "SENDONCE_LEASE_MARGIN": "1",
    "SENDONCE_ANSWER_TIMEOUT": "2",
    "SENDONCE_POLL": "0.2",
}


@pytest.fixture
def seed() -> int:
    """A new one every time, shown with a failure; ``KILL_SEED=... pytest`` throws it again."""
    given = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(4), "big"))
    print(f"KILL_SEED={given}")
    return given


@pytest.fixture
def server(tmp_path: Path, seed: int) -> Iterator[ProviderServer]:
    arguments = ("--delay", "0.01", "--late-seconds", "10", "--seed", str(seed))
    with ProviderServer(tmp_path, *arguments) as made:
        yield made


def settings(provider: str, server: ProviderServer) -> dict[str, str]:
    """The environment of a sender whose only transport is this provider."""
    given = options(provider, server.url(provider), timeout=1.0)
    entry = {"BACKEND": backend(provider), "OPTIONS": given}
    return {**SHORT, "SENDONCE_TRANSPORTS": json.dumps({"default": entry})}


def lose_and_kill(
    points: tuple[str, ...],
    dice: random.Random,
    server: ProviderServer,
    senders: Senders,
    env: dict[str, str],
) -> None:
    """Answers get lost; then senders die, at named points and, two at a time, at random moments.
    Two live on.

    One after the other: a replay that is lost as well waits for minutes until the next.
    """
    server.fail(**FAULTS)
    running = [senders.start(*OPTIONS, **env)]
    server.wait_for(PEOPLE // 2)
    server.fail()
    for point in points:
        victim = senders.start_killable(point, 2, *OPTIONS, **env)
        running[0].kill()
        assert victim.wait(60) == -signal.SIGKILL, senders.log.read_text()
    running = [senders.start(*OPTIONS, **env) for _ in range(2)]
    for kill in range(KILLS):
        server.wait_for(min(len(server.accepted()) + 5, PEOPLE * 2 // 3))
        time.sleep(dice.random() * 0.2)
        victim = running[kill % 2]
        victim.kill()
        victim.wait()
        running[kill % 2] = senders.start(*OPTIONS, **env)


def finish(campaign: Campaign, senders: Senders) -> None:
    """Wait until the campaign says of itself that it is sent, and stop the senders in order."""

    end = time.monotonic() + 180
    while not Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.SENT).exists():
        if time.monotonic() > end:
            open_rows = Send.objects.filter(campaign=campaign).exclude(status=Send.Status.SENT)
            pytest.fail(f"not sent after 180 s: {list(open_rows.values())}")
        time.sleep(0.1)
    for process in senders.running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, senders.log.read_text()


def of_a_relay(accepted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A provider's record as ``oracle.check`` reads the sink's."""
    return [{**entry, "message_id": entry["metadata"]["job_id"]} for entry in accepted]


@pytest.mark.parametrize("provider", ["resend", "brevo"])
def test_a_deduplicating_provider_leaves_no_duplicate_and_no_doubt(
    provider: str, server: ProviderServer, senders: Senders, seed: int
) -> None:
    campaign = make_campaign(addresses(PEOPLE), retry_waits=[1])
    env = settings(provider, server)
    points = {
        "resend": ("request:after", "settle:before_commit"),
        "brevo": ("request:before",),
    }[provider]
    lose_and_kill(points, random.Random(seed), server, senders, env)
    finish(campaign, senders)
    counts = check(campaign, of_a_relay(server.accepted()), doubt_at_most=0, people=PEOPLE)
    assert counts["sent"] == PEOPLE
    # Every person's message was repeated under its own key, if at all: accepted once.
    keys = Counter(entry["key"] for entry in server.accepted())
    assert len(keys) == PEOPLE
    assert set(keys.values()) == {1}
    # And something was repeated, or nothing was tried here.
    replayed = [r for r in Send.objects.filter(campaign=campaign) if r.attempts > 1]
    assert len(replayed) >= PEOPLE * sum(FAULTS.values()) / 100 / 4


def test_another_provider_leaves_doubt_that_is_held(
    server: ProviderServer, senders: Senders, seed: int
) -> None:
    campaign = make_campaign(addresses(PEOPLE), retry_waits=[1])
    points = ("request:after",)
    lose_and_kill(points, random.Random(seed), server, senders, settings("postmark", server))
    finish(campaign, senders)
    accepted = of_a_relay(server.accepted())
    lost = sum(1 for e in accepted if e["fault"])
    at_most = lost + (1 + len(points) + KILLS) * LANES * LOT
    counts = check(campaign, accepted, doubt_at_most=at_most, people=PEOPLE)
    assert counts["sent"] + counts["in_doubt"] == PEOPLE
    assert counts["in_doubt"] >= lost > 0
    held = Send.objects.filter(campaign=campaign, status=Send.Status.IN_DOUBT)
    assert not held.exclude(settle_at=None).exists(), "held for evidence or a person"
