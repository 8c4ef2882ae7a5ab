"""A new draft from a campaign of any status."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from .content import TEXTS
from .errors import WrongState
from .models import Campaign

PREFIX = "Copy of "


def copy(campaign: Campaign, *, by: Any = None) -> Campaign:
    """A draft by ``by`` with the same content, layout and segments, as they are stored now, and
    nothing of what is said about its sending.

    It is planned for no time, and has the end time only while that is to come. Segments that were
    deleted since are in neither. Raises ``WrongState`` when the original is gone.
    """
    with transaction.atomic():
        found = Campaign.objects.filter(pk=campaign.pk).first()
        if found is None:
            raise WrongState("copy", "deleted", tuple(Campaign.Status.values))
        still = Campaign.objects.filter(pk=found.pk, finish_by__gt=Now()).exists()
        made = Campaign.objects.create(
            account_id=found.account_id,
            name=copied_name(found.name),
            layout_id=found.layout_id,
            finish_by=found.finish_by if still else None,
            created_by=by,
            **{name: getattr(found, name) for name in TEXTS},
        )
        made.segments.set(found.segments.all())
        made.exclude_segments.set(found.exclude_segments.all())
    return made


def copied_name(name: str) -> str:
    """The name of a copy, no longer than a name may be. Pure."""
    room = int(Campaign._meta.get_field("name").max_length or 0)
    return (PREFIX + name)[:room]
