"""What the admin says about campaigns: moments, refusals, summaries, what a cancel keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from campaigns.admin.approve_form import is_another_audience
from campaigns.admin.approve_page import field_label, line, masked
from campaigns.admin.canceling import split
from campaigns.admin.moments import both
from campaigns.admin.panel import WHAT_HAPPENS_NEXT, headline
from campaigns.admin.verb_words import (
    APPROVE,
    CANCEL,
    PAUSE,
    RESUME,
    VERBS,
    WITHDRAW,
    Verb,
    happens_next,
    is_waiting,
    refusal,
    summary,
)
from campaigns.errors import GateBusy, WrongState
from campaigns.models import Campaign
from campaigns.preflight import Finding

NEW_YEAR = datetime(2030, 12, 31, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("UTC", "31 December 2030, 23:30 UTC"),
        ("Europe/London", "31 December 2030, 23:30 GMT"),
        ("Europe/Paris", "1 January 2031, 00:30 CET (31 December 2030, 23:30 UTC)"),
        ("America/Sao_Paulo", "31 December 2030, 20:30 UTC-03 (23:30 UTC)"),
        ("Asia/Kathmandu", "1 January 2031, 05:15 UTC+0545 (31 December 2030, 23:30 UTC)"),
    ],
)
def test_a_moment_is_told_in_both_zones(zone: str, words: str) -> None:
    assert both(NEW_YEAR, ZoneInfo(zone)) == words


@pytest.mark.parametrize(
    ("verb", "found", "words"),
    [
        (APPROVE, "approved", "it is approved already, nothing was changed"),
        (WITHDRAW, "draft", "it is a draft already, nothing was changed"),
        (WITHDRAW, "sending", "sending has begun; pause or cancel it instead"),
        (PAUSE, "paused", "it is paused already, nothing was changed"),
        (PAUSE, "approved", "it has not started yet; withdraw its approval instead"),
        (RESUME, "sending", "it is sending already, nothing was changed"),
        (CANCEL, "sent", "everything had left before, there is nothing to cancel"),
        (CANCEL, "canceled", "it is canceled already, nothing was changed"),
        (CANCEL, "deleted", "it was deleted meanwhile"),
        (
            RESUME,
            "canceled",
            "cannot resume: the campaign is canceled, it would have to be paused",
        ),
    ],
)
def test_a_refusal_is_one_plain_sentence(verb: Verb, found: str, words: str) -> None:
    assert refusal(verb, WrongState(verb.name, found, verb.states)) == words


def test_every_verb_leads_where_it_can_not_start() -> None:
    for verb in VERBS:
        assert verb.leads_to
        assert verb.leads_to not in verb.states
        assert verb.told


@pytest.mark.parametrize(
    ("done", "refused", "words"),
    [
        (["A"], [], "Paused: A."),
        (["A", "B"], [], "Paused: 2 campaigns, A, B."),
        ([], [("C", "it is busy")], "Not paused: C (it is busy)."),
        (
            ["A"],
            [("B", "no"), ("C", "busy"), ("D", "no")],
            "Paused: A. Not paused: 2 campaigns, B, D (no). Not paused: C (busy).",
        ),
        (list("ABCDEFG"), [], "Paused: 7 campaigns, A, B, C, D, E and 2 more."),
        ([], [], "No campaign was chosen."),
    ],
)
def test_what_came_of_many_is_one_message(
    done: list[str], refused: list[tuple[str, str]], words: str
) -> None:
    assert summary(PAUSE, done, refused) == words


def test_busy_is_said_as_it_is() -> None:
    assert "try again" in refusal(PAUSE, GateBusy())


@pytest.mark.parametrize(
    ("seen", "now", "another"),
    [
        (0, 0, False),
        (0, 10, False),
        (0, 11, True),
        (5, 15, False),
        (100, 110, False),
        (100, 111, True),
        (100, 89, True),
        (1_000_000, 1_090_000, False),
        (1_000_000, 1_110_000, True),
        (1_000_000, 0, True),
    ],
)
def test_another_audience_is_one_that_changed_by_more_than_a_tenth(
    seen: int, now: int, another: bool
) -> None:
    assert is_another_audience(seen, now) is another


@pytest.mark.parametrize(
    ("email", "shown"),
    [
        ("ann@example.org", "a…@example.org"),
        ("a@example.org", "a…@example.org"),
        ('"x@y"@example.org', '"…@example.org'),
    ],
)
def test_an_address_is_masked(email: str, shown: str) -> None:
    assert masked(email) == shown


@pytest.mark.parametrize(
    ("finding", "url", "place", "link"),
    [
        (
            Finding("a", "error", "A", field="body", line=3, column=5),
            "/c/",
            "line 3, column 5",
            "/c/?line=3&column=5#id_body",
        ),
        (Finding("a", "error", "A", field="body", line=3), "/c/", "line 3", "/c/#id_body"),
        (Finding("a", "error", "A", field="body"), "", "", ""),
        (Finding("a", "error", "A."), "/c/", "", ""),
    ],
)
def test_a_finding_leads_to_its_field(finding: Finding, url: str, place: str, link: str) -> None:
    found = line(finding, url)
    assert (found.title, found.place, found.url) == ("A", place, link)


def test_a_field_is_called_as_the_edit_page_calls_it() -> None:
    assert field_label("from_email") == "from email"
    assert field_label("exclude_segments") == "exclude segments"
    assert field_label("of_tomorrow") == "of tomorrow"


def test_a_cancel_keeps_what_left_and_stops_what_waits() -> None:
    counts = {"audience": 16, "queued": 5, "claimed": 2, "retry": 1, "sending": 1, "sent": 4}
    counts |= {"in_doubt": 2, "bounced": 0, "failed": 0, "suppressed": 1, "canceled": 0}
    found = split(counts)
    assert found["stopped"] == 8
    assert [number for number, _, _ in found["kept"]] == [4, 1, 2, 1]
    assert found["stopped"] + sum(number for number, _, _ in found["kept"]) == counts["audience"]
    assert split({}) == {"kept": [], "stopped": 0}


@pytest.mark.parametrize(
    ("status", "waits", "in_doubt", "waiting", "words"),
    [
        ("sending", "", 0, False, "It is being sent and can't be edited any more."),
        ("sending", "Limited: 5 a second.", 3, False, "It is being sent and can't be edited"),
        ("sending", "Waits: no sender is alive.", 3, True, "Nothing of it leaves just now."),
        ("approved", "", 0, False, "A sender starts it when its time"),
        ("approved", "Waits: no sender is alive.", 0, False, "Nothing has been sent yet. A"),
        ("sent", "", 0, False, "Nothing of it is open any more."),
        ("sent", "", 1, False, "Nothing more leaves by itself. 1 is in doubt: somebody decides."),
        ("sent", "", 1700, False, "Nothing more leaves by itself. 1,700 are in doubt: somebody"),
        ("canceled", "", 17, False, "What was not sent is not sent."),
    ],
)
def test_what_happens_next_minds_what_waits_and_what_is_in_doubt(
    status: str, waits: str, in_doubt: int, waiting: bool, words: str
) -> None:
    told = happens_next(WHAT_HAPPENS_NEXT, status, waits=waits, in_doubt=in_doubt)
    assert told.startswith(words)
    assert is_waiting(status, waits) is waiting
    title = headline(Campaign(status=status), ZoneInfo("UTC"), waits)
    assert title.endswith("(waits)") is waiting
