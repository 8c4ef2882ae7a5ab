"""What a frame is answered with that shows a mail: a document that may be seen and do nothing.

A host's own admin may show mails the same way: see ``FramePreview``.
"""

from __future__ import annotations

import re
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

_BODY = re.compile(r"<body\b[^<>]*+>", re.IGNORECASE)
#: A stop of the Tab key that is all of the frame, from where the arrow keys scroll it, and a mark
#: around it while the focus is anywhere in it. Chromium passes over a frame with nothing in it to
#: focus, and tells the page around a frame nothing of a focus in it: no style there can show it.
#: Two colours, for a message may have any.
MARK = (
    '<div id="sendonce-focus" tabindex="0" role="region" aria-label="The message"></div><style>'
    "#sendonce-focus{all:initial!important;display:block!important;position:fixed!important;"
    "inset:0!important;z-index:2147483647!important;pointer-events:none!important}"
    ":root:focus-within #sendonce-focus{outline:5px solid #205067!important;"
    "outline-offset:-5px!important;box-shadow:inset 0 0 0 8px #fff!important}</style>"
)


def with_focus_mark(html: str) -> str:
    """The document of a frame, in which the keyboard's focus is seen."""
    found = _BODY.search(html)
    at = found.end() if found else len(html)
    return f"{html[:at]}{MARK}{html[at:]}"


def framed(shown: Preview, part: str) -> HttpResponse:
    """A message for a sandboxed frame on our own pages; ``part`` is ``html`` or ``text``."""
    page = with_focus_mark(page_of(shown, part))
    response = HttpResponse(page.encode("utf-8", "replace"))
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
