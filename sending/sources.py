"""A message before it leaves, for the eyes of staff: by the code that makes the real one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from campaigns.content import CompiledContent, as_content
from campaigns.rendering import Renderer
from subscribers.models import Account
from subscribers.tokens import nobodys_link

from .compiled import CompiledMessage
from .installation import namespace


def message_source(
    account: Account,
    content: CompiledContent,
    context: Mapping[str, Any],
    email: str,
    campaign_id: int,
    subscriber_id: int,
) -> bytes:
    """What the relay would get for this person, as of now: a campaign's message, whose
    ``List-Unsubscribe`` is nobody's link. Nothing is queued.

    Raises ``ValueError`` when no message can be made of it; the reason is what staff read.
    """
    row = as_content(content, account.pk)
    row.account = account
    compiled = CompiledMessage(row, Renderer(row), namespace=namespace(), campaign_id=campaign_id)
    return compiled.write(
        to=email,
        job_id=f"campaign:{campaign_id}:{subscriber_id}",
        date=datetime.now(UTC).replace(microsecond=0),
        context=context,
        unsubscribe_url=nobodys_link(),
    )
