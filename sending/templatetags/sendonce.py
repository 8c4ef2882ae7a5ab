"""``{% load sendonce %}{% sendonce_dashboard %}``: the panel of an admin's front page."""

from __future__ import annotations

from typing import Any

from django import template

from ..dashboard_page import panel

register = template.Library()


@register.inclusion_tag("admin/sendonce_sending/dashboard.html", takes_context=True)
def sendonce_dashboard(context: Any) -> dict[str, Any]:
    """What the user who asks may see of it; nothing for anybody else, and without a request."""
    request = context.get("request")
    return {"dashboard": panel(request) if request is not None else None}
