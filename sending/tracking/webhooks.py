"""The addresses to which providers send their tracking events: anymail's views, made stricter.

anymail tells its providers apart, checks their signatures and reads their formats. Around it:

* all events of a request are stored by one insert, and only then the answer is 200;
* a wrong or missing secret is 403 and counted; without any secret configured, everything is
  (anymail would take events from anybody, and whoever can invent bounces can suppress people);
* what can't be read is 400 and counted; one such event among others does not cost the others;
* a database that is away is 503, and the provider tries again.

A host that serves ``anymail.urls`` itself gets there by the signal; see ``connect``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import (
    ImproperlyConfigured,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.module_loading import import_string
from django.views.decorators.csrf import csrf_exempt

from ..models import ProviderEvent
from .inbox import take_in
from .reading import unreadable
from .webhook_counts import MALFORMED, REFUSED, TOO_LARGE, count

log = logging.getLogger("sendonce.webhooks")

#: anymail's tracking views by the name in their address, which is the one in ``anymail.urls``.
VIEWS = {
    "amazon_ses": "amazon_ses.AmazonSESTrackingWebhookView",
    "brevo": "brevo.BrevoTrackingWebhookView",
    "mailersend": "mailersend.MailerSendTrackingWebhookView",
    "mailgun": "mailgun.MailgunTrackingWebhookView",
    "mailjet": "mailjet.MailjetTrackingWebhookView",
    "mailtrap": "mailtrap.MailtrapTrackingWebhookView",
    "mandrill": "mandrill.MandrillCombinedWebhookView",
    "postal": "postal.PostalTrackingWebhookView",
    "postmark": "postmark.PostmarkTrackingWebhookView",
    "resend": "resend.ResendTrackingWebhookView",
    "sendgrid": "sendgrid.SendGridTrackingWebhookView",
    "sparkpost": "sparkpost.SparkPostTrackingWebhookView",
    "unisender_go": "unisender_go.UnisenderGoTrackingWebhookView",
}
#: Seconds after which a provider may try again when the database is away.
RETRY_AFTER = 30
#: What anymail's readers raise at the sight of something that they do not expect.
_UNEXPECTED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    OSError,
    RecursionError,
    ImproperlyConfigured,  # "you seem to have set the inbound address here"
    MultiPartParserError,
)
_STORED = "sendonce_stored"


class Refused(Exception):
    """It is not shown that the provider sent it."""


class Malformed(Exception):
    """Nothing in the request could be read."""


class _Storing:
    """Stands before one of anymail's tracking views in the order of its bases."""

    esp_name: str
    validators: list[Callable[..., None]]
    basic_auth: Any
    is_signed = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # An empty one among them would let in whoever shows an empty login.
        self.basic_auth = [secret for secret in self.basic_auth or () if secret]
        self.unread: list[ProviderEvent] = []
        self.why: BaseException | None = None

    # anymail sets this to False where it checks a signature, and else warns once that anybody
    # may post. We refuse instead.
    @property
    def warn_if_no_basic_auth(self) -> bool:
        return False

    @warn_if_no_basic_auth.setter
    def warn_if_no_basic_auth(self, value: bool) -> None:
        self.is_signed = not value

    def run_validators(self, request: HttpRequest) -> None:
        """Raises ``Refused`` or ``Malformed``."""
        if not (self.basic_auth or self.is_signed):
            raise Refused("no secret is configured")
        from anymail.exceptions import AnymailError, AnymailWebhookValidationFailure

        try:
            # The secret first: whoever does not know it does not get the body looked at.
            for validator in reversed(self.validators):
                validator(self, request)
        except AnymailWebhookValidationFailure as error:
            raise Refused("wrong or missing secret or signature") from error
        except ImproperlyConfigured as error:
            raise Refused(str(error)) from error
        except SuspiciousOperation:
            raise
        except (AnymailError, *_UNEXPECTED) as error:
            raise Malformed from error

    def parse_events(self, request: HttpRequest) -> list[Any]:
        """The events, stored already; anymail hands them on to other receivers of its signal."""
        from anymail.exceptions import AnymailError, AnymailWebhookValidationFailure
        from anymail.signals import AnymailTrackingEvent

        try:
            events = [e for e in super().parse_events(request) if e is not None]  # type: ignore[misc]
        except AnymailWebhookValidationFailure as error:
            raise Refused("an unexpected subscription") from error
        except SuspiciousOperation:
            raise
        except (AnymailError, *_UNEXPECTED) as error:
            raise Malformed from error
        if self.unread and not events:
            raise Malformed from self.why
        tracked = [e for e in events if isinstance(e, AnymailTrackingEvent)]
        self._store(tracked)
        for event in tracked:
            setattr(event, _STORED, True)
        return events

    def _store(self, tracked: list[Any]) -> None:
        try:
            take_in(tracked, self.esp_name, self.unread)
        except (OperationalError, InterfaceError):
            # A connection kept from before a restart of the server fails once; storing twice
            # what was stored is harmless.
            connection.close()
            take_in(tracked, self.esp_name, self.unread)
        if self.unread:
            count({(self.esp_name, MALFORMED): len(self.unread)})

    def esp_to_anymail_event(self, *told: Any) -> Any:
        """One event; None where it can't be read, which is then kept as it came."""
        try:
            return super().esp_to_anymail_event(*told)  # type: ignore[misc]
        except ImproperlyConfigured:
            raise
        except _UNEXPECTED as error:
            self.why = error
            raw = next((part for part in told if isinstance(part, dict)), told[0])
            self.unread.append(unreadable(raw, self.esp_name, received=timezone.now()))
            return None


