"""What the pages of operating share: the frame, who may see it, and links within one admin site."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_protect


class OperatingPages(admin.ModelAdmin):
    """For admins that have pages beside the list and the row."""

    def operating_path(self, route: str, view: Callable[..., HttpResponse], name: str) -> Any:
        """A page for staff of this site; its URL is called ``<app>_<model>_<name>``."""
        names = f"{self.opts.app_label}_{self.opts.model_name}"
        protected = self.admin_site.admin_view(csrf_protect(view))
        return path(route, protected, name=f"{names}_{name}")

    def operating_url(self, name: str, *args: Any) -> str:
        names = f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}"
        return reverse(names, args=args, current_app=self.admin_site.name)

    def operating_page(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any]
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "title": title,
                "opts": self.opts,
                "media": self.media,
                **context,
            },
        )

    def must_view(self, request: HttpRequest) -> None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied


def moment_of(raw: str) -> datetime | None:
    """A moment as an address or a form of these pages carries it; None when it is none."""
    try:
        found = datetime.fromisoformat(raw)
    except ValueError:
        return None
    return found if timezone.is_aware(found) else None
