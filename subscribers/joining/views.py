"""The pages by which people join: the form, its JSON endpoint, and the link in the mail.

Neither sets nor reads a cookie, and the forms have no CSRF token. They stand on other sites, where
no token could be; and there is nothing to protect: a request acts for nobody who is logged in, and
all it does is what anybody can do from anywhere, within the same limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse, QueryDict
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt

from ..client_address import client_address
from ..languages import language_of
from ..models import Signup, SignupForm
from ..pages import guarded, masked, page
from ..tokens import Token
from .asking import Entry, Origin, digest, request_signup
from .confirming import Confirmation, State, confirm_signup, look
from .fields import TRAP, EntryForm, as_locale, entry_form, language_wanted
from .json_endpoint import MAX_BODY, Refused, as_fields, read
from .limits import Verdict
from .origins import allows, origins

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

#: What somebody who was asked to wait is told to wait, in seconds.
RETRY_AFTER = 3600
#: How long a browser may remember what it may post, in seconds.
PREFLIGHT_AGE = 600
_TOO_MUCH = _("That was too much text.")
_BROKEN = _("That could not be read. Please try again.")
_BUSY = frozenset({Verdict.NETWORK, Verdict.ACCOUNT})
_UNREADABLE = (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)


# --- the form ------------------------------------------------------------------------------------


@csrf_exempt
@login_not_required
def form_page(request: HttpRequest, account: str, form: str) -> HttpResponse:
    """A form's page; POST asks to join. Its answer is the same for every address."""
    if request.method not in {"GET", "HEAD", "POST"}:
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    signup = _open_form(account, form)
    if signup is None:
        return page(request, "signup_closed.html", status=404)
    given = entry_form(signup)
    if request.method != "POST":
        return _show(
            request, signup, given(initial={"locale": as_locale(request.GET.get("locale"))})
        )
    if _body_size(request) > MAX_BODY:
        return _show(request, signup, given(), wrong=_TOO_MUCH, status=413)
    try:
        data = request.POST if _body_size(request) else QueryDict()
    except _UNREADABLE:
        return _show(
            request,
            signup,
            given(),
            wrong=_BROKEN,
            status=400,
        )
    entry = given(data)
    if not entry.is_valid():
        return _show(request, signup, entry, status=400)
    if _ask(request, signup, entry, trapped=bool(data.get(TRAP))) in _BUSY:
        return _busy(request, signup, entry)
    if signup.thanks_url:
        return guarded(HttpResponse(status=303, headers={"Location": signup.thanks_url}))
    return _page_of(request, "signup_sent.html", signup, locale=entry.cleaned_data["locale"])


def _show(
    request: HttpRequest,
    signup: SignupForm,
    entry: EntryForm,
    *,
    wrong: StrPromise | str = "",
    status: int = 200,
) -> HttpResponse:
    # The words on the page are those of now, whatever was sent along.
    context = {
        "form": signup,
        "entry": entry,
        "words": digest(signup.consent_text),
        "trap": TRAP,
        "wrong": wrong,
    }
    locale = as_locale(entry["locale"].value())
    return _page_of(request, "signup.html", signup, locale=locale, context=context, status=status)


def _busy(request: HttpRequest, signup: SignupForm, entry: EntryForm) -> HttpResponse:
    locale = entry.cleaned_data["locale"]
    response = _page_of(request, "signup_busy.html", signup, locale=locale, status=429)
    response.headers["Retry-After"] = str(RETRY_AFTER)
    return response


def _page_of(
    request: HttpRequest, template: str, signup: SignupForm, **options: Any
) -> HttpResponse:
    return page(
        request,
        template,
        account=signup.account,
        framed_by=origins(signup.allowed_origins),
        leads_to=signup.thanks_url,
        **options,
    )


# --- JSON ----------------------------------------------------------------------------------------


@csrf_exempt
@login_not_required
def form_json(request: HttpRequest, account: str, form: str) -> HttpResponse:
    """``POST {"email": ..., "attributes": {...}}``: 202, or 400 with the errors by field. For
    scripts of the form's allowed origins (CORS, without credentials) and for programs."""
    signup = _open_form(account, form)
    if signup is None:
        return _answer({"errors": {"form": ["There is no such form."]}}, 404)
    if not allows(request, signup.allowed_origins):
        response = _answer({"errors": {"origin": ["This site may not use the form."]}}, 403)
    elif request.method == "OPTIONS":
        response = guarded(HttpResponse(status=204))
    elif request.method != "POST":
        response = _answer({"errors": {"method": ["Use POST."]}}, 405)
    else:
        return _with_cors(request, _post_json(request, signup))
    response.headers["Allow"] = "OPTIONS, POST"
    return _with_cors(request, response)


