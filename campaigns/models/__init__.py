"""Campaigns, their layouts and images, who approved them, and the content that was approved."""

from .campaigns import Approval, Campaign, CampaignQuerySet, Content
from .layouts import Image, Layout

__all__ = ["Approval", "Campaign", "CampaignQuerySet", "Content", "Image", "Layout"]
