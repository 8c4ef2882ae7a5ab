"""The digest of what is approved: content, sender, schedule and audience definition.

It is made from the sources, not from what a compiler made of them: another version of a
library on the worker's machine must not look like an edit.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC

from .models import Campaign


def digest(campaign: Campaign) -> str:
    """SHA-256 (hex) over everything about ``campaign`` that an approver saw and agreed to.

    Reads the campaign's account, layout and segments; the instance must be as the database has
    it.
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
    canonical = json.dumps(seen, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
