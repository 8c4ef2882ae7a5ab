"""What became of an import, and how far one has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..models import ImportJob

ERASED = "This person was erased on request; only their own new sign-up brings them back."
MOVED = "This person has another address now; only their own new sign-up brings this one back."
REFUSED = (ERASED, MOVED)
SEGMENT_GONE = "The segment was deleted meanwhile."

#: Kept in ``ImportJob.counts`` under these names, added up chunk by chunk. ``erased``: refused when
#: they were to be written, for one of ``REFUSED``.
APPLIED = ("imported", "updated", "unchanged", "unsubscribed", "duplicates", "erased")
ALSO = ("suppressed", "pending")


class ImportStopped(Exception):
    """An import that stopped halfway and can go on; the message says what is in."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far an import is: bytes while the file is read, then rows while they are written.
    ``total`` 0: not known."""

    phase: Literal["reading", "writing"]
    done: int
    total: int
    #: Rows of the file read so far.
    rows: int


Progress = Callable[[Step], object]


@dataclass
class ImportReport:
    """What became of the rows. Each row is counted in one of ``imported``, ``updated``,
    ``unchanged``, ``unsubscribed``, ``duplicates`` and ``rejected``; they add up to ``rows``
    when the import has ended.
    """

    rows: int = 0
    #: New subscribers.
    imported: int = 0
    #: Known ones of whom something changed, the segment included.
    updated: int = 0
    unchanged: int = 0
    #: Known ones who had unsubscribed: left as they were.
    unsubscribed: int = 0
    #: Rows whose address comes again further down; the last one counts.
    duplicates: int = 0
    rejected: int = 0
    #: Of the people in the file, those who get no mail because their address is suppressed.
    suppressed: int = 0
    #: Of the new ones, those who must confirm first.
    pending: int = 0
    #: The commonest reasons of rejects without the rows' values, and how many rows have each; told
    #: by ``import_file``.
    reasons: list[tuple[str, int]] = field(default_factory=list)
    reject_file: Path | None = None
    dry_run: bool = False
    #: ``ImportJob``'s; ``None`` for a dry run.
    job_id: int | None = None
    #: Names of the columns that are attributes, and of those that were passed over.
    attributes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    #: How the file was read, in sentences.
    notes: list[str] = field(default_factory=list)


def report(job: ImportJob) -> ImportReport:
    """The report of a job so far, from its row alone."""
    counts: dict[str, Any] = job.counts
    return ImportReport(
        **{name: counts.get(name, 0) for name in (*APPLIED, *ALSO) if name != "erased"},
        rows=counts.get("rows", 0),
        rejected=counts.get("bad", 0) + counts.get("erased", 0),
        job_id=job.pk,
        attributes=counts.get("attributes", []),
        ignored=counts.get("ignored", []),
        notes=counts.get("notes", []),
    )


def step(job: ImportJob) -> Step:
    """How far a job is, from its row alone."""
    rows = job.counts.get("rows", 0)
    if job.staged_at is None:
        return Step("reading", job.bytes_read, job.file_size, rows)
    return Step("writing", applied(job.counts), rows - job.counts.get("bad", 0), rows)


def applied(counts: dict[str, Any]) -> int:
    """Good rows that are dealt with."""
    return sum(counts.get(name, 0) for name in APPLIED)


def in_words(job: ImportJob) -> str:
    """What of an import that did not come to its end is in; blank: nothing."""
    now = step(job)
    if now.phase == "reading" or not now.done:
        return ""
    counts = job.counts
    return (
        f"{now.done} of {now.total} rows are dealt with "
        f"(imported {counts.get('imported', 0)}, updated {counts.get('updated', 0)})"
    )
