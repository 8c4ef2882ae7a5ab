"""The admin of campaigns. Stock classes: a host may subclass and register them again."""

from .campaign import CampaignAdmin
from .contents import ApprovalAdmin, ContentAdmin

__all__ = ["ApprovalAdmin", "CampaignAdmin", "ContentAdmin"]
