"""Previews of a campaign, and test sends."""

from __future__ import annotations

from .verbs import VerbAdmin


class PreviewPages(VerbAdmin):
    """Pages that show a campaign as one person will get it."""
