"""The pages behind the links in mail. Nobody logs in here, nothing sets a cookie."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from .consent import unsubscribe
from .hooks import web_version
from .models import Subscriber
from .tokens import Kind, read_token

STYLESHEET = "sendonce_subscribers/page.css"
_LEAVING = (Kind.UNSUBSCRIBE, Kind.PREFERENCES)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """The page of a link token.

    GET shows a button and changes nothing: scanners open every link. POST unsubscribes (RFC
    8058): whatever its body and type, without a cookie, answered by 200 however often it comes.
    The token is the permission, so CSRF protection would protect nothing and stop the providers.
    """
    is_post = request.method == "POST"
    known = read_token(token)
    if known is not None and known.kind is Kind.WEB and known.campaign_id and not is_post:
        return _web_version(request, known.subscriber_id, known.campaign_id)
    if known is None or known.kind not in _LEAVING:
        return _page(request, "link_unknown.html", status=404)
    person = Subscriber.objects.select_related("account").filter(pk=known.subscriber_id).first()
    if person is None:
        return _page(request, "subscriber_gone.html")
    if is_post:
        where = f" of campaign {known.campaign_id}" if known.campaign_id else ""
        agent = request.headers.get("User-Agent", "unknown")[:200]
        unsubscribe(person, evidence=f"POST to the unsubscribe link{where} by {agent}")
    elif person.status != Subscriber.Status.UNSUBSCRIBED:
        return _page(request, "unsubscribe.html", person)
    return _page(request, "unsubscribed.html", person)


def _web_version(request: HttpRequest, subscriber_id: int, campaign_id: int) -> HttpResponse:
    html = web_version(subscriber_id, campaign_id)
    if html is None:
        return _page(request, "link_unknown.html", status=404)
    response = HttpResponse(html)
    add_never_cache_headers(response)
    # What editors wrote: it may be seen, but run nothing and be nobody on this site.
    response.headers["Content-Security-Policy"] = (
        "sandbox allow-popups allow-top-navigation-by-user-activation; default-src 'none'; "
        "img-src http: https: data:; style-src 'unsafe-inline' https:; font-src https:; "
        "frame-ancestors 'none'"
    )
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


def masked(email: str) -> str:
    """``j•••@example.org``: enough to know one's own address by, should the mail be forwarded."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}•••@{domain}"


def _page(
    request: HttpRequest, template: str, person: Subscriber | None = None, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {"language": _language(request, person)}
    if person is not None:
        context |= {"account": person.account, "address": masked(person.email)}
    with translation.override(context["language"]):
        context["rtl"] = translation.get_language_bidi()
        response = render(request, f"sendonce_subscribers/{template}", context, status=status)
    add_never_cache_headers(response)
    response.headers["Content-Language"] = context["language"]
    response.headers["Content-Security-Policy"] = _policy()
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _language(request: HttpRequest, person: Subscriber | None) -> str:
    """The person's language where we have it, else what the browser asks for."""
    if person is not None and person.locale:
        try:
            return translation.get_supported_language_variant(person.locale.replace("_", "-"))
        except LookupError:
            pass
    return translation.get_language_from_request(request)


def _policy() -> str:
    """No script, nothing inline; the stylesheet from here or from where static files live."""
    parts = urlsplit(static(STYLESHEET))
    elsewhere = f" {parts.scheme or 'https'}://{parts.netloc}" if parts.netloc else ""
    return (
        f"default-src 'none'; style-src 'self'{elsewhere}; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
