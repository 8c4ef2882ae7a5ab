"""What a page says of an import, by its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from subscribers.importing import ImportReport, Step
from subscribers.importing.standing import outcome, standing
from subscribers.models import ImportJob

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
READING = Step("reading", 30, 100, 7)
WRITING = Step("writing", 30, 60, 61)


def job(**given: Any) -> ImportJob:
    return ImportJob(status="queued", **given)


@pytest.mark.parametrize(
    ("lease", "state"), [(None, "waiting"), (-1, "waiting"), (0, "waiting"), (1, "running")]
)
def test_it_runs_while_somebody_has_the_lease(lease: int | None, state: str) -> None:
    until = None if lease is None else NOW + timedelta(seconds=lease)
    found = standing(job(lease_until=until), READING, NOW)
    assert (found.state, found.is_open) == (state, True)


def test_without_its_file_only_its_command_goes_on() -> None:
    found = standing(job(), READING, NOW, has_file=False)
    assert (found.state, found.is_open) == ("stopped", True)
    assert "same command again" in found.advice
    running = job(lease_until=NOW + timedelta(seconds=1))
    assert standing(running, READING, NOW, has_file=False).state == "running"


@pytest.mark.parametrize(
    ("step", "share", "far"),
    [
        (Step("reading", 0, 0, 0), None, "0 rows read"),
        (Step("reading", 0, 100, 0), 0, "0 rows read"),
        (READING, 15, "7 rows read"),
        (Step("reading", 150, 100, 1), 50, "1 row read"),
        (WRITING, 75, "30 of 60 good rows written"),
        (Step("writing", 60, 60, 61), 100, "60 of 60 good rows written"),
        (Step("writing", 0, 0, 3), None, "0 of 0 good rows written"),
    ],
)
def test_how_far_it_is(step: Step, share: int | None, far: str) -> None:
    found = standing(job(), step, NOW)
    assert (found.share, found.far) == (share, far)


def test_screen_readers_are_told_by_tens() -> None:
    said = {standing(job(), Step("reading", n, 100, n), NOW).said for n in range(101)}
    assert len(said) == 6


@pytest.mark.parametrize("status", ["draft", "done", "failed", "canceled"])
def test_what_has_ended_is_not_followed(status: str) -> None:
    found = standing(ImportJob(status=status, lease_until=NOW + timedelta(1)), WRITING, NOW)
    assert (found.state, found.is_open) == (status, False)


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        (READING, "Nothing of it was imported."),
        (Step("writing", 0, 60, 61), "Nothing of it was imported."),
        (WRITING, "Nothing more of the file is imported. Who is in already stays."),
    ],
)
def test_a_canceled_one_says_what_is_in(step: Step, advice: str) -> None:
    assert standing(ImportJob(status="canceled"), step, NOW).advice == advice


def test_the_outcome_names_what_there_is_any_of() -> None:
    report = ImportReport(rows=6, imported=2, pending=1, duplicates=1, rejected=3)
    assert [(what, number) for what, number, _ in outcome(report)] == [
        ("new people", 2),
        ("repeated", 1),
        ("not taken", 3),
    ]
    assert "1 of them pending" in outcome(report)[0][2]
    assert outcome(ImportReport()) == []


@pytest.mark.parametrize(
    ("number", "said"), [(1, "a row with an error"), (2, "rows with an error")]
)
def test_one_row_is_not_called_rows(number: int, said: str) -> None:
    ((_, _, meaning),) = outcome(ImportReport(rows=number, rejected=number))
    assert meaning == f"{said}, listed below"
    ((_, _, meaning),) = outcome(ImportReport(rows=number, duplicates=number))
    assert meaning.startswith("a row whose" if number == 1 else "rows whose")
