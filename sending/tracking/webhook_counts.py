"""What webhooks brought that could not be used, counted by provider and day."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import Error, connection, transaction

from ..sql.session import RELAXED
from ..sql.tracking import COUNT_UP

log = logging.getLogger("sendonce.webhooks")

REFUSED = "refused"
MALFORMED = "malformed"
TOO_LARGE = "too_large"
REPLAYED = "replayed"
ODD_TIME = "odd_time"


def add(cursor: Any, counts: Mapping[tuple[str, str], int]) -> None:
    """Add ``{(esp, what): number}`` to today's counts, in the cursor's transaction."""
    keys = sorted(key for key, number in counts.items() if number)
    if keys:
        cursor.execute(
            COUNT_UP,
            {
                "esps": [esp[:40] for esp, _ in keys],
                "whats": [what for _, what in keys],
                "numbers": [counts[key] for key in keys],
            },
        )


def count(counts: Mapping[tuple[str, str], int]) -> None:
    """As ``add``, in a transaction of its own. A database that is away costs the count and
    nothing else: the answer to the request does not depend on it."""
    if not any(counts.values()):
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(RELAXED)
            add(cursor, counts)
    except Error as error:
        log.warning("webhooks not counted: %s", str(error).strip(), extra={"event": "not_counted"})
