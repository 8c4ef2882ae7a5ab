"""The ledger: one row per recipient, the workers that move them, and what happened."""

from __future__ import annotations

from .archive import ArchivedCount
from .controls import CampaignHealth, Installation, RateLimit, TransportPause
from .counts import Counted, LedgerChange, LedgerCount, LedgerMark
from .events import DeliveryEvent, ProviderEvent, WebhookCount
from .sends import Send, Worker

__all__ = [
    "ArchivedCount",
    "CampaignHealth",
    "Counted",
    "DeliveryEvent",
    "Installation",
    "LedgerChange",
    "LedgerCount",
    "LedgerMark",
    "ProviderEvent",
    "RateLimit",
    "Send",
    "TransportPause",
    "WebhookCount",
    "Worker",
]
