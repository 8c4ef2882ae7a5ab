"""Editing and deleting layouts: what was approved with one does not outlive an edit of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from . import framing, lifecycle
from .content import ContentError, problems
from .errors import CampaignError, Conflict, WrongState
from .models import Campaign, Layout

EDITABLE_FIELDS = frozenset({"name", "body_format", "body"})
STARTED = (Campaign.Status.SENDING, Campaign.Status.PAUSED, Campaign.Status.SENT)
#: What stands for a campaign's body, most likely first: a frame's content may be a whole section
#: or a line in one.
EXAMPLES = {
    framing.HTML: ("<p>Hello</p>",),
    framing.TEXT: ("Hello",),
    framing.MJML: (
        "<mj-section><mj-column><mj-text>Hello</mj-text></mj-column></mj-section>",
        "<mj-column><mj-text>Hello</mj-text></mj-column>",
        "<mj-text>Hello</mj-text>",
    ),
}


class LayoutInUse(CampaignError):
    """Campaigns have the layout; the message says how many."""

    def __init__(self, campaigns: int) -> None:
        what = "1 campaign has" if campaigns == 1 else f"{campaigns} campaigns have"
        super().__init__(f"cannot delete: {what} this layout; give them another one first")


@dataclass
class Edited:
    """What an edit of a layout did. ``withdrawn``: campaigns that were approved and are drafts
    again; ``started``: those that a sender began with meanwhile, as they were approved."""

    withdrawn: list[Campaign] = field(default_factory=list)
    started: list[Campaign] = field(default_factory=list)


def layout_problems(layout: Layout) -> list[ContentError]:
    """What keeps a campaign in this layout from being compiled, whatever its body; errors of the
    field ``layout`` have their place in it. Empty when nothing does."""
    if layout.body_format not in EXAMPLES:
        return [ContentError("layout", "There is no such format.")]
    found: list[ContentError] = []
    for example in _examples(layout):
        wrong = [error for error in problems(example) if error.field in ("layout", "body")]
        if not wrong:
            return []
        found = found or wrong
    return found


def edit_layout(layout: Layout, *, version: int, values: dict[str, Any], by: Any = None) -> Edited:
    """Write ``values`` (fields of ``EDITABLE_FIELDS``) if nobody did since ``version``, and take
    back the approval of every campaign that has the layout, in one transaction.

    Another name alone takes nothing back. ``by`` is who did it, and not the second person of a
    campaign that has the layout. Raises ``Conflict`` when the version has moved on or
    the layout is gone, ``GateBusy`` when a campaign can't be decided about in time, and
    ``ValueError`` on an unknown field. What ``layout_problems`` finds is not looked for here.
    """
    unknown = set(values) - EDITABLE_FIELDS
    if unknown:
        raise ValueError(f"not editable: {', '.join(sorted(unknown))}")
    done = Edited()
    with transaction.atomic():
        found = Layout.objects.select_for_update(no_key=True).filter(pk=layout.pk).first()
        if found is None or found.version != version:
            raise Conflict("edit", "layout")
        is_other = any(values.get(name, was) != was for name, was in _seen(found).items())
        whose = {"edited_by": by} if is_other and by is not None else {}
        Layout.objects.filter(pk=layout.pk).update(
            **values, **whose, version=F("version") + 1, changed=Now()
        )
        if is_other:
            who = by.get_username() if by is not None else "the system"
            # A statement of its own, behind the layout's lock: who approves takes that too.
            for campaign in approved_with(found):
                try:
                    lifecycle.withdraw(campaign, by=by, reason=f"its layout was edited by {who}")
                    done.withdrawn.append(campaign)
                except WrongState as error:
                    if error.found in STARTED:
                        done.started.append(campaign)
    layout.refresh_from_db()
    return done


def approved_with(layout: Layout) -> list[Campaign]:
    """Campaigns that have the layout and whose approval an edit of it takes back."""
    found = Campaign.objects.filter(layout=layout, status=Campaign.Status.APPROVED)
    return list(found.select_related("account").order_by("pk"))


def delete_layout(layout: Layout) -> None:
    """Delete a layout that no campaign has. Raises ``LayoutInUse``."""
    with transaction.atomic():
        # Whoever gives it to a campaign holds this lock shared, until that is committed.
        Layout.objects.select_for_update().filter(pk=layout.pk).first()
        used = Campaign.objects.filter(layout=layout).count()
        if used:
            raise LayoutInUse(used)
        layout.delete()


def _seen(layout: Layout) -> dict[str, str]:
    """What of it a message shows."""
    return {"body_format": layout.body_format, "body": layout.body}


def _examples(layout: Layout) -> list[Campaign]:
    """Campaigns, unsaved, that have nothing but their layout."""
    kind = layout.body_format
    return [
        Campaign(
            account=layout.account, layout=layout, subject="Hello", body_format=kind, body=body
        )
        for body in EXAMPLES.get(kind, ())
    ]
