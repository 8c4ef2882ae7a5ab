"""An import into a segment, and what became of the people in the file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from subscribers.importing import ImportReport, Options, import_file
from subscribers.models import Account, ImportJob, ImportReject, ImportRow, Segment, Subscriber
from tests.factories import SegmentFactory

Status = Subscriber.Status

_OPTIONS = {"confirmed", "existing", "consent_source", "encoding", "delimiter", "atomic"}


@pytest.fixture
def segment() -> Segment:
    return SegmentFactory.create()


@pytest.fixture
def account(segment: Segment) -> Account:
    return segment.account


def load(text: str | bytes | Path, segment: Segment, **given: Any) -> ImportReport:
    """Import a file's text (or a file) into the segment; ``given``: options, and what
    ``import_file`` takes."""
    data = text.encode() if isinstance(text, str) else text
    options = Options(**{k: v for k, v in given.items() if k in _OPTIONS})
    report = import_file(
        data if isinstance(data, Path) else io.BytesIO(data),
        account=segment.account,
        segment=segment,
        options=options,
        **{k: v for k, v in given.items() if k not in _OPTIONS},
    )
    assert report.rows == (
        report.imported
        + report.updated
        + report.unchanged
        + report.unsubscribed
        + report.duplicates
        + report.rejected
    )
    assert not ImportRow.objects.exists()
    return report


def counts(report: ImportReport) -> dict[str, int]:
    apart = {"rows", "job_id"}
    return {k: v for k, v in vars(report).items() if type(v) is int and v and k not in apart}


def members(segment: Segment) -> set[str]:
    return set(segment.memberships.filter(left_at=None).values_list("subscriber__email", flat=True))


def outcome(job: ImportJob) -> dict[str, Any]:
    """All that an import has left behind, without ids and times: to compare two of them."""
    people = Subscriber.objects.filter(account=job.account_id).order_by("email_lower")
    return {
        "counts": job.counts,
        "status": job.status,
        "people": list(
            people.values_list("email", "status", "attributes", "locale", "consent_source")
        ),
        "members": sorted(
            job.account.segments.filter(memberships__left_at=None)
            .exclude(memberships=None)
            .values_list("slug", "memberships__subscriber__email")
        ),
        "suppressed": sorted(
            job.account.suppressions.exclude(email=None).values_list("email", "reason", "evidence")
        ),
        "rejects": list(
            ImportReject.objects.filter(job=job)
            .order_by("line")
            .values_list("line", "reason", "cells")
        ),
        "definitions": sorted(job.account.attribute_definitions.values_list("key", "kind")),
        "staged": ImportRow.objects.filter(job=job.pk).count(),
    }
