"""Back to back into the sink with all its faults; its fsynced record is the oracle: what is said of
each message is true, and nobody gets one twice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from sending.outcomes import Answer, Outcome
from sending.sink import accepted, read_record
from sending.smtp import EmailBackend, SMTPFailure, StaleConnection

from .back_to_back import Message
from .smtp_relay import backend, outcome
from .test_sink import sink

PLAIN = ["ok"] * 12
FAULTY = ["refuse", "full", "defer", "policy", "content", "drop", "dropbody", "garbage", "greylist"]


def messages(dice: random.Random, count: int) -> list[Message]:
    """To addresses that ask for a fault; of very different sizes."""
    made = []
    for number in range(count):
        name = f"{dice.choice(PLAIN + FAULTY)}-{number}@example.org"
        head = f"Message-ID: <{number}@example.org>\r\nSubject: s\r\n\r\n".encode()
        body = (b"x" * 70 + b"\r\n") * dice.choice([1, 1, 80, 3000])
        made.append(("s@example.org", name, head + body))
    return made


def sent(relay: EmailBackend, one: Message, following: Message | None) -> Answer:
    """As a lane does: a session that had ended is opened again for the same message."""
    while True:
        relay.open()
        try:
            return relay.deliver(*one, is_stuffed=True, reconnect=False, following=following)
        except StaleConnection:
            continue
        except SMTPFailure as failure:
            return failure.answer


@pytest.mark.parametrize("limit", ["0", "3"], ids=["", "ends after three"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_said_of_each_message_is_true(seed: int, limit: str, tmp_path: Path) -> None:
    """Now and then something else is sent than what was announced."""
    record, dice = tmp_path / "record.jsonl", random.Random(seed)
    told: dict[str, Outcome] = {}
    with sink("--record", str(record), "--max-messages-per-connection", limit) as (_, port):
        relay = backend(port, back_to_back=True, messages_per_connection=20)
        left = messages(dice, 150)
        while left:
            one = left.pop(0)
            announced = left[0] if left else None
            if dice.random() < 0.1:
                left[:2] = left[1::-1]
            told[one[1]] = outcome(sent(relay, one, announced))
        relay.close()
    taken = Counter(entry["recipient"] for entry in accepted(read_record(record)))
    assert set(taken.values()) == {1}
    assert {to for to, what in told.items() if what is Outcome.SENT} <= taken.keys()
    wrong = {to: what for to, what in told.items() if what is not Outcome.SENT and taken[to]}
    assert set(wrong.values()) == {Outcome.IN_DOUBT}
    assert all(to.startswith(("drop-", "garbage-")) for to in wrong), "doubt where there is none"
    doubtful = {to for to, what in told.items() if what is Outcome.IN_DOUBT}
    assert doubtful == wrong.keys()
