"""The admin of sending. Stock classes: a host may subclass and register them again.

The ledger is in ``sends``, what became of hand-overs in ``events``, what holds mail back (pauses,
limits, brakes) in ``limits``, what providers tell in ``webhooks``, senders in ``workers``.
"""

from .archive import ArchivedCountAdmin
from .events import DeliveryEventAdmin
from .limits import CampaignHealthAdmin, RateLimitAdmin, TransportPauseAdmin
from .sends import SendAdmin
from .webhooks import ProviderEventAdmin, WebhookCountAdmin
from .workers import InstallationAdmin, WorkerAdmin

__all__ = [
    "ArchivedCountAdmin",
    "CampaignHealthAdmin",
    "DeliveryEventAdmin",
    "InstallationAdmin",
    "ProviderEventAdmin",
    "RateLimitAdmin",
    "SendAdmin",
    "TransportPauseAdmin",
    "WebhookCountAdmin",
    "WorkerAdmin",
]
