"""An import in words: what state it is in, how far it has come, and what one can do now. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..models import ImportJob
from .report import ImportReport, Step

Status = ImportJob.Status


@dataclass(frozen=True, slots=True)
class Standing:
    """What the page says. ``share``: of the work in percent, ``None`` where it is not known."""

    state: str
    title: str
    advice: str
    share: int | None = None
    #: How far it is, in a sentence.
    far: str = ""
    #: For screen readers: changes only when there is something new to say.
    said: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in ("waiting", "running", "stopped")


def standing(job: ImportJob, step: Step, now: datetime, *, has_file: bool = True) -> Standing:
    """``now``: the database's clock, by which the lease runs. ``has_file``: what is left to do
    can be done by anybody, because the file is in the database or all of it is staged."""
    match job.status:
        case Status.DRAFT:
            return Standing(
                "draft", "Its columns have no meaning yet", "Nothing has been imported."
            )
        case Status.DONE:
            return Standing("done", "Done", "", 100, said="The import is done.")
        case Status.FAILED:
            return Standing(
                "failed",
                "It failed",
                "Mend the file, or choose other options, and import it again: people who are in "
                "already are found by their address and not added twice.",
                said="The import failed.",
            )
        case Status.CANCELED:
            return Standing(
                "canceled",
                "Canceled",
                "Nothing more of the file is imported. Who is in already stays."
                if step.phase == "writing" and step.done
                else "Nothing of it was imported.",
                said="The import is canceled.",
            )
    share, far = _how_far(step)
    if job.lease_until is not None and job.lease_until > now:
        return Standing(
            "running",
            "Running",
            "You can leave this page: it goes on without you.",
            share,
            far,
            said=f"Running, {_stage(step)}{_tens(share)}.",
        )
    if not has_file:
        return Standing(
            "stopped",
            "Stopped",
            "It was begun by a command that has the file, and the command has ended. Run the same "
            "command again: it goes on where it stopped.",
            share,
            far,
            said="The import has stopped.",
        )
    return Standing(
        "waiting",
        "Waiting",
        "Nobody works on it just now. A running sender takes it up by itself; if none runs, go on "
        "here, or have somebody run “manage.py run_imports”.",
        share,
        far,
        said=f"Waiting, {_stage(step)}{_tens(share)}.",
    )


def outcome(report: ImportReport) -> list[tuple[str, int, str]]:
    """``(what, how many, what that means)`` of everything that there is any of."""
    rows = (
        (
            "new people",
            report.imported,
            f"{report.pending:,} of them pending: no campaign before they have confirmed"
            if report.pending
            else "",
        ),
        ("updated", report.updated, "known people of whom something changed, or who joined"),
        ("unchanged", report.unchanged, "known people; the file says nothing new of them"),
        ("unsubscribed", report.unsubscribed, "had left for good, and stay so"),
        (
            "repeated",
            report.duplicates,
            "a row whose address comes again; the last one counts"
            if report.duplicates == 1
            else "rows whose address comes again; the last one counts",
        ),
        (
            "not taken",
            report.rejected,
            "a row with an error, listed below"
            if report.rejected == 1
            else "rows with an error, listed below",
        ),
    )
    return [row for row in rows if row[1]]


def _how_far(step: Step) -> tuple[int | None, str]:
    """Reading is the first half, writing the second."""
    part = min(step.done / step.total, 1.0) if step.total else None
    if step.phase == "reading":
        far = f"{step.rows:,} {'row' if step.rows == 1 else 'rows'} read"
        return (round(part * 50) if part is not None else None), far
    far = f"{step.done:,} of {step.total:,} good rows written"
    return (50 + round(part * 50) if part is not None else None), far


def _stage(step: Step) -> str:
    return "reading the file" if step.phase == "reading" else "writing people"


def _tens(share: int | None) -> str:
    return f", {share // 10 * 10} percent" if share is not None else ""