def patterns() -> list[URLPattern]:
    """``<provider>/tracking/`` for every provider that anymail has a view for; none without
    anymail."""
    found = []
    for name, dotted in VIEWS.items():
        if not _is_there(dotted):
            continue
        view = endpoint(dotted)
        found.append(path(f"{name}/tracking/", view, name=f"{name}_tracking_webhook"))
        if name == "mandrill":
            found.append(path("mandrill/", view, name="mandrill_webhook"))
        if name == "brevo":  # its old name
            found.append(path("sendinblue/tracking/", view, name="sendinblue_tracking_webhook"))
    return found


def _is_there(dotted: str) -> bool:
    try:
        return find_spec(f"anymail.webhooks.{dotted.partition('.')[0]}") is not None
    except ModuleNotFoundError:  # no anymail at all
        return False


def endpoint(dotted: str) -> Callable[..., HttpResponseBase]:
    """The view around one of anymail's tracking views.

    The first request imports it: with all of them come boto3 and other libraries, for which each
    start of a site or a sender would pay, and of which it uses one or two.
    """

    @cache
    def storing() -> Any:
        theirs = import_string(f"anymail.webhooks.{dotted}")
        is_signed = not getattr(theirs, "warn_if_no_basic_auth", True)
        return type(f"Storing{theirs.__name__}", (_Storing, theirs), {"is_signed": is_signed})

    @csrf_exempt
    @login_not_required
    @transaction.non_atomic_requests
    def view(request: HttpRequest) -> HttpResponseBase:
        return _answer(storing(), request)

    return view


def _answer(view_class: Any, request: HttpRequest) -> HttpResponseBase:
    esp = str(view_class.esp_name)
    try:
        view = view_class()
    except ImproperlyConfigured as error:  # a key, or a package that checks it, is missing
        return _refuse(esp, str(error))
    try:
        view.setup(request)
        response: HttpResponseBase = view.dispatch(request)
    except Refused as refused:
        return _refuse(esp, str(refused))
    except RequestDataTooBig:
        count({(esp, TOO_LARGE): 1})
        return _plain(413, "The request is too large.")
    except (Malformed, SuspiciousOperation, UnreadablePostError) as error:
        count({(esp, MALFORMED): 1})
        cause = type(error.__cause__ or error).__name__
        log.warning("a webhook of %s could not be read: %s", esp, cause)
        return _plain(400, "The request could not be read.")
    except (OperationalError, InterfaceError) as error:
        log.error("events of %s not stored, it is to try again: %s", esp, str(error).strip())
        connection.close()
        response = _plain(503, "Try again later.")
        response.headers["Retry-After"] = str(RETRY_AFTER)
    return response


def _refuse(esp: str, why: str) -> HttpResponse:
    count({(esp, REFUSED): 1})
    _say_once(esp, why)
    return _plain(403, "Forbidden.")


def _plain(status: int, text: str) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")


_said: set[tuple[str, str]] = set()
_saying = threading.Lock()


def _say_once(esp: str, why: str) -> None:
    """A scanner must not fill the log; the counts say how often."""
    with _saying:
        if (esp, why) in _said:
            return
        _said.add((esp, why))
    log.error(
        "webhooks of %s are refused (%s). Set ANYMAIL = {'WEBHOOK_SECRET': 'name:password'} and "
        "put name:password@ before the host in the address that the provider is given.",
        esp,
        why,
    )


def connect() -> bool:
    """Receive anymail's signal, for a host that serves ``anymail.urls`` itself or calls the
    signal; False where anymail is not installed. An error propagates: anymail answers 500 then,
    and the provider tries again."""
    try:
        from anymail.signals import tracking
    except ImportError:
        return False
    tracking.connect(_received, dispatch_uid="sendonce.webhooks")
    return True


def _received(*, event: Any, esp_name: str, **_: Any) -> None:
    if not getattr(event, _STORED, False):
        take_in([event], esp_name)
