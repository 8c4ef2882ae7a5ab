"""People who unsubscribed by a link of a campaign: recorded as an event of their message.

In the transaction in which they leave, so that a report counts exactly those who left by it.
"""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection, transaction

from .sql import watching as statements

log = logging.getLogger("sendonce.sender")

#: The event's kind (as providers name it, too) and its reason; ``AGAIN``: of what a report has
#: counted for this message before.
KIND = "unsubscribed"
HOW = "by_link"
AGAIN = "again"


def record(subscriber_id: int, campaign_id: int) -> None:
    """Note it on the person's message of that campaign, once; as ``AGAIN`` where its provider has
    told it before. Nothing is noted of a message that was pruned. Leaving must not fail because of
    this: an error is logged. The person's row is locked."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                statements.UNSUBSCRIBED,
                {"subscriber": subscriber_id, "campaign": campaign_id, "how": HOW, "again": AGAIN},
            )
    except DatabaseError:
        log.exception("campaign %s: an unsubscription is not counted in its report", campaign_id)
