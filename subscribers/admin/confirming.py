"""A page between an admin action and its effect, for what can't be taken back."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

#: Rows that the page names.
NAMED = 20


def confirmation(
    admin: ModelAdmin,
    request: HttpRequest,
    queryset: QuerySet[Any],
    *,
    title: str,
    warning: str,
    button: str,
) -> TemplateResponse | None:
    """The page that asks, or ``None`` once it was answered: then act."""
    if "confirmed" in request.POST:
        return None
    request.current_app = admin.admin_site.name
    rows = list(queryset[: NAMED + 1])
    return TemplateResponse(
        request,
        "admin/sendonce_subscribers/confirm.html",
        {
            **admin.admin_site.each_context(request),
            "title": title,
            "opts": admin.opts,
            "warning": warning,
            "button": button,
            "rows": rows[:NAMED],
            "more": len(rows) > NAMED,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "action": request.POST.get("action", ""),
            "select_across": request.POST.get("select_across", "0"),
            "media": admin.media,
        },
    )
