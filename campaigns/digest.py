"""The digest of what is approved: content, sender, schedule and audience definition.

It is made from the sources, not from what a compiler makes of them again: another version of a
library on the worker's machine must not look like an edit. What was compiled at approval is frozen
and is what leaves: the digest of an approval is over that, too.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC

from .models import Campaign, Content

_FROZEN = (
    "subject",
    "preheader",
    "html",
    "text",
    "from_email",
    "from_name",
    "reply_to",
    "account_fields",
)


def is_approved_as_it_is(campaign: Campaign) -> bool:
    """Is what would leave now what was approved? What was approved by a version that did not look
    at the frozen content stays approved."""
    return campaign.approved_digest in (digest(campaign, campaign.content), digest(campaign))


def digest(campaign: Campaign, content: Content | None = None) -> str:
    """SHA-256 (hex) over everything about ``campaign`` that an approver saw and agreed to.

    Reads the campaign's account, layout and segments; the instance must be as the database has
    it. ``content`` is what was frozen at its approval, once it was.
    """
    account = campaign.account
    scheduled = campaign.scheduled_for
    seen = {
        "account": account.pk,
        "transport": account.transport,
        "from_email": campaign.from_email or account.from_email,
        "from_name": campaign.from_name or account.from_name,
        "reply_to": campaign.reply_to or account.reply_to,
        "account_name": account.name,
        "postal_address": account.postal_address,
        "subject": campaign.subject,
        "preheader": campaign.preheader,
        "body_format": campaign.body_format,
        "body": campaign.body,
        "text_body": campaign.text_body,
        "scheduled_for": scheduled and scheduled.astimezone(UTC).isoformat(),
        "segments": sorted(campaign.segments.values_list("pk", flat=True)),
        "exclude_segments": sorted(campaign.exclude_segments.values_list("pk", flat=True)),
    }
    if campaign.layout is not None:
        # Only where there is one: what was approved before there were layouts stays approved.
        layout = campaign.layout
        seen["layout"] = {"id": layout.pk, "format": layout.body_format, "body": layout.body}
    if content is not None:
        seen["content"] = {name: getattr(content, name) for name in _FROZEN}
    canonical = json.dumps(seen, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
