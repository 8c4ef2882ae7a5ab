"""The admin of campaigns. Stock classes: a host may subclass and register them again."""

from .campaign import CampaignAdmin
from .contents import ApprovalAdmin, ContentAdmin
from .images import ImageAdmin
from .layouts import LayoutAdmin

__all__ = ["ApprovalAdmin", "CampaignAdmin", "ContentAdmin", "ImageAdmin", "LayoutAdmin"]
