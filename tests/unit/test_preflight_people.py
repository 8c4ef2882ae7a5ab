"""Checks of the audience, its fields, the sender, the transport and the times."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from campaigns.audience import Audience, Share
from campaigns.errors import PreflightFailed
from campaigns.forecasts import Duration, TransportState
from campaigns.preflight import link_checks, people_checks, sender_checks, timing_checks
from campaigns.preflight.facts import Alike, FieldCounts
from campaigns.preflight.findings import Check, Finding, Report
from subscribers.models import Segment

from .preflight_facts import LETTER, NOW, codes, facts

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("body", "lacking", "found"),
    [
        ("{{ city }}", {}, {}),
        ("{{ city }}", {"city": 7}, {"fields.missing": "warning"}),
        ('{{ city|default:"here" }}', {"city": 7}, {}),
        ("{% if city %}{{ city }}{% endif %}", {"city": 7}, {}),
        ("{{ city }}", {"city": 100}, {"fields.missing": "warning"}),
        ("{{ town }}", {"town": 7}, {"fields.missing": "warning"}),
        ("{{ town }}", {"town": 100}, {"fields.unknown": "error"}),
        ("{% if town %}x{% endif %}", {"town": 100}, {"fields.unknown": "warning"}),
        ('{{ town|default:"x" }}', {"town": 100}, {"fields.unknown": "warning"}),
        ("{{ email }} {{ web_url }} {{ account.name }}", {}, {}),
        ("{{ account.phone }}", {}, {"fields.unknown": "error"}),
        ("{{ email.local }}", {}, {"fields.unknown": "error"}),
        ("{{ city|floatformat }}", {}, {}),
        ("{{ born|date }}", {}, {}),
        ("{{ born|floatformat }}", {}, {"fields.kind": "warning"}),
        ("{{ active|date }}", {}, {"fields.kind": "warning"}),
    ],
)
def test_merge_fields(body: str, lacking: dict[str, int], found: dict[str, str]) -> None:
    known = {
        "fields": FieldCounts(people=100, lacking=lacking),
        "definitions": {"city": "text", "born": "date", "active": "boolean"},
    }
    assert codes(people_checks.fields(facts({"x": 1}, known, body=LETTER + body))) == found


def test_a_field_s_finding_has_its_count_its_place_and_its_nearest_name() -> None:
    known = {
        "fields": FieldCounts(people=2000, lacking={"frist_name": 2000, "city": 1}),
        "definitions": {"first_name": "text"},
    }
    body = f"{LETTER}\n{{{{ frist_name }}}} {{{{ city }}}}"
    typo, lack = people_checks.fields(facts({"city": "x"}, known, body=body))
    assert typo.title == "Nobody has a field {{ frist_name }}"
    assert typo.detail == "Did you mean {{ first_name }}? It prints nothing."
    assert (typo.field, typo.line, typo.column) == ("body", 2, 1)
    assert lack.title == "1 person of 2,000 lacks {{ city }}"
    assert lack.count == 1


def test_thousands_of_unknown_fields_cost_as_much_as_a_few() -> None:
    body = LETTER + " ".join(f"{{{{ account.f{n} }}}}" for n in range(1_000))
    known = facts({}, {"definitions": {f"a_field_{n}": "text" for n in range(4_000)}}, body=body)
    begun = time.process_time()
    found = people_checks.fields(known)
    assert time.process_time() - begun < 2.0
    assert found[0].line == 1
    assert found[-1].title == "990 more like these"


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        (FieldCounts(in_time=False), {"fields.uncounted": "warning"}),
        (FieldCounts(people=5, left_out=3), {"fields.left_out": "warning"}),
        (None, {}),
    ],
)
def test_what_could_not_be_counted_is_said(counts: Any, found: dict[str, str]) -> None:
    known = facts({}, {"fields": counts}, body=LETTER + "{{ city }}")
    assert codes(people_checks.fields(known)) == found


@pytest.mark.parametrize(
    ("people", "usual", "found"),
    [
        (0, (), {"audience.empty": "error"}),
        (1, (), {}),
        (10_000, (10, 10), {}),
        (101, (10, 10, 10), {"audience.unusual": "warning"}),
        (100, (10, 10, 10), {}),
        (101, (10, 11, 5000), {}),
        (11, (0, 0, 0), {"audience.unusual": "warning"}),
    ],
)
def test_audiences(people: int, usual: tuple[int, ...], found: dict[str, str]) -> None:
    known = facts(known={"audience": Audience(addressed=people), "usual": usual})
    assert codes(people_checks.audience(known)) == found


@pytest.mark.parametrize(
    ("audience", "why"),
    [
        (Audience(), "Nobody who has confirmed is in its segments."),
        (Audience(addressed=3, suppressed=2, paused=1), "Of 3 people in its segments: 2 sup"),
        (Audience(included=(Share(Segment(), 4),)), "The excluded segments take everybody away."),
    ],
)  # fmt: skip
def test_why_nobody_would_get_it(audience: Audience, why: str) -> None:
    (found,) = people_checks.audience(facts(known={"audience": audience}))
    assert found.detail.startswith(why)


def test_without_a_segment_that_alone_is_said() -> None:
    known = facts(known={"has_segments": False, "audience": Audience()})
    assert codes(people_checks.audience(known)) == {"audience.no_segment": "error"}


@pytest.mark.parametrize(
    ("address", "others", "found"),
    [
        ("", (), {}),
        ("other@example.org", (), {}),
        ("other@EXAMPLE.org", (), {}),
        ("a@news.example.org", (), {"sender.domain": "error"}),
        ("a@news.example.org", ("news.example.org",), {}),
        ("a@bücher.example", ("xn--bcher-kva.example",), {}),
        ("a@i\u2764.ws", ("xn--i-7iq.ws",), {}),
        ("a@gmail.com", ("gmail.com",), {"sender.freemail": "warning"}),
        ("a@yahoo.co.uk", (), {"sender.domain": "error", "sender.freemail": "warning"}),
        ("a@yahoo.example.org", ("yahoo.example.org",), {}),
        ("a@live.de", ("live.de",), {"sender.freemail": "warning"}),
    ],
)
def test_senders(address: str, others: tuple[str, ...], found: dict[str, str]) -> None:
    known = facts(known={"other_domains": others}, from_email=address)
    assert codes(sender_checks.sender(known)) == found


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (TransportState(), {}),
        (TransportState(is_known=False), {"transport.unknown": "warning"}),
        (TransportState(problem="It can't be reached."), {"transport.paused": "warning"}),
    ],
)
def test_transports(state: TransportState, found: dict[str, str]) -> None:
    assert codes(sender_checks.transport(facts(known={"transport_state": state}))) == found


@pytest.mark.parametrize(
    ("url", "known", "found"),
    [
        ("https://www.example.org", {}, {}),
        ("http://www.example.org", {}, {"system_links.http": "warning"}),
        ("http://127.0.0.1:8000", {}, {"system_links.local": "error"}),
        ("http://127.0.0.1:8000", {"is_debug": True}, {}),
        (
            "http://127.0.0.1:8000",
            {"transport_state": TransportState(stays_here=True)},
            {"system_links.local": "warning"},
        ),
    ],
)
def test_the_site_s_own_address(url: str, known: dict[str, Any], found: dict[str, str]) -> None:
    linked = LETTER + f'<a href="{url}/sendonce/x">x</a>'
    seen = facts(known={"base_url": url, **known}, body=linked)
    assert codes(link_checks.system_links(seen)) == found
    assert codes(link_checks.links(seen)) == {}


@pytest.mark.parametrize(
    ("url", "known", "found"),
    [
        ("http://127.0.0.1:8000/i/1.png", {"is_debug": True}, {"image.local": "warning"}),
        ("http://127.0.0.1:8000/i/1.png", {}, {}),  # the check of the site's address says it
        ("http://127.0.0.1:9000/i/1.png", {"is_debug": True}, {"image.local": "error"}),
        ("https://www.example.org/1.png", {"is_debug": True}, {}),
    ],
)
def test_debug_tells_of_the_site_s_images(
    url: str, known: dict[str, Any], found: dict[str, str]
) -> None:
    body = f'{LETTER}<img src="{url}" alt="">'
    seen = facts(known={"base_url": "http://127.0.0.1:8000", **known}, body=body)
    assert codes(link_checks.images(seen)) == found
    for each in link_checks.images(seen):
        assert (each.field, each.line, each.column) == ("body", 1, len(LETTER) + 11)


def test_debug_excuses_the_site_s_links_alone() -> None:
    known = {"base_url": "http://127.0.0.1:8000", "is_debug": True}
    for url in ("http://127.0.0.1:80001/", "http://127.0.0.1/", "http://localhost:8000/"):
        body = f'{LETTER}<a href="{url}">x</a>'
        assert "error" in codes(link_checks.links(facts(known=known, body=body))).values()


@pytest.mark.parametrize(
    ("start", "found"),
    [(NOW, {}), (NOW - timedelta(seconds=59), {}), (NOW + HOUR, {}),
     (NOW - timedelta(seconds=61), {"schedule.past": "error"})],
)  # fmt: skip
def test_schedules(start: Any, found: dict[str, str]) -> None:
    assert codes(timing_checks.schedule(facts(known={"start": start}))) == found


@pytest.mark.parametrize(
    ("by", "seconds", "found"),
    [
        (None, 1e9, {}),
        (NOW + HOUR, 3600, {}),
        (NOW + HOUR, 3601, {"finish.late": "warning"}),
        (NOW + HOUR, 1e300, {"finish.late": "warning"}),
        (NOW + HOUR, None, {"finish.unknown": "warning"}),
        (NOW, 1, {"finish.before_start": "error"}),
        (NOW - HOUR, None, {"finish.before_start": "error"}),
    ],
)
def test_done_in_time(by: Any, seconds: float | None, found: dict[str, str]) -> None:
    known = {"finish_by": by, "duration": Duration(seconds, "", "So long.")}
    assert codes(timing_checks.finish(facts(known=known))) == found


def test_the_reckoned_end_is_told_in_the_account_s_zone() -> None:
    duration = Duration(7200, "account Example", "About 2 hours at least.")
    known = {"finish_by": NOW + HOUR, "duration": duration, "zone": "Europe/Paris"}
    (found,) = timing_checks.finish(facts(known=known))
    assert found.title == (
        "It will be done about 1 May 2030, 16:00 (Europe/Paris), not by "
        "1 May 2030, 15:00 (Europe/Paris)"
    )
    assert found.detail == "About 2 hours at least."


@pytest.mark.parametrize(
    ("subject", "shares", "told"),
    [
        (True, False, "went out on 1 May 2030, 11:00 (UTC), with the same subject and body"),
        (False, True, "went out on 1 May 2030, 11:00 (UTC), with the same body, to people who got"),
        (False, False, None),
    ],
)
def test_duplicates(subject: bool, shares: bool, told: str | None) -> None:
    known = facts(known={"alike": (Alike("May", NOW - HOUR, subject, shares, started=True),)})
    found = timing_checks.duplicate(known)
    assert bool(found) == (told is not None)
    assert told is None or told in found[0].title


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (NOW - HOUR, "is approved, due since 1 May 2030, 11:00 (UTC), with the same body"),
        (NOW + HOUR, "is approved, to start on 1 May 2030, 13:00 (UTC), with the same body"),
    ],
)
def test_what_waits_for_a_sender_did_not_go_out(start: datetime, told: str) -> None:
    known = facts(known={"alike": (Alike("May", start, False, True, started=False),)})
    (found,) = timing_checks.duplicate(known)
    assert f"{told}, to people who get it too" in found.title


def test_a_refusal_names_the_errors_in_one_sentence() -> None:
    errors = [Finding("a", "error", f"The part {n} is wrong") for n in range(7)]
    warning = Finding("w", "warning", "Not told")
    failed = PreflightFailed(Report((Check("a", "A", (warning, *errors)),)))
    told = "; ".join(f"the part {n} is wrong" for n in range(5))
    assert str(failed) == f"{told}; and 2 more"
    assert str(PreflightFailed(Report((Check("a", "A", tuple(errors[:1])),)))) == (
        "the part 0 is wrong"
    )
