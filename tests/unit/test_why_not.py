"""Why somebody did not get a campaign: a sentence for every reason that there is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sending.models import Send
from sending.story import Chapter
from sending.why_not import Block, Facts, Place, sentence

ZONE = ZoneInfo("Europe/Berlin")
START = datetime(2026, 5, 1, 8, tzinfo=UTC)
COUNTED = START + timedelta(minutes=1)
BEFORE, AFTER = START - timedelta(days=2), START + timedelta(days=2)
NOW = START + timedelta(days=5)

#: A confirmed person whom nothing hinders, and a campaign that was sent without them.
PLAIN = Facts(
    campaign="Spring",
    status="sent",
    now=NOW,
    starts=START,
    started=START,
    counted=COUNTED,
    person="confirmed",
    added=BEFORE,
    confirmed=BEFORE,
    segments=["Friends", "Members"],
    places=[Place("Friends", BEFORE)],
)


def chapter(status: str, reason: str = "", **more: Any) -> Chapter:
    given: dict[str, Any] = {
        "send": 1, "account": "shop", "campaign": 1, "name": "Spring", "campaign_status": "sent",
        "status": status, "reason": reason, "attempts": 1, "handed_at": START, "sent_at": None,
        "next_attempt_at": None, "settle_at": None, "replay_until": None, "replays": 0,
        "answer_code": None, "answer": "", "waits": "", "limit": "", "events": [],
    }  # fmt: skip
    return Chapter(**{**given, **more})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (replace(PLAIN, status="draft", started=None, counted=None),
         "Not yet: the campaign is a draft."),
        (replace(PLAIN, status="approved", started=None, counted=None),
         "Not yet: the campaign starts on 1 May 2026, 10:00, and who gets it is counted then."),
        (replace(PLAIN, status="canceled", started=None, counted=None),
         "They did not get it: the campaign was canceled before it started."),
        (replace(PLAIN, status="canceled", counted=None),
         "They did not get it: the campaign was canceled before its audience was counted whole."),
        (replace(PLAIN, status="sending", counted=None),
         "Not yet: who gets the campaign is still being counted."),
        (replace(PLAIN, status="sending", counted=None, person="pending"),
         "Not yet: who gets the campaign is still being counted. As of now they would not: they "
         "have not confirmed their subscription."),
        (replace(PLAIN, person=""),
         "They did not get it: nobody in this account has the address, or they were deleted "
         "since."),
        (replace(PLAIN, person="", erased=AFTER),
         "They did not get it: the person was erased on 3 May 2026, 10:00."),
        (replace(PLAIN, added=AFTER),
         "They did not get it: they were added on 3 May 2026, 10:00, after the audience was "
         "counted on 1 May 2026, 10:01."),
        (replace(PLAIN, person="pending"),
         "They did not get it: they have not confirmed their subscription."),
        (replace(PLAIN, confirmed=AFTER),
         "They did not get it: they confirmed their subscription on 3 May 2026, 10:00, after the "
         "audience was counted on 1 May 2026, 10:01."),
        (replace(PLAIN, person="unsubscribed", unsubscribed=BEFORE),
         "They did not get it: they unsubscribed on 29 Apr 2026, 10:00."),
        (replace(PLAIN, excluded=[Place("Press", BEFORE)]),
         "They did not get it: they are in Press, which the campaign leaves out."),
        (replace(PLAIN, places=[]),
         "They did not get it: they are in none of the campaign's segments (Friends, Members)."),
        (replace(PLAIN, places=[Place("Friends", AFTER)]),
         "They did not get it: they joined Friends on 3 May 2026, 10:00, after the audience was "
         "counted on 1 May 2026, 10:01."),
        (replace(PLAIN, places=[Place("Friends", BEFORE - timedelta(days=1), BEFORE)]),
         "They did not get it: they left Friends on 29 Apr 2026, 10:00, before the audience was "
         "counted."),
        (replace(PLAIN, archived=True),
         "Nobody knows any more: the campaign is so old that who got it was made counts."),
        (replace(PLAIN, archived=True, places=[]),
         "Nobody knows any more: the campaign is so old that who got it was made counts. What "
         "speaks against it: they are in none of the campaign's segments (Friends, Members)."),
    ],
)  # fmt: skip
def test_without_a_row(facts: Facts, words: str) -> None:
    assert sentence(facts, ZONE) == words


@pytest.mark.parametrize(
    "facts",
    [
        PLAIN,
        replace(PLAIN, person="unsubscribed", unsubscribed=AFTER),
        replace(PLAIN, places=[Place("Friends", BEFORE, AFTER)]),
        replace(PLAIN, excluded=[Place("Press", AFTER)]),
    ],
    ids=["nothing", "unsubscribed-later", "left-later", "excluded-later"],
)
def test_what_came_later_is_not_given_as_the_reason(facts: Facts) -> None:
    told = sentence(facts, ZONE)
    assert "Nothing that is known today says why" in told


@pytest.mark.parametrize(
    ("row", "more", "words"),
    [
        (chapter("sent", sent_at=START), {},
         "It was sent to them. The relay accepted it at 1 May 2026, 10:00:00."),
        (chapter("sent", "treated_as_sent"), {}, "Perhaps. Nobody knows whether it arrived"),
        (chapter("queued", waits="the campaign is paused", campaign_status="paused"), {},
         "Not yet. It waits, because the campaign is paused."),
        (chapter("claimed"), {}, "Not yet. A sender has taken it"),
        (chapter("sending"), {}, "Not yet. It was handed over this moment"),
        (chapter("retry", "transient", next_attempt_at=NOW), {}, "Not yet. Refused for now, once"),
        (chapter("bounced", "address_dead", answer="550 no such user"), {},
         "They did not get it. The address is dead (address dead): 550 no such user."),
        (chapter("failed", "policy"), {}, "They did not get it. Refused (policy), once."),
        (chapter("in_doubt", "timeout"), {}, "Nobody knows whether they got it. Handed over and no "
         "answer came (timeout); it may have arrived. It is held"),
        # What is our own word for it is said once.
        (chapter("in_doubt", "connection_lost", answer="connection lost"), {},
         "Nobody knows whether they got it. Handed over and no answer came (connection lost); it "
         "may have arrived. It is held"),
        (chapter("in_doubt", "timeout", answer="timed out"), {},
         "Nobody knows whether they got it. Handed over and no answer came (timed out); it may "
         "have arrived. It is held"),
        (chapter("canceled"), {}, "They did not get it. The campaign was canceled"),
        (chapter("suppressed", "suppressed"), {"blocks": [Block("complained", BEFORE)]},
         "They did not get it. Not handed over: the address is suppressed since 29 Apr 2026, 10:00 "
         "(complained)."),
        (chapter("suppressed", "suppressed"), {"blocks": [Block("", BEFORE, AFTER)]},
         "suppressed since 29 Apr 2026, 10:00, until 3 May 2026, 10:00."),
        (chapter("suppressed", "suppressed"), {"blocks": [Block("complained", AFTER)]},
         "the address was suppressed then; it is not any more."),
        (chapter("suppressed", "unsubscribed"), {"unsubscribed": START},
         "the person unsubscribed on 1 May 2026, 10:00, before it was their turn."),
        (chapter("suppressed", "left"), {"places": [Place("Friends", BEFORE, START)]},
         "left the campaign's segments on 1 May 2026, 10:00, before it was their turn."),
        (chapter("suppressed", "paused"), {}, "had paused their mail for a while."),
        (chapter("suppressed", "moved"), {}, "had changed their address"),
        (chapter("suppressed", "erased"), {"erased": START}, "was erased on 1 May 2026, 10:00."),
        (chapter("sent", sent_at=START), {"other_address": True},
         "(Under the address that they had then.)"),
    ],
)  # fmt: skip
def test_with_a_row(row: Chapter, more: dict[str, Any], words: str) -> None:
    facts = replace(PLAIN, chapter=row, chapter_at=START, **more)
    assert words in sentence(facts, ZONE)


def test_every_status_of_a_row_has_a_sentence() -> None:
    for status in Send.Status:
        told = sentence(replace(PLAIN, chapter=chapter(status)), ZONE)
        assert told.count(". ") >= 1 or told.endswith(".")
        assert "_" not in told


def test_a_place_is_held_from_joining_until_leaving() -> None:
    place = Place("Friends", START, AFTER)
    assert [place.held_at(moment) for moment in (BEFORE, START, COUNTED, AFTER)] == [
        False,
        True,
        True,
        False,
    ]
