"""People who are suppressed, or are not, looked for a step at a time.

No index knows whom a suppression list reaches: it is another table, its entries end by the clock,
and the list for all accounts counts, too. So one page looks at ``LOOKED_AT`` rows at most: of the
list, latest entry first, for those who are suppressed; of the people, newest first, for those who
are not; of what a search finds, in its order, for either. Where there are more rows it says so, and
the next look begins where this one ended: nobody is out of reach, and no page takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Page
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest

from ..models import Subscriber, Suppression
from ..paging import BoundedPaginator
from ..scoping import account_ids, as_id
from ..suppressing.standing import on_a_list
from .parts import CountedChangeList

LOOKED_AT = 5_000
#: Accounts whose entries are read one account after another, each by its own index.
FEW_ACCOUNTS = 20
#: Beside ``suppressed`` in the address: the id from which on a look goes backwards.
BEFORE = "before"
_LOOK = "_sendonce_look"

_PEOPLE = f'"{Subscriber._meta.db_table}"'
_LIST = f'"{Suppression._meta.db_table}"'
_LATEST = (
    f"SELECT id, account_id, email_lower, expires FROM {_LIST} WHERE {{}} ORDER BY {{}} LIMIT %s"
)
#: ``OFFSET 0``: one look into the index for each entry. Joined, the planner may read all people.
_NAMED = f"""
WITH entries AS MATERIALIZED ({{entries}}),
live AS (SELECT * FROM entries WHERE expires IS NULL OR expires > statement_timestamp()),
named AS (
    SELECT s.id FROM live AS e CROSS JOIN LATERAL (
        SELECT p.id FROM {_PEOPLE} AS p
        WHERE p.account_id = e.account_id AND p.email_lower = e.email_lower OFFSET 0
    ) AS s
    UNION
    SELECT s.id FROM live AS e CROSS JOIN LATERAL (
        SELECT p.id FROM {_PEOPLE} AS p
        WHERE p.email_lower COLLATE "C" = e.email_lower COLLATE "C" OFFSET 0
    ) AS s WHERE e.account_id IS NULL
)
SELECT ARRAY(SELECT id FROM named), (SELECT count(*) FROM entries), (SELECT min(id) FROM entries)
"""
_LIVE = "(e.expires IS NULL OR e.expires > statement_timestamp())"
#: Two values and no EXISTS: that would become a join with all suppressions.
_ENTRY = f"""COALESCE(
    (SELECT e.id FROM {_LIST} AS e WHERE e.account_id = l.account_id
     AND e.email_lower = l.email_lower AND {_LIVE} LIMIT 1),
    (SELECT e.id FROM {_LIST} AS e WHERE e.account_id IS NULL
     AND e.email_lower = l.email_lower AND {_LIVE} LIMIT 1))"""
_LOOKED = f"""
WITH looked AS MATERIALIZED (SELECT *, row_number() OVER () AS place FROM ({{people}}) AS p)
SELECT
    ARRAY(SELECT l.id FROM looked AS l WHERE {_ENTRY} IS {{wanted}} ORDER BY l.place),
    (SELECT count(*) FROM looked), (SELECT min(id) FROM looked)
"""


@dataclass(frozen=True, slots=True)
class Look:
    """``found``: ids of people in the order of the list. ``further``: the row behind which the next
    look begins, ``None`` where this one came to the end. ``of``: what was looked at."""

    found: list[int]
    of: str
    further: int | None = None
    looked_at: int = 0
    before: int | None = None

    @property
    def told(self) -> str:
        """What the page says of it; empty: everybody was looked at."""
        if self.further is None and (self.before is None or self.of == "search"):
            return ""
        if self.of == "search":
            return (
                f"Only the first {self.looked_at:,} people whom the search finds were looked at: "
                "search for more of the address."
            )
        what = "entries of the suppression list" if self.of == "entries" else "people of this list"
        if self.before is None:
            latest = "latest" if self.of == "entries" else "newest"
            return f"Only the {latest} {self.looked_at:,} {what} were looked at."
        if not self.looked_at:
            return f"There are no further {what}."
        place = "last" if self.further is None else "next"
        return f"The {place} {self.looked_at:,} {what} were looked at."


def look(
    rows: QuerySet[Any], request: HttpRequest, *, suppressed: bool, before: int | None
) -> Look:
    """Of ``rows``, people in the order of their list, those who are suppressed or not."""
    if request.GET.get("q", "").strip():
        return _of_people(rows, "search", suppressed=suppressed, before=None)
    if suppressed:
        return _of_entries(rows, _accounts(request), before)
    return _of_people(rows, "people", suppressed=suppressed, before=before)


def _accounts(request: HttpRequest) -> list[int] | None:
    """Whose entries can reach somebody who is listed, beside those for all; ``None``: anybody's."""
    mine, asked = account_ids(request), as_id(request.GET.get("account", ""))
    if asked is None:
        return mine
    return [asked] if mine is None or asked in mine else []


