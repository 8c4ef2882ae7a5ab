"""Outcomes written as a worker writes them."""

from __future__ import annotations

import uuid
from typing import Any

from sending.models import Send
from sending.settle import settle

from .rows import held, told

OTHERS = ["retry", "bounced", "failed", "in_doubt"]


def settle_one(send: Send, outcome: str, *, token: uuid.UUID | None = None, **more: Any) -> bool:
    """Whether the outcome took effect."""
    became = settle([told(held(send, token=token), outcome, **more)], doubt_wait=600)
    send.refresh_from_db()
    return bool(became)
