"""What a frame is answered with that shows a mail: a document that may be seen and do nothing.

A host's own admin may show mails the same way: see ``FramePreview``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_protect

from ..models import Campaign
from ..previewing import NOBODY, Preview, page_of, preview

#: Editors write HTML, and people's data is in it: no script, no form, no frame, nothing of this
#: site's rights; pictures and styles alone.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "img-src http: https: data:",
        "style-src 'unsafe-inline'",
        "font-src http: https:",
        "base-uri 'none'",
        "form-action 'none'",
        "sandbox",
        "frame-ancestors 'self'",
    )
)


def framed(shown: Preview, part: str) -> HttpResponse:
    """A message for a sandboxed frame on our own pages; ``part`` is ``html`` or ``text``."""
    response = HttpResponse(page_of(shown, part).encode("utf-8", "replace"))
    add_never_cache_headers(response)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


class FramePreview(admin.ModelAdmin):
    """For admins of what a mail is made of, such as layouts: ``<id>/preview/frame/`` shows it.

    ``preview_draft(obj)`` says which campaign it would be part of, unsaved; it is compiled and
    shown as nobody in particular. ``preview_frames.html`` shows it in both widths.
    """

    preview_draft: Callable[[Any], Campaign]

    def get_urls(self) -> list[Any]:
        view: Any = self.admin_site.admin_view(csrf_protect(self.preview_frame_view))
        name = f"{self.opts.app_label}_{self.opts.model_name}_preview_frame"
        return [path("<path:object_id>/preview/frame/", view, name=name), *super().get_urls()]

    def preview_frame_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        obj = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        if obj is None:
            raise Http404
        return framed(preview(self.preview_draft(obj), NOBODY), request.GET.get("part", "html"))

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            context["preview_frame_url"] = self.preview_frame_url(obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def preview_frame_url(self, obj: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_preview_frame"
        return reverse(name, args=[quote(obj.pk)], current_app=self.admin_site.name)
