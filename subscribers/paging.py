"""Pages of tables too big to count."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Paginator

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
