"""The audit trail in the admin: read, never written."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst

from ..addresses import canonical, erased_hashes, lower
from ..audit_words import words
from ..models import AuditEvent
from ..scoping import AccountFilter, ReadOnly, ScopedAdmin, account_ids
from .parts import StyledMedia, addresses_beginning
from .shown import moment, zone_of

_EVENTS = f'"{AuditEvent._meta.db_table}"'
#: The next kind of act behind one, by a look into the index: there are some dozens, of millions.
_VERBS = f"""
WITH RECURSIVE found(verb) AS (
    (SELECT verb FROM {_EVENTS} ORDER BY verb LIMIT 1)
    UNION ALL
    SELECT (SELECT verb FROM {_EVENTS} WHERE verb > found.verb ORDER BY verb LIMIT 1)
    FROM found WHERE found.verb IS NOT NULL
)
SELECT verb FROM found WHERE verb IS NOT NULL
"""
#: The same of accounts. ``account_id`` equal, but said so that only their index has the order.
_NEXT = f"""
SELECT verb FROM {_EVENTS} WHERE account_id >= a.id AND account_id <= a.id
ORDER BY account_id, verb LIMIT 1
"""
_VERBS_OF = f"""
WITH RECURSIVE found(id, verb) AS (
    SELECT a.id, ({_NEXT}) FROM unnest(%s::bigint[]) AS a(id)
    UNION ALL
    SELECT a.id, ({_NEXT.replace("ORDER", "AND verb > a.verb ORDER")})
    FROM found AS a WHERE a.verb IS NOT NULL
)
SELECT DISTINCT verb FROM found WHERE verb IS NOT NULL
"""


def recorded_verbs(accounts: list[int] | None) -> list[str]:
    """Every kind of act that is on record; of these accounts, ``None``: of all."""
    with connection.cursor() as cursor:
        cursor.execute(*((_VERBS,) if accounts is None else (_VERBS_OF, [accounts])))
        return [verb for (verb,) in cursor.fetchall()]


class VerbFilter(admin.SimpleListFilter):
    title = "act"
    parameter_name = "act"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        verbs = recorded_verbs(account_ids(request))
        return sorted(((verb, capfirst(words(verb))) for verb in verbs), key=lambda pair: pair[1])

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(verb=self.value()) if self.value() else queryset


class DayFilter(admin.DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "day"


@admin.register(AuditEvent)
class AuditEventAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """What people did, newest first. What superusers did to all accounts is for superusers."""

    list_display = ("when", "act", "about", "who", "account")
    list_select_related = ("account",)
    list_filter = (VerbFilter, AccountFilter, ("at", DayFilter))
    sortable_by = ()
    search_fields = ("subject_lower__startswith",)
    search_help_text = (
        "The beginning of an address or name, or all of one that was erased. What is found is "
        "listed by address or name, of each the newest first."
    )
    fields = ("when", "act", "about", "who", "where_from", "account", "why", "told", "name")
    readonly_fields = ("when", "act", "about", "who", "where_from", "why", "told", "name")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        typed = search_term.strip()
        if not typed:
            return queryset, False
        erased = None
        if "@" in typed:
            forms = {lower(typed), lower(canonical(typed))}
            hashes = [digest for form in forms for digest in erased_hashes(form)]
            erased = Q(subject_hash__in=hashes)
        return addresses_beginning(queryset, "subject_lower", typed, erased), False

    @admin.display(description="when")
    def when(self, obj: AuditEvent) -> str:
        return moment(obj.at, zone_of(obj, self.account_lookup))

    @admin.display(description="act")
    def act(self, obj: AuditEvent) -> str:
        return capfirst(words(obj.verb))

    @admin.display(description="verb")
    def name(self, obj: AuditEvent) -> str:
        """As programs and filters know it."""
        return obj.verb

    @admin.display(description="subject")
    def about(self, obj: AuditEvent) -> str:
        return obj.subject or ("erased person" if obj.subject_hash else "")

    @admin.display(description="by")
    def who(self, obj: AuditEvent) -> str:
        return obj.by_name

    @admin.display(description="from")
    def where_from(self, obj: AuditEvent) -> str:
        return obj.from_address or "-"

    @admin.display(description="reason")
    def why(self, obj: AuditEvent) -> str:
        return obj.reason

    @admin.display(description="details")
    def told(self, obj: AuditEvent) -> str:
        if not obj.detail:
            return ""
        return json.dumps(obj.detail, ensure_ascii=False, indent=2, sort_keys=True)
