"""The pages behind the links in mail. Nobody logs in here, nothing sets a cookie.

The token in the link is the permission: CSRF protection would protect nothing and stop the
mailbox providers, who unsubscribe people by a POST of their own.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_exempt

from .hooks import web_version
from .joining import views as signup_views
from .leaving import preferences
from .leaving.address_change import became, leave_everything
from .leaving.farewell import farewell
from .models import Subscriber
from .pages import about, page
from .tokens import TEST, Kind, Token, make_token, read_token

METHODS = ("GET", "HEAD", "OPTIONS", "POST")


@csrf_exempt
@login_not_required
def link(request: HttpRequest, token: str) -> HttpResponse:
    """The page of a link token. Only a POST changes anything: scanners open every link."""
    if request.method not in METHODS:
        return HttpResponseNotAllowed(METHODS)
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers={"Allow": ", ".join(METHODS)})
    if token == TEST:
        return page(request, "link_test.html")
    known = read_token(token)
    if known is None:
        # Gone, not "not found": a host's LocaleMiddleware sends what is not found on to a page
        # with a language prefix, where it has one for every path.
        return page(request, "link_unknown.html", status=410)
    match known.kind:
        case Kind.UNSUBSCRIBE:
            return _leave(request, known)
        case Kind.PREFERENCES:
            return preferences.show(request, known)
        case Kind.CONFIRM:
            return signup_views.confirm(request, known)
        case Kind.WEB if request.method != "POST":
            return _web_version(request, known)
        case _:
            return page(request, "link_unknown.html", status=404)


def _leave(request: HttpRequest, known: Token) -> HttpResponse:
    """POST unsubscribes (RFC 8058): whatever its body and type, without a cookie, answered by 200
    however often it comes. The body is not even read. GET shows the button."""
    person = Subscriber.objects.select_related("account").filter(pk=known.subscriber_id).first()
    if person is None:
        return page(request, "subscriber_gone.html")
    if request.method == "POST":
        where = f" of campaign {known.campaign_id}" if known.campaign_id else ""
        agent = request.headers.get("User-Agent", "unknown")[:200]
        said = f"POST to the unsubscribe link{where} by {agent}"
        leave_everything(person, evidence=said, campaign_id=known.campaign_id)
    elif any(one.status != Subscriber.Status.UNSUBSCRIBED for one in (person, *became(person))):
        token = make_token(Kind.PREFERENCES, person.pk, known.campaign_id)
        choices = reverse("sendonce:link", args=[token])
        return about(request, "unsubscribe.html", person, context={"preferences_link": choices})
    return farewell(request, person)


def _web_version(request: HttpRequest, known: Token) -> HttpResponse:
    html = web_version(known.subscriber_id, known.campaign_id) if known.campaign_id else None
    if html is None:
        return page(request, "link_unknown.html", status=404)
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
