"""Numbers as people read them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def thousands(number: int) -> str:
    """1234567 as 1,234,567, as the rest of the admin's English is written."""
    return f"{number:,}"
