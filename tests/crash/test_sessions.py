"""Lanes with several sessions, real processes: one session whose relay falls silent holds up no
other, and ends by the transport's own time-outs."""

from __future__ import annotations

import signal
import time

import pytest

from sending.models import Send
from tests.crash.conftest import Senders, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.crash.relay import OK, Relay

PEOPLE, LOT = 120, 20
SILENT = frozenset(f"p-{n}@example.org" for n in (20, 21, 60))


def _accepted(relay: Relay) -> list[dict[str, str]]:
    return [{"recipient": r, "message_id": r} for r in relay.accepted]


@pytest.mark.parametrize("query", ["", "&back_to_back=true"])
def test_who_is_never_answered_is_in_doubt_and_all_others_are_sent(
    query: str, senders: Senders
) -> None:
    campaign = make_campaign(addresses(PEOPLE))

    def answer(recipient: str) -> str | None:
        return None if recipient in SILENT else OK

    with Relay(at_dot=answer, features=("PIPELINING",)) as relay:
        senders.drain(
            *("--lanes", "2", "--sessions", "3"),
            EMAIL_URL=f"smtp://127.0.0.1:{relay.port}?reply_timeout=3{query}",
        )
        counts = check(campaign, _accepted(relay), doubt_at_most=len(SILENT), people=PEOPLE)
    assert counts["sent"] == PEOPLE - len(SILENT)
    assert counts["in_doubt"] == len(SILENT)


def test_what_was_accepted_before_a_silence_is_no_doubt_of_who_is_killed_in_it(
    senders: Senders,
) -> None:
    """It is written while the silence lasts."""
    campaign = make_campaign(addresses(PEOPLE))
    silent = addresses(PEOPLE)[20]
    is_silent = True

    def answer(recipient: str) -> str | None:
        return None if is_silent and recipient == silent else OK

    with Relay(at_dot=answer, features=("PIPELINING",)) as relay:
        mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
        options = ("--lanes", "1", "--sessions", "3", "--lot", str(LOT))
        victim = senders.start(*options, **mail)
        sends = Send.objects.filter(campaign=campaign)

        def is_written() -> bool:
            on_wire = set(sends.filter(status="sending").values_list("email", flat=True))
            return silent in relay.named and on_wire.isdisjoint(relay.accepted)

        wait_until(lambda: silent in relay.named, "the silence")
        for _ in range(2):  # the rest of its lot goes on meanwhile, and then it is written
            before = -1
            while before != len(relay.accepted):
                before = len(relay.accepted)
                time.sleep(1)
            wait_until(is_written, "what was accepted to be written")
        accepted = list(relay.accepted)
        victim.kill()
        victim.wait()
        is_silent = False
        senders.drain(*options, **mail)
        check(campaign, _accepted(relay), doubt_at_most=LOT, people=PEOPLE)
    doubtful = set(sends.filter(status="in_doubt").values_list("email", flat=True))
    assert silent in doubtful
    assert doubtful.isdisjoint(accepted), "what was handed over ahead may be"


def test_a_stop_waits_for_no_answer_that_is_there(senders: Senders) -> None:
    """One message of the lane is never answered: those under way beside it are told what was said
    of them, and only that one is in doubt."""
    campaign = make_campaign(addresses(PEOPLE))
    silent = addresses(PEOPLE)[20]

    def answer(recipient: str) -> str | None:
        return None if recipient == silent else OK

    with Relay(at_dot=answer, features=("PIPELINING",)) as relay:
        process = senders.start(
            *("--lanes", "1", "--sessions", "3"),
            EMAIL_URL=f"smtp://127.0.0.1:{relay.port}",
            SENDONCE_GRACE="3",
        )
        wait_until(lambda: silent in relay.named and len(relay.accepted) > 22, "the silence")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        counts = check(campaign, _accepted(relay), doubt_at_most=1, people=PEOPLE)
    assert counts["in_doubt"] == 1
    assert counts["sent"] == len(relay.accepted)
