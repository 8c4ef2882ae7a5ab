"""Editing a campaign: a compare-and-set on its version that voids the approval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from subscribers.models import Segment

from .errors import Conflict, WrongState
from .gate import enter_exclusive
from .lifecycle import void_approvals
from .models import Campaign

EDITABLE_STATUSES = (Campaign.Status.DRAFT, Campaign.Status.APPROVED)
EDITABLE_FIELDS = frozenset(
    {
        "name",
        "subject",
        "preheader",
        "from_email",
        "from_name",
        "reply_to",
        "body_format",
        "layout",
        "body",
        "text_body",
        "scheduled_for",
        "finish_by",
    }
)


def edit(
    campaign: Campaign,
    *,
    version: int,
    values: dict[str, Any],
    segments: Iterable[Segment] | None = None,
    exclude_segments: Iterable[Segment] | None = None,
    by: Any = None,
) -> bool:
    """Write ``values`` (fields of ``EDITABLE_FIELDS``) if nobody did since ``version``.

    ``by`` is who did it, and not who may approve it where the account asks for a second person;
    without one that stays whoever it was. A ``layout`` has to be of the campaign's account. Returns
    whether a standing approval was voided by it. Raises ``Conflict`` when the version has moved on,
    ``WrongState`` when sending has begun, ``ValueError`` on an unknown field.
    """
    unknown = set(values) - EDITABLE_FIELDS
    if unknown:
        raise ValueError(f"not editable: {', '.join(sorted(unknown))}")
    with transaction.atomic():
        with connection.cursor() as cursor:
            enter_exclusive(cursor, campaign.pk)
        found = (
            Campaign.objects.select_for_update(no_key=True, of=("self",))
            .filter(pk=campaign.pk)
            .first()
        )
        if found is None:
            raise WrongState("edit", "deleted", EDITABLE_STATUSES)
        if found.status not in EDITABLE_STATUSES:
            raise WrongState("edit", found.status, EDITABLE_STATUSES)
        voids = found.status == Campaign.Status.APPROVED
        who = by.get_username() if by is not None else "the system"
        reason = f"edited by {who} after it was approved" if voids else found.status_reason
        changed = Campaign.objects.filter(
            pk=campaign.pk, status=found.status, version=version
        ).update(
            **values,
            **({} if by is None else {"edited_by": by}),
            version=F("version") + 1,
            edited_at=Now(),
            status=Campaign.Status.DRAFT,
            status_reason=reason[:500],
            approved_by=None,
            approved_at=None,
            approved_digest="",
            content=None,
        )
        if not changed:
            raise Conflict("edit")
        if segments is not None:
            found.segments.set(segments)
        if exclude_segments is not None:
            found.exclude_segments.set(exclude_segments)
        if voids:
            void_approvals(found, reason)
        _look_for_what_is_gone()
    campaign.refresh_from_db()
    return voids


def _look_for_what_is_gone() -> None:
    """A layout or a segment that was deleted since the form was checked is found now and not at
    COMMIT, which may be the host's. Raises ``Conflict``."""
    with connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except IntegrityError as error:
            raise Conflict("edit") from error
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
