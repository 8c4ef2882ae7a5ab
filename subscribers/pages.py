"""How pages for people outside are answered: their language, their headers, no script."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils import translation
from django.utils.cache import add_never_cache_headers

from .languages import language_of
from .models import Account, Subscriber

STYLESHEET = "sendonce_subscribers/page.css"


def page(
    request: HttpRequest,
    template: str,
    *,
    account: Account | None = None,
    locale: str = "",
    context: dict[str, Any] | None = None,
    status: int = 200,
    framed_by: tuple[str, ...] = (),
    leads_to: str = "",
) -> HttpResponse:
    """Answer with a template of ``sendonce_subscribers/``, in the person's language (``locale``)
    or what the browser asks for. ``framed_by``: origins that may show it in a frame.
    ``leads_to``: the URL of another site to which its form leads when it was answered."""
    language = language_of(request, locale)
    values: dict[str, Any] = {**(context or {}), "language": language, "account": account}
    with translation.override(language):
        values["rtl"] = translation.get_language_bidi()
        response = render(request, f"sendonce_subscribers/{template}", values, status=status)
    response.headers["Content-Language"] = language
    return guarded(response, framed_by=framed_by, leads_to=leads_to)


def about(
    request: HttpRequest,
    template: str,
    person: Subscriber,
    *,
    context: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """``page`` for a person (with their account): in their language, with their masked
    ``address``."""
    return page(
        request,
        template,
        account=person.account,
        locale=person.locale,
        context={"address": masked(person.email), **(context or {})},
        status=status,
    )


def guarded(
    response: HttpResponse, *, framed_by: tuple[str, ...] = (), leads_to: str = ""
) -> HttpResponse:
    """The headers of every page of ours: nothing is kept, run, indexed, or told to others."""
    add_never_cache_headers(response)
    response.headers["Content-Security-Policy"] = _policy(framed_by, leads_to)
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if framed_by:
        # Older browsers know no list here; the policy above is the one that holds.
        response.xframe_options_exempt = True
    else:
        response.headers["X-Frame-Options"] = "DENY"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


def masked(email: str) -> str:
    """``j•••@example.org``: enough to know one's own address by, should the mail be forwarded."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}•••@{domain}"


def _policy(framed_by: tuple[str, ...], leads_to: str = "") -> str:
    """No script, nothing inline; the stylesheet, and what a host's own templates show (a logo, a
    typeface), from here or from where static files live."""
    parts = urlsplit(static(STYLESHEET))
    elsewhere = f" {parts.scheme or 'https'}://{parts.netloc}" if parts.netloc else ""
    ancestors = " ".join(framed_by) or "'none'"
    # Browsers hold a redirect that answers a form against the policy of the form's page, too.
    target = urlsplit(leads_to)
    onward = f" {target.scheme}://{target.netloc.rpartition('@')[2]}" if target.netloc else ""
    return (
        f"default-src 'none'; style-src 'self'{elsewhere}; form-action 'self'{onward}; "
        f"base-uri 'none'; frame-ancestors {ancestors}; "
        f"img-src 'self'{elsewhere}; font-src 'self'{elsewhere}"
    )
