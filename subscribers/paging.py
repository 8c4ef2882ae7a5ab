"""Pages of tables too big to count."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Paginator
from django.db.models import F

#: Rows that are counted, and so can be paged to. Whoever looks for more filters or searches:
#: counting ten million rows takes seconds, and so does an OFFSET of ten million.
LIMIT = 10_000


class AtLeast(int):
    """A number of rows that was not counted further; shown with a plus."""

    def __str__(self) -> str:
        return f"{int(self)}+"


class BoundedPaginator(Paginator):
    """Counts ``LIMIT`` rows at most; further pages do not exist."""

    limit = LIMIT

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        if not hasattr(rows, "query"):
            return len(rows)
        found = rows.order_by()[: self.limit + 1].count()
        return AtLeast(self.limit) if found > self.limit else found


class SortingPaginator(BoundedPaginator):
    """For lists by the id of rows that an index finds, but not in that order. All of them counted,
    they are read and sorted: to save that, the planner would go through the table from its end, for
    old ones to the other. Where there are more than are counted, some are met soon."""

    @cached_property
    def count(self) -> int:
        found = super().count
        rows: Any = self.object_list
        ordered = set(getattr(getattr(rows, "query", None), "order_by", ()))
        if not isinstance(found, AtLeast) and ordered and ordered <= {"-id", "-pk"}:
            # A sum has no index.
            self.object_list = rows.order_by((F("pk") + 0).desc())
        return found
