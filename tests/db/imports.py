"""An import into a segment, and what became of the people in the file."""

from __future__ import annotations

import io
from typing import Any

import pytest

from subscribers.importing import ImportReport, import_csv
from subscribers.models import Account, Segment, Subscriber
from tests.factories import SegmentFactory

Status = Subscriber.Status


@pytest.fixture
def segment() -> Segment:
    return SegmentFactory.create()


@pytest.fixture
def account(segment: Segment) -> Account:
    return segment.account


def load(text: str | bytes, segment: Segment, **options: Any) -> ImportReport:
    data = text.encode() if isinstance(text, str) else text
    report = import_csv(io.BytesIO(data), account=segment.account, segment=segment, **options)
    assert report.rows == (
        report.imported
        + report.updated
        + report.unchanged
        + report.unsubscribed
        + report.duplicates
        + report.rejected
    )
    return report


def counts(report: ImportReport) -> dict[str, int]:
    return {k: v for k, v in vars(report).items() if type(v) is int and v and k != "rows"}


def members(segment: Segment) -> set[str]:
    return set(segment.memberships.filter(left_at=None).values_list("subscriber__email", flat=True))
