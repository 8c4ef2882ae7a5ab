"""A new draft made from a campaign."""

from __future__ import annotations

from .verbs import VerbAdmin


class CopyPages(VerbAdmin):
    """The verb that copies a campaign."""