def _post_json(request: HttpRequest, signup: SignupForm) -> HttpResponse:
    if request.content_type != "application/json":
        return _answer({"errors": {"body": ["Send it as application/json."]}}, 415)
    given = entry_form(signup)
    try:
        body = b"" if _body_size(request) > MAX_BODY else request.read(MAX_BODY + 1)
        if not 0 < len(body) <= MAX_BODY:
            return _answer({"errors": {"body": [f"1 to {MAX_BODY} octets."]}}, 413)
        data, answered = as_fields(read(body), given.definitions.values())
    except Refused as refused:
        return _answer({"errors": refused.errors}, 400)
    except _UNREADABLE:
        return _answer({"errors": {"body": ["It could not be read."]}}, 400)
    entry = given(data)
    with translation.override(language_of(request, as_locale(data["locale"]))):
        if not entry.is_valid():
            return _answer({"errors": _errors(entry)}, 400)
    verdict = _ask(request, signup, entry, trapped=bool(data[TRAP]), answered=answered)
    if verdict in _BUSY:
        response = _answer({"errors": {"form": ["Too many requests. Try again later."]}}, 429)
        response.headers["Retry-After"] = str(RETRY_AFTER)
        return response
    return _answer({"status": "accepted"}, 202)


def _errors(entry: EntryForm) -> dict[str, list[str]]:
    names = {name: f"attributes.{d.key}" for name, d in entry.definitions.items()}
    return {names.get(name, name): [*map(str, texts)] for name, texts in entry.errors.items()}


def _answer(content: dict[str, Any], status: int) -> HttpResponse:
    return guarded(JsonResponse(content, status=status))


def _with_cors(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Origin"])
    asking = request.headers.get("Origin")
    if asking is not None and response.status_code != 403:
        response.headers["Access-Control-Allow-Origin"] = asking
        if request.method == "OPTIONS":
            response.headers["Access-Control-Allow-Methods"] = "POST"
            response.headers["Access-Control-Allow-Headers"] = "Content-Type"
            response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_AGE)
    return response


# --- the link in the mail ------------------------------------------------------------------------


def confirm(request: HttpRequest, token: Token) -> HttpResponse:
    """The page behind a confirmation link: GET says what will happen, POST does it. Called by
    ``views.link`` for a token that is ours."""
    if request.method == "POST":
        found = confirm_signup(token.subscriber_id, _origin(request))
    else:
        found = look(token.subscriber_id)
    form = found.signup.form if found.signup else None
    if request.method == "POST" and found.state is State.CONFIRMED and form and form.welcome_url:
        return guarded(HttpResponse(status=303, headers={"Location": form.welcome_url}))
    return _stands(request, found)


def _stands(request: HttpRequest, found: Confirmation) -> HttpResponse:
    signup = found.signup
    if signup is None:
        return page(request, "confirm_expired.html", status=410)
    form = signup.form
    return page(
        request,
        _TEMPLATES[signup.kind, found.state],
        account=signup.account,
        locale=signup.locale,
        context={
            "address": masked(signup.email) if signup.email else "",
            "form": form,
            "consent": signup.consent,
            "segments": form.segments.filter(public=True).order_by("name", "pk") if form else (),
            "write_to": signup.account.reply_to or signup.account.from_email,
        },
        status=410 if found.state is State.OVER else 200,
        leads_to=form.welcome_url if form else "",
    )


_TEMPLATES: dict[tuple[str, State], str] = {
    (Signup.Kind.JOIN, State.WAITING): "confirm.html",
    (Signup.Kind.JOIN, State.CONFIRMED): "confirmed.html",
    (Signup.Kind.JOIN, State.REFUSED): "confirm_refused.html",
    (Signup.Kind.JOIN, State.OVER): "confirm_expired.html",
    (Signup.Kind.ADDRESS, State.WAITING): "address_confirm.html",
    (Signup.Kind.ADDRESS, State.CONFIRMED): "address_changed.html",
    (Signup.Kind.ADDRESS, State.REFUSED): "address_refused.html",
    (Signup.Kind.ADDRESS, State.OVER): "confirm_expired.html",
}


# --- what all have -------------------------------------------------------------------------------


def _open_form(account: str, form: str) -> SignupForm | None:
    forms_ = SignupForm.objects.select_related("account")
    return forms_.filter(account__slug=account, slug=form, is_open=True).first()


def _ask(
    request: HttpRequest,
    signup: SignupForm,
    entry: EntryForm,
    *,
    trapped: bool,
    answered: set[str] | None = None,
) -> Verdict:
    """``answered``: the attributes that count, where those left out are not answered by it."""
    locale = entry.cleaned_data["locale"] or language_wanted(request)
    attributes = entry.attributes
    if answered is not None:
        attributes = {key: value for key, value in attributes.items() if key in answered}
    return request_signup(
        signup,
        Entry(
            email=entry.cleaned_data["email"],
            attributes=attributes,
            locale=locale,
            language=language_of(request, locale),
            consent=entry.cleaned_data["consent"],
            trapped=trapped,
        ),
        _origin(request),
    )


def _origin(request: HttpRequest) -> Origin:
    agent = request.headers.get("User-Agent", "")
    return Origin(client_address(request), agent.replace("\0", "")[:200])


def _body_size(request: HttpRequest) -> int:
    """What the request says its body has; one that does not say has none for us."""
    said = str(request.META.get("CONTENT_LENGTH") or "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 16 else 0