def _of_entries(rows: QuerySet[Any], accounts: list[int] | None, before: int | None) -> Look:
    if accounts == []:
        return Look([], "entries", before=before)
    older = "" if before is None else " AND id < %s"
    bounds = ([] if before is None else [before]) + [LOOKED_AT]
    if accounts is None or len(accounts) > FEW_ACCOUNTS:
        whose = "TRUE" if accounts is None else "(account_id = ANY(%s) OR account_id IS NULL)"
        entries = _LATEST.format(whose + older, "id DESC")
        values: list[Any] = ([] if accounts is None else [accounts]) + bounds
    else:
        # Equal, but said so that only the index of an account's entries has the order: where they
        # are old ones, the planner would read the whole table for them, latest first.
        equal, order = "account_id >= %s AND account_id <= %s", "account_id, id DESC"
        each = [f"({_LATEST.format(equal + older, order)})"] * len(accounts)
        for_all = f"({_LATEST.format('account_id IS NULL' + older, order)})"
        entries = " UNION ALL ".join([*each, for_all]) + " ORDER BY id DESC LIMIT %s"
        values = [one for account in accounts for one in (account, account, *bounds)]
        values += [*bounds, LOOKED_AT]
    ids, looked_at, last = _asked(_NAMED.format(entries=entries), values)
    # Who they are was asked of the indexes; who of them is shown is the list's to say.
    found = list(among(rows, ids).values_list("pk", flat=True)) if ids else []
    return Look(found, "entries", last if looked_at == LOOKED_AT else None, looked_at, before)


def _of_people(rows: QuerySet[Any], of: str, *, suppressed: bool, before: int | None) -> Look:
    if before is not None:
        rows = rows.filter(pk__lt=before)
    try:
        inner = rows.values("id", "account_id", "email_lower")[:LOOKED_AT]
        people, values = inner.query.sql_with_params()
    except EmptyResultSet:
        return Look([], of, before=before)
    wanted = "NOT NULL" if suppressed else "NULL"
    found, looked_at, last = _asked(_LOOKED.format(people=people, wanted=wanted), values)
    return Look(found, of, last if looked_at == LOOKED_AT else None, looked_at, before)


def _asked(statement: str, values: Any) -> tuple[list[int], int, int | None]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: tuple[list[int], int, int | None] = cursor.fetchone()
    return found


def among(rows: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
    """As ``pk__in``, with one parameter for thousands of ids."""
    return rows.extra(where=[f"{_PEOPLE}.id = ANY(%s::bigint[])"], params=[ids])


class SuppressedFilter(admin.SimpleListFilter):
    """By itself it asks everybody; ``LookingChangeList`` looks in steps."""

    title = "suppressed"
    parameter_name = "suppressed"

    def __init__(self, request: HttpRequest, params: Any, *args: Any) -> None:
        self.before = as_id(params.pop(BEFORE, [""])[-1])
        super().__init__(request, params, *args)

    def expected_parameters(self) -> list[str | None]:
        return [self.parameter_name, BEFORE]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def choices(self, changelist: ChangeList) -> Any:
        values = [None, *(value for value, _ in self.lookup_choices)]
        for choice, value in zip(super().choices(changelist), values, strict=True):
            asked = changelist.get_query_string({self.parameter_name: value}, [BEFORE])
            yield {**choice, "query_string": asked}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if hasattr(request, _LOOK):
            return queryset
        match self.value():
            case "yes":
                return queryset.filter(on_a_list())
            case "no":
                return queryset.filter(~on_a_list())
            case _:
                return queryset


class LookingChangeList(CountedChangeList):
    """With the filter: what one look finds, and ``look`` for the page to tell."""

    look: Look | None = None

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        setattr(request, _LOOK, None)
        rows = super().get_queryset(request, *args, **kwargs)
        for spec in self.filter_specs:
            if isinstance(spec, SuppressedFilter) and spec.value() in ("yes", "no"):
                suppressed = spec.value() == "yes"
                self.look = look(rows, request, suppressed=suppressed, before=spec.before)
                setattr(request, _LOOK, self.look)
                return among(rows, self.look.found)
        return rows

    @property
    def further_url(self) -> str:
        look = self.look
        if look is None or look.further is None or look.of == "search":
            return ""
        return str(self.get_query_string({BEFORE: look.further}))

    @property
    def first_url(self) -> str:
        if self.look is None or self.look.before is None:
            return ""
        return str(self.get_query_string(remove=[BEFORE]))


class LookedPaginator(BoundedPaginator):
    """Pages of what a look found: their ids are known."""

    found: list[int] | None = None

    @cached_property
    def count(self) -> int:
        return super().count if self.found is None else len(self.found)

    def page(self, number: Any) -> Page[Any]:
        if self.found is None:
            return super().page(number)
        number = self.validate_number(number)
        bottom = (number - 1) * self.per_page
        rows: Any = self.object_list
        return Page(rows.filter(pk__in=self.found[bottom : bottom + self.per_page]), number, self)


def looked(request: HttpRequest) -> Look | None:
    """What the list of this request found by the filter."""
    found: Look | None = getattr(request, _LOOK, None)
    return found
