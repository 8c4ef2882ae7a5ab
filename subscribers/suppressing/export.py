"""The suppression list as CSV, in the columns that its import reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from django.db.models import QuerySet

from ..models import Suppression
from ..tabular.guarding import guard
from .files import COLUMNS

_BATCH = 5000
_FIELDS = ("pk", "email", "reason", "evidence", "expires", "created", "account__slug")


def exportable(rows: QuerySet[Suppression]) -> QuerySet[Suppression]:
    """Of an erased person there is no address that could be exported."""
    return rows.exclude(reason=Suppression.Reason.ERASED)


def export_chunks(rows: QuerySet[Suppression]) -> Iterator[str]:
    """The entries as CSV with a header, oldest first; the account is blank in those for
    all accounts. Cells that a spreadsheet would compute are guarded.

    Read along the id in short statements: no transaction is open while the network is used.
    """
    yield _csv([COLUMNS])
    chosen = exportable(rows).order_by("pk").values_list(*_FIELDS)
    after = 0
    while batch := list(chosen.filter(pk__gt=after)[:_BATCH]):
        after = batch[-1][0]
        yield _csv(
            (
                email or "",
                reason,
                evidence,
                expires.isoformat() if expires else "",
                created.isoformat(),
                slug or "",
            )
            for _, email, reason, evidence, expires, created, slug in batch
        )


def _csv(rows: Iterable[Iterable[str]]) -> str:
    target = io.StringIO(newline="")
    csv.writer(target).writerows([guard(cell) for cell in row] for row in rows)
    return target.getvalue()
