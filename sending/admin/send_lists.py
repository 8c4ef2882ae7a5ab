"""Pages of the list of sends, of a table of tens of millions without an index for its order.

The list is in the order of ``ORDERING``: a campaign's rows stand together, so that it is a chain of
runs, each of which an index has in order: (campaign, id), or a partial index of a status, or
(account, id) of messages without a campaign. How many rows of each run are to be shown is counted
along the chain until the pages end (``paging.LIMIT``), in one statement and so of one moment; a
page is then cut from the few runs that it touches. It shows what the plain query would; campaigns
and accounts without a row in question are passed over by one look at an index each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Page
from django.db import connection
from django.db.models import F, QuerySet, Sum
from django.http import HttpRequest

from campaigns.models import Campaign
from subscribers.models import Account
from subscribers.paging import AtLeast, BoundedPaginator
from subscribers.scoping import account_ids, as_id

from .. import counters
from ..models import ArchivedCount, Send
from ..sql import send_lists as statements

#: Newest campaign first, messages without one last; the latest row of each first.
ORDERING = (F("campaign_id").desc(nulls_last=True), "-account_id", "-pk")
#: Rows that a search finds all over the table, and that are then sorted; of more than these there
#: are some in the runs soon.
FEW = 20_000
_FEW = "_sendonce_few_found"
#: Chosen as the campaign: the messages without one.
SINGLE = "none"
#: What a query string says beside what is looked for.
_ABOUT_THE_PAGE = frozenset({"p", "all", "o", "q", "_changelist_filters", "_popup"})


@dataclass(frozen=True, slots=True)
class Scope:
    """Which runs there can be: the accounts whose rows are shown (``None``: all), the campaign that
    was chosen. ``single``: messages without one alone. ``searched``: an address is looked for.
    ``only_sent``: the status is all that is asked for, and it is this one, the only one that no
    index is about."""

    accounts: list[int] | None
    campaign: int | None = None
    searched: bool = False
    only_sent: bool = False
    single: bool = False


def note_few(request: HttpRequest, found: QuerySet[Any]) -> None:
    """Whether a search finds so few in the whole table, by its index, that the list of the request
    is in no need of runs."""
    setattr(request, _FEW, found[: FEW + 1].count() <= FEW)


def scope(request: HttpRequest) -> Scope | None:
    """Of a request for the list; ``None`` where the rows are few and known."""
    if getattr(request, _FEW, False):
        return None
    accounts, asked = account_ids(request), as_id(request.GET.get("account", ""))
    if asked is not None:
        accounts = [asked] if accounts is None or asked in accounts else []
    given = {name for name in request.GET if name not in _ABOUT_THE_PAGE}
    searched = bool(request.GET.get("q"))
    only_sent = (
        not searched
        and given - {"account", "campaign"} == {"status__exact"}
        and request.GET.getlist("status__exact") == [Send.Status.SENT]
    )
    campaign = request.GET.get("campaign", "")
    return Scope(accounts, as_id(campaign), searched, only_sent, single=campaign == SINGLE)


@dataclass(frozen=True, slots=True)
class Run:
    """``rows`` of one campaign, or of an account's messages without one."""

    of: str
    id: int
    rows: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows ``start`` to ``stop`` of a run."""

    run: Run
    start: int
    stop: int

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.stop == self.run.rows


def cut(runs: Sequence[Run], bottom: int, top: int) -> Iterator[Cut]:
    """What the rows ``bottom`` to ``top`` of the chain are made of, in its order."""
    before = 0
    for run in runs:
        start, stop = max(bottom - before, 0), min(top - before, run.rows)
        if start < stop:
            yield Cut(run, start, stop)
        before += run.rows
        if before >= top:
            return


class Runs:
    """The chain: the rows of ``rows``, a queryset of sends, as far as ``most`` of them."""

    def __init__(self, rows: QuerySet[Any], scope: Scope, most: int) -> None:
        self._rows, self._scope, self._most = rows, scope, most

    @cached_property
    def _all(self) -> list[Run]:
        found = []
        if not self._scope.single:
            found = self._counted("campaign_id", Campaign, self._rows, self._most)
        left = self._most - sum(run.rows for run in found)
        if left > 0 and self._scope.campaign is None:
            single = self._rows.filter(campaign__isnull=True)
            found += self._counted("account_id", Account, single, left)
        return found

    def __len__(self) -> int:
        """How many there are, ``most`` or a few more at most."""
        return sum(run.rows for run in self._all)

    def slice(self, bottom: int, top: int) -> list[Any]:
        """The rows at these places. Fewer where some left the list since they were counted."""
        shown: list[Any] = []
        together: list[Cut] = []
        for part in cut(self._all, bottom, top):
            if together and not (part.whole and part.run.of == together[0].run.of):
                shown += self._whole(together)
                together = []
            if part.whole:
                together.append(part)
            else:
                shown += self._part(part)
        return shown + self._whole(together)

    def _whole(self, parts: list[Cut]) -> list[Any]:
        """Runs that are shown from end to end, a page's worth at most, in one statement."""
        if len(parts) < 2:
            return self._part(parts[0]) if parts else []
        lookup, ids = parts[0].run.of, [part.run.id for part in parts]
        rows = self._rows.filter(**{f"{lookup}__in": ids})
        if lookup != "campaign_id":
            rows = rows.filter(campaign__isnull=True)
        # A sum has no index, and so none is read for its order where the ids lead to few rows.
        rows = rows.order_by((F(lookup) + 0).desc(), "-pk")
        return list(rows[: sum(part.run.rows for part in parts)])

    def _part(self, part: Cut) -> list[Any]:
        key, lookup = part.run.id, part.run.of
        # Equal, but said so that only an index that begins with it has the order: for the rows of
        # a large campaign, or of one that it knows nothing of, the planner would rather read the
        # table by its key.
        rows = self._rows.filter(**{f"{lookup}__gte": key, f"{lookup}__lte": key})
        rows = rows.order_by(f"-{lookup}", "-pk")
        if lookup != "campaign_id":
            rows = rows.filter(campaign__isnull=True)
        elif self._scope.only_sent:
            sent = _sent_at_the_beginning(key)
            if sent is not None:
                upwards = rows.reverse()[max(sent - part.stop, 0) : max(sent - part.start, 0)]
                return list(upwards)[::-1]
        return list(rows[part.start : part.stop])

    def _counted(self, lookup: str, of: type[Any], rows: QuerySet[Any], most: int) -> list[Run]:
        """The runs of ``of``, latest first, of which there are rows; ``most`` rows of each."""
        column = f'"{Send._meta.db_table}"."{lookup}"'
        own = f"{column} = c.id"
        if not self._scope.searched:
            # Equal, too; but of "=" the planner thinks that every campaign is like the average one,
            # and may read the table. A search has an index of addresses, which takes only "=".
            own = f"{column} >= c.id AND {column} <= c.id"
        try:
            inner, values = (
                rows.order_by().extra(where=[own]).values("pk")[:most].query.sql_with_params()
            )
        except EmptyResultSet:
            return []
        where = ""
        parameters: list[Any] = []
        if self._scope.accounts is not None:
            where += f" AND c.{'account_id' if of is Campaign else 'id'} = ANY(%s::bigint[])"
            parameters.append(self._scope.accounts)
        if self._scope.campaign is not None:
            where += " AND c.id = %s"
            parameters.append(self._scope.campaign)
        first, number = "", statements.COUNTED.format(rows=inner)
        if self._scope.only_sent and of is Campaign:
            first, number, values = statements.LATELY, statements.SENT, (most,)
        statement = statements.RUNS.format(
            first=first, table=of._meta.db_table, where=where, number=number
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [*parameters, *values, most])
            return [Run(lookup, key, found) for key, found in cursor.fetchall()]


