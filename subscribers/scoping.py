"""Who may see which rows in the admin: staff those of their accounts, superusers all.

One rule, applied where rows come from: the queryset of the admin (and so lists, change pages,
guessed URLs, history, actions, autocompletes) and the choices of every form field that names
an account or something of one (and so what a forged POST can name).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import BaseModelAdmin
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst

from .models import Account
from .paging import BoundedPaginator

_CACHED = "_sendonce_account_ids"
_PREFIX_LOOKUPS = frozenset({"startswith", "istartswith"})


def account_ids(request: HttpRequest) -> list[int] | None:
    """The accounts whose rows this request may see; ``None``: of all. Asked once per request.

    Ids and not a subquery: the planner then knows how many rows an account has.
    """
    user = request.user
    if user.is_active and getattr(user, "is_superuser", False):
        return None
    if not hasattr(request, _CACHED):
        mine = Account.objects.filter(members=user.pk) if user.is_active and user.pk else None
        ids = [] if mine is None else list(mine.order_by("pk").values_list("pk", flat=True))
        setattr(request, _CACHED, ids)
    return list(getattr(request, _CACHED))


def visible(queryset: QuerySet[Any], request: HttpRequest, lookup: str) -> QuerySet[Any]:
    """The rows of ``queryset`` that this request may see. ``lookup`` leads from a row to the id
    of its account."""
    ids = account_ids(request)
    return queryset if ids is None else queryset.filter(**{f"{lookup}__in": ids})


def lookup_of(model: type[Model]) -> str | None:
    """The lookup from a row of ``model`` to its account's id, ``None`` where there is none."""
    if model is Account:
        return "pk"
    try:
        field = model._meta.get_field("account")
    except FieldDoesNotExist:
        return None
    return "account_id" if field.related_model is Account else None


def beginning_with(fields: Iterable[str], typed: str) -> Q:
    """The rows of which one of ``fields`` (lookups of a beginning) begins with what was typed, as
    one: spaces within are part of it. In quotes, as other searches want it, also without them."""
    term = typed.strip()
    terms = [term]
    if len(term) > 2 and term[0] == term[-1] and term[0] in "\"'":
        terms.append(term[1:-1].strip())
    found = Q()
    for field in fields:
        for each in filter(None, terms):
            found |= Q((field, each))
    return found


def as_id(raw: object) -> int | None:
    """A row's id from a query string or a form, ``None`` when it can't be one."""
    text = str(raw)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


class ScopedChoices(BaseModelAdmin):
    """For admins and inlines: related fields offer, and accept, only visible rows."""

    def get_field_queryset(self, db: Any, db_field: Any, request: Any) -> Any:
        queryset = super().get_field_queryset(db, db_field, request)
        related = db_field.remote_field.model
        lookup = lookup_of(related)
        if lookup is None:
            return queryset
        every = related._default_manager.all() if queryset is None else queryset
        return visible(every, request, lookup)


class ScopedAdmin(ScopedChoices, admin.ModelAdmin):
    """The base of all our admins: only visible rows, pages that do not count millions.

    ``account_lookup`` leads from a row to its account's id.
    """

    account_lookup = "account_id"
    paginator = BoundedPaginator
    show_full_result_count = False
    # Facets are counts of the whole table, one per choice.
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return visible(super().get_queryset(request), request, self.account_lookup)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Django asks each word of a search for itself; two words of a name are never both its
        beginning. Fields that are searched in another way are searched as Django does."""
        fields = tuple(self.get_search_fields(request))
        if not fields or {field.rpartition("__")[2] for field in fields} - _PREFIX_LOOKUPS:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(beginning_with(fields, search_term)), False


class ReadOnly(admin.ModelAdmin):
    """For rows that only the program writes: the ledger and what proves it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ScopedFilter(admin.SimpleListFilter):
    """A list filter by a related row: offers visible ones only, and few enough to read.

    Django's own filter by a foreign key would list every row there is, other tenants' too.
    """

    related: type[Model]
    #: From the related row to its account, and from the listed row to the related one.
    related_lookup = "account_id"
    lookup = ""
    #: What a label needs beside the row, and the order in which rows are offered.
    joined: tuple[str, ...] | None = None
    ordering: tuple[str, ...] = ("name",)
    shown = 30

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        every = self.related._default_manager.all()
        if self.joined:
            every = every.select_related(*self.joined)
        rows = visible(every, request, self.related_lookup)
        return [(row.pk, self.label(row)) for row in rows.order_by(*self.ordering)[: self.shown]]

    def label(self, row: Any) -> str:
        return capfirst(str(row))

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        found = as_id(self.value())
        return queryset.none() if found is None else queryset.filter(**{self.lookup: found})


class AccountFilter(ScopedFilter):
    title = "account"
    parameter_name = "account"
    related = Account
    related_lookup = "pk"

    def __init__(self, request: Any, params: Any, model: Any, model_admin: Any) -> None:
        self.lookup = model_admin.account_lookup
        super().__init__(request, params, model, model_admin)


def deletion_summary(
    objs: Iterable[Any], dependents: QuerySet[Any]
) -> tuple[list[str], dict[str, int], set[str], list[str]]:
    """For ``ModelAdmin.get_deleted_objects``: the objects and the *number* of their dependents.

    Django's own collects every dependent row into memory to list it.
    """
    named = [str(obj) for obj in objs]
    counts = {str(dependents.model._meta.verbose_name_plural): dependents.count()}
    return named, {label: n for label, n in counts.items() if n}, set(), []
