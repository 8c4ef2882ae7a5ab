"""The demo's verdict: it must be able to say no."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from sending.demo import scenario
from sending.demo.live_screen import LiveScreen
from sending.demo.mail_server import FAULTS, LONGEST_DELAY_S, reply_delay, telling_seed
from sending.demo.people import SCRIPTS, generate
from sending.demo.report import Evidence, Row, identity, judge, report_lines
from sending.demo.screen import Moment, Screen
from sending.sink import Fault, Faults
from subscribers.addresses import normalize


def taken(address: str, message: str | None = None) -> dict[str, Any]:
    return {
        "event": "accepted",
        "accepted": True,
        "recipient": address,
        "message_id": message or f"<{address}>",
    }


def refused(address: str) -> dict[str, Any]:
    return {"event": "refused", "accepted": False, "recipient": address}


def evidence(**given: Any) -> Evidence:
    return Evidence(
        **{
            "record": [taken("A@example.org"), taken("b@example.org"), refused("c@example.org")],
            "rows": [
                Row("a@example.org", "sent"),
                Row("b@example.org", "in_doubt", "worker_lost"),
                Row("c@example.org", "bounced", "address_dead"),
                Row("d@example.org", "suppressed"),
            ],
            "audience": 4,
            "campaign_status": "sent",
            "lost_at_most": 10,
            **given,
        }
    )


def test_a_good_end() -> None:
    verdict = judge(evidence())
    assert verdict.problems == []
    assert verdict.passed
    assert (verdict.accepted, verdict.duplicates) == (2, 0)


def rows(**changed: str) -> list[Row]:
    found = {"a": "sent", "b": "in_doubt", "c": "bounced", "d": "suppressed", **changed}
    return [Row(f"{name}@example.org", status) for name, status in found.items() if status]


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (
            {"record": [taken("a@example.org"), taken("A@Example.org", "<other>")]},
            "1 too many messages accepted (a@example.org)",
        ),
        (
            {"record": [taken("a@example.org", "<same>"), taken("b@example.org", "<same>")]},
            "1 too many messages accepted",
        ),
        ({"audience": 5}, "the identity fails: 5 people, 4 rows"),
        ({"rows": rows(d="")}, "the identity fails: 4 people, 3 rows"),
        (
            {"record": [taken("a@example.org"), taken("x@example.org")]},
            "1 accepted for nobody of the audience (x@example.org)",
        ),
        (
            {"rows": rows(b="bounced")},
            "1 accepted, but neither sent nor in doubt in the ledger (b@example.org)",
        ),
        ({"rows": rows(b="queued")}, "1 still open"),
        ({"rows": rows(d="sent")}, "1 sent by the ledger, never accepted (d@example.org)"),
        ({"campaign_status": "sending"}, "the campaign is sending, not sent"),
        ({"lost_at_most": 0}, "1 in doubt because of the kill, 0 are the most"),
    ],
)
def test_each_broken_promise_is_said(broken: dict[str, Any], problem: str) -> None:
    verdict = judge(evidence(**broken))
    assert not verdict.passed
    assert any(line.startswith(problem) for line in verdict.problems), verdict.problems


def test_a_row_in_doubt_may_or_may_not_have_been_accepted() -> None:
    assert judge(evidence(record=[taken("a@example.org")])).passed


def test_the_table_has_both_sides_and_the_identity() -> None:
    text = "\n".join(report_lines(evidence(), judge(evidence())))
    assert "accepted by the server  2" in text
    assert "duplicates              0" in text
    assert "on the wire when its sender was killed" in text
    assert identity(evidence()) in text


def test_the_identity_in_words() -> None:
    assert identity(evidence()) == (
        "4 = 1 sent + 1 bounced + 1 suppressed + 1 in doubt: every recipient is accounted for"
    )
    assert "SOMEBODY IS UNACCOUNTED FOR" in identity(evidence(audience=5))


# --- what it says on the way -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (
            {"sent": 1405, "bounced": 4, "in_doubt": 3, "retry": 38, "queued": 50},
            "1,412 of 1,500 done: 1,405 sent + 4 bounced + 3 in doubt; 38 to retry",
        ),
        ({"retry": 2, "sending": 9}, "0 of 1,500 done; 2 to retry"),
        ({}, "0 of 1,500 done"),
    ],
)
def test_the_parts_of_a_line_of_progress_add_up(counts: dict[str, int], line: str) -> None:
    assert Moment(1500, counts).line == line


@pytest.mark.parametrize("kind", [Screen, LiveScreen])
def test_the_last_line_is_always_told(kind: type[Screen]) -> None:
    out = io.StringIO()
    screen = kind(out)
    with screen.progress():
        screen.moment(Moment(1000, {"sent": 998}))
        screen.moment(Moment(1000, {"sent": 999}))
        screen.moment(Moment(1000, {"sent": 1000}), last=True)
    screen.step("finished", "after 1 s")
    said = out.getvalue()
    assert "999 of 1,000" not in said or kind is LiveScreen
    assert said.rstrip().splitlines()[-2].strip() == "1,000 of 1,000 done: 1,000 sent"


@pytest.mark.parametrize(("engine", "said"), [("config.embedded", True), ("postgresql", False)])
def test_a_server_that_keeps_running_is_told_of(
    engine: str, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ENGINE", engine)
    out = io.StringIO()
    scenario._say_how_to_go_on(Screen(out), [], serve=False)
    assert ("make db-stop stops it" in out.getvalue()) == said


def test_it_refuses_in_a_project_that_is_not_ours(settings: Any) -> None:
    settings.DEBUG = True
    del settings.DEMO_SERVE
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"^the demo runs in Sendonce's own project only") as no:
        call_command("demo", "--no-serve", stdout=out)
    assert (no.value.returncode, out.getvalue()) == (2, "")


# --- the people and the server ---------------------------------------------------------------


def test_the_same_seed_makes_the_same_people_each_with_an_address_of_their_own() -> None:
    people = list(generate(500, seed=7))
    assert people == list(generate(500, seed=7))
    assert people != list(generate(500, seed=8))
    assert len({person.email.lower() for person in people}) == 500
    assert all(normalize(person.email) == person.email for person in people)
    domains = {person.email.rpartition("@")[2] for person in people}
    assert domains == {"example.org", "example.net", "example.com"}


def test_a_small_audience_has_every_script() -> None:
    names = "".join(person.first_name for person in generate(len(SCRIPTS), seed=1))
    blocks = [(0x0370, 0x3FF), (0x400, 0x52F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F)]
    blocks += [(0xE00, 0xE7F), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0x1F300, 0x1FAFF)]
    for first, last in blocks:
        assert any(first <= ord(char) <= last for char in names), hex(first)


def test_every_fault_meets_somebody_in_a_small_audience() -> None:
    addresses = [person.email for person in generate(60, seed=3)]
    faults = Faults(FAULTS, telling_seed(addresses, first=1))
    assert {faults.of(address) for address in addresses} == {Fault.NONE, *FAULTS}


def test_a_hopeless_audience_still_gets_a_seed() -> None:
    assert telling_seed(["a@example.org"], first=5) == "5"


def test_a_large_audience_is_not_slowed_down() -> None:
    assert reply_delay(20, 4) == LONGEST_DELAY_S
    assert 0.005 < reply_delay(1000, 4) < 0.02
    assert reply_delay(100_000, 4) == 0.0
