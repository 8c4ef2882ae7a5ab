"""The record of what people did, written in the transaction of what they did."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from .client_address import client_address
from .models import Account, AuditEvent


def record(
    account: Account | None,
    verb: str,
    *,
    by: Any = None,
    by_name: str = "",
    subject: str = "",
    subject_hash: str = "",
    reason: str = "",
    detail: dict[str, Any] | None = None,
    request: HttpRequest | None = None,
) -> AuditEvent:
    """Record one act. Call it in the transaction of the act, so that neither is without the other.

    ``verb`` as in ``suppression.release``; ``by`` is a user, by default the request's; a command
    gives ``by_name``. ``subject`` is what it was done to (an address, a name); an erasure gives
    the ``subject_hash`` of the address instead.
    """
    user = by if by is not None else getattr(request, "user", None)
    if user is None or isinstance(user, AnonymousUser):
        user = None
    return AuditEvent.objects.create(
        account=account,
        by=user,
        by_name=(by_name or (user.get_username() if user is not None else ""))[:200],
        verb=verb,
        subject=subject[:320],
        subject_hash=subject_hash,
        reason=reason,
        detail=detail or {},
        from_address=client_address(request) if request is not None else None,
    )
