"""Outcomes that a crash of the database has lost, and the journal that keeps them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from sending.settle import Journal, not_written, settle

from .rows import campaign_to, held, row, told
from .settled import OTHERS


@pytest.mark.django_db
def test_the_journal_forgets_what_was_kept_before_a_durable_commit() -> None:
    send = row(campaign_to(0), "sending")
    journal = Journal()
    early, late = told(held(send), "sent"), told(held(send), "failed")
    journal.keep([early])
    before = journal.kept()
    journal.keep([late])
    journal.forget(before)
    assert journal.kept() == [late]
    journal.forget(before)
    assert journal.kept() == [late], "two beats at once forget nothing that neither has looked at"


MINE = uuid.UUID("0ddba115-0000-4000-8000-000000000002")
#: (state of the row, where the hand-over's token is in it) -> outcomes that are lost then.
LOST_WHEN: dict[tuple[str, str], set[str]] = {
    # The row stands where the hand-over left it: whatever was written is gone.
    ("sending", "claim"): {"sent", *OTHERS},
    # Rescued since, or in doubt as it was told.
    ("in_doubt", "claim"): {"sent", "retry", "bounced", "failed"},
    # Claimed or handed over anew: the outcome that let it go was written.
    ("claimed", "elsewhere"): set(),
    ("sending", "elsewhere"): set(),
    ("in_doubt", "elsewhere"): set(),
    # Sent again after doubt: only an acceptance speaks of the earlier hand-over.
    ("queued", "doubt"): {"sent"},
    ("claimed", "doubt"): {"sent"},
    ("sending", "doubt"): {"sent"},
    ("retry", "doubt"): {"sent"},
    ("failed", "doubt"): {"sent"},
    # Written; a row that is sent keeps its token.
    ("sent", "claim"): set(),
    ("sent", "doubt"): set(),
    ("retry", "elsewhere"): set(),
    ("bounced", "elsewhere"): set(),
    ("failed", "elsewhere"): set(),
    ("canceled", "elsewhere"): set(),
}


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize(("state", "place"), LOST_WHEN)
def test_which_outcomes_the_ledger_does_not_show(state: str, place: str, outcome: str) -> None:
    fields: dict[str, Any] = {"doubt_tokens": [MINE] if place == "doubt" else []}
    if place == "claim":
        fields["claim_token"] = MINE
    send = row(campaign_to(0), state, **fields)
    said = told(held(send, token=MINE), outcome)
    lost = outcome in LOST_WHEN[state, place]
    assert not_written([said]) == ([said] if lost else [])
    # What counts as lost can be written, and is then lost no more: the beat comes to an end.
    if lost:
        assert settle([said], doubt_wait=0)
        assert not_written([said]) == []


@pytest.mark.django_db
def test_what_is_lost_is_found_among_the_rest_in_its_order() -> None:
    campaign = campaign_to(0)
    written, lost, gone = (row(campaign, "sending") for _ in range(3))
    lot = [told(held(s), "sent") for s in (lost, written, gone)]
    lot.append(told(held(lost), "in_doubt"))
    settle([lot[1]], doubt_wait=0)
    gone.delete()
    assert not_written(lot) == [lot[0], lot[3]]
    assert not_written([]) == []
