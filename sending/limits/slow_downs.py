"""Limits that are slowed down because the other side asked for it, and lifting that by hand."""

from __future__ import annotations

from django.db.models import CharField, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Concat, Now

from subscribers.models import Account

from ..models import RateLimit
from .keys import account_key, transport_key

#: Less than usual is let through. Without a usual rate there is a limit only while it is slow.
SLOWED = Q(slowed_at__isnull=False)


def slowed() -> QuerySet[RateLimit]:
    """Those that let less through than usual."""
    return RateLimit.objects.filter(SLOWED)


def named(limits: QuerySet[RateLimit]) -> QuerySet[RateLimit]:
    """``limits`` with ``account_name``: of an ``account:<id>`` that there still is, else None."""
    keyed = Account.objects.annotate(
        limit_key=Concat(Value("account:"), Cast("pk", CharField()), output_field=CharField())
    )
    name = keyed.filter(limit_key=OuterRef("key")).values("name")[:1]
    return limits.annotate(account_name=Subquery(name))


def limit_keys(account_id: int, alias: str) -> tuple[str, str]:
    """The limits of an account and of a transport; those of mailboxes are everybody's."""
    return account_key(account_id), transport_key(alias)


def keys_of_accounts(account_ids: list[int]) -> list[str]:
    """The limits that concern these accounts: their own and their transports'."""
    used = Account.objects.filter(pk__in=account_ids).values_list("pk", "transport")
    return sorted({key for pk, alias in used for key in limit_keys(pk, alias)})


def lift(limit_id: int) -> bool:
    """The usual rate again, at once; where there is none, no limit. Returns whether it was slow.

    What may start at this moment is as before, so that lifting lets no burst through.
    """
    rows = RateLimit.objects.filter(SLOWED, pk=limit_id)
    if rows.filter(usual__isnull=True).delete()[0]:
        return True
    return bool(
        rows.filter(usual__isnull=False).update(
            rate=F("usual"), updated=Now(), slowed_at=None, raised_at=None, reason=""
        )
    )