def _sent_at_the_beginning(campaign_id: int) -> int | None:
    """How many rows of a campaign were sent, if fewer than still wait: rows are sent in the order
    of their ids, nearly, so that these are found from the other end."""
    found = counters.by_status(campaign_id)
    if found[Send.Status.QUEUED] <= found[Send.Status.SENT]:
        return None
    archived = ArchivedCount.objects.filter(campaign=campaign_id, status=Send.Status.SENT)
    return found[Send.Status.SENT] - (archived.aggregate(n=Sum("number"))["n"] or 0)


class RunsPaginator(BoundedPaginator):
    """Pages of the chain; without a ``scope``, of the queryset as it is."""

    scope: Scope | None = None

    @cached_property
    def runs(self) -> Runs | None:
        rows: Any = self.object_list
        if self.scope is None or not hasattr(rows, "query"):
            return None
        return Runs(rows, self.scope, self.limit + 1)

    @cached_property
    def count(self) -> int:
        if self.runs is None:
            return super().count
        found = len(self.runs)
        return AtLeast(self.limit) if found > self.limit else found

    def page(self, number: Any) -> Any:
        if self.runs is None:
            return super().page(number)
        number = self.validate_number(number)
        bottom = (number - 1) * self.per_page
        top = min(bottom + self.per_page, int(self.count))
        return Page(self.runs.slice(bottom, top), number, self)


class RunsChangeList(ChangeList):
    """Takes what one page shows from the paginator, too."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        runs = getattr(self.paginator, "runs", None)
        if runs is not None and (self.show_all or not self.multi_page):
            limit = self.result_count if self.can_show_all else self.list_per_page
            self.result_list = runs.slice(0, limit)
