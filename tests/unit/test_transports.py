"""Any Django backend behind one interface, and what its exceptions are taken to mean."""

from __future__ import annotations

import json
import smtplib
import socket
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.core import mail as django_mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.test import override_settings

from sending.answers import Answer
from sending.outcomes import Outcome, Stage, classify
from sending.providers.foreign_errors import Reached, answer_of_error
from sending.providers.http_answers import retry_after
from sending.sessions import sent
from sending.transports import (
    Prepared,
    Transport,
    TransportFailure,
    UnknownTransport,
    transport,
)

from .scripted_smtp import Peer, scripted


class Stub(BaseEmailBackend):
    """A backend of a third party: returns or raises what a test asks."""

    def __init__(self, result: Any = 1, opening: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.result, self.opening = result, opening
        self.calls: list[int] = []

    def open(self) -> None:
        if self.opening is not None:
            raise self.opening

    def send_messages(self, email_messages: Any) -> Any:
        self.calls.append(len(email_messages))
        if isinstance(self.result, BaseException):
            raise self.result
        if callable(self.result):
            return self.result(email_messages[0])
        return self.result


STUB = f"{__name__}.Stub"


def message(**fields: Any) -> EmailMultiAlternatives:
    fields = {"from_email": "s@example.org", "to": ["a@example.org"], **fields}
    return EmailMultiAlternatives("s", "b", **fields)


def outcome(said: Answer) -> Outcome:
    return classify(said.stage, said.code, said.enhanced, said.text).outcome


def refused(backend: str, options: dict[str, Any], **fields: Any) -> Answer:
    with pytest.raises(TransportFailure) as caught:
        sent(Transport("t", backend, options).session(), message(**fields))
    return caught.value.answer


def test_the_alias_names_a_configured_transport() -> None:
    entry = {"BACKEND": "sending.smtp.EmailBackend", "OPTIONS": {"host": "127.0.0.1", "port": 9}}
    with override_settings(SENDONCE={"TRANSPORTS": {"bulk": entry}}):
        assert transport("bulk").options == {"host": "127.0.0.1", "port": 9}
        assert transport("bulk").takes_bytes
        with pytest.raises(UnknownTransport, match="bulk"):
            transport("other")
    with (
        override_settings(SENDONCE={"TRANSPORTS": {"x": {"OPTIONS": {}}}}),
        pytest.raises(UnknownTransport, match="BACKEND"),
    ):
        transport("x")


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("nowhere.at.All", {}),
        ("sending.smtp.EmailBackend", {"host": "h", "prot": 25}),
        ("sending.smtp.EmailBackend", {"host": "h", "use_tls": True, "use_ssl": True}),
        ("django.core.mail.backends.filebased.EmailBackend", {"file_path": __file__}),
    ],
)
def test_an_entry_that_can_not_be_used(backend: str, options: dict[str, Any]) -> None:
    with pytest.raises(UnknownTransport, match="'t'"):
        Transport("t", backend, options).session()


def test_our_own_backend_takes_a_django_message_or_bytes() -> None:
    bodies: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello()
        bodies.append(peer.take())
        bodies.append(peer.take(b"550 5.7.1 no"))
        assert peer.ask(b"250 ok") == b"RSET"
        peer.bye()

    with scripted(talk) as server:
        options = {"host": "127.0.0.1", "port": server.port, "local_hostname": "c.example.org"}
        session = Transport("t", "sending.smtp.EmailBackend", options).session()
        session.open()
        assert session.is_open
        assert sent(session, message()).code == 250
        with pytest.raises(TransportFailure) as caught:
            sent(session, Prepared("s@example.org", "b@example.org", b"A: b\r\n\r\n"))
        assert caught.value.answer.code == 550
        session.close()
    assert b"Subject: s\r\n" in bodies[0]
    assert bodies[1] == b"A: b\r\n\r\n"


def test_a_django_backend() -> None:
    django_mail.outbox = []
    session = Transport("t", "django.core.mail.backends.locmem.EmailBackend").session()
    session.open()
    said = sent(session, message())
    assert outcome(said) is Outcome.SENT
    assert [m.to for m in django_mail.outbox] == [["a@example.org"]]
    session.close()


def test_djangos_smtp_backend() -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.ask(b"250 ok")
        peer.ask(b"550 5.1.1 no")
        peer.ask(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        options = {"host": "127.0.0.1", "port": server.port}
        path = "django.core.mail.backends.smtp.EmailBackend"
        session = Transport("t", path, options).session()
        session.open()
        assert outcome(sent(session, message())) is Outcome.SENT
        with pytest.raises(TransportFailure) as caught:
            sent(session, message())
        session.close()
    assert (caught.value.answer.stage, caught.value.answer.code) == (Stage.RCPT, 550)


@pytest.mark.parametrize(
    ("error", "stage", "code", "becomes"),
    [
        (smtplib.SMTPRecipientsRefused({"a": (550, b"5.1.1 no")}), "rcpt", 550, "bounced"),
        (smtplib.SMTPSenderRefused(550, b"no", "s"), "mail", 550, "relay_down"),
        (smtplib.SMTPDataError(554, b"5.7.1 spam"), "dot", 554, "failed"),
        (smtplib.SMTPDataError(-1, b"what"), "dot", None, "in_doubt"),
        (smtplib.SMTPAuthenticationError(535, b"no"), "auth", 535, "relay_down"),
        (smtplib.SMTPConnectError(421, b"busy"), "greeting", 421, "relay_down"),
        (smtplib.SMTPHeloError(550, b"no"), "ehlo", 550, "relay_down"),
        (smtplib.SMTPNotSupportedError("SMTPUTF8"), "local", None, "failed"),
        (smtplib.SMTPServerDisconnected("gone"), "dot", None, "in_doubt"),
        (smtplib.SMTPException("odd"), "dot", None, "in_doubt"),
        (ConnectionResetError("reset"), "dot", None, "in_doubt"),
        (TimeoutError("late"), "dot", None, "in_doubt"),
        (ConnectionRefusedError("no"), "connect", None, "relay_down"),
        (socket.gaierror("who"), "connect", None, "relay_down"),
        (ImproperlyConfigured("no key"), "connect", None, "relay_down"),
        (ValueError("newline in header"), "local", None, "failed"),
        (json.JSONDecodeError("odd", "", 0), "dot", None, "in_doubt"),
        (RuntimeError("who knows"), "dot", None, "in_doubt"),
        (TypeError("who knows"), "dot", None, "in_doubt"),
    ],
)
def test_exceptions_while_sending(error: Exception, stage: str, code: Any, becomes: str) -> None:
    said = refused(STUB, {"result": error})
    assert (said.stage, said.code, outcome(said)) == (stage, code, becomes)


def test_an_error_that_is_handled_elsewhere_does_not_speak_for_this_one() -> None:
    """Python hangs it on as the context of whatever is raised meanwhile."""
    try:
        raise ConnectionRefusedError("of something else")
    except ConnectionRefusedError:
        said = refused(STUB, {"result": ConnectionResetError("after the request")})
    assert outcome(said) is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    "error", [OSError("x"), ValueError("x"), smtplib.SMTPServerDisconnected("x"), RuntimeError("x")]
)
def test_nothing_is_in_doubt_while_opening(error: Exception) -> None:
    session = Transport("t", STUB, {"opening": error}).session()
    with pytest.raises(TransportFailure) as caught:
        session.open()
    assert outcome(caught.value.answer) is Outcome.RELAY_DOWN
    assert not session.is_open


@pytest.mark.parametrize(("count", "becomes"), [(0, "failed"), (None, "in_doubt")])
def test_a_count_that_is_no_acceptance(count: Any, becomes: str) -> None:
    assert outcome(refused(STUB, {"result": count})) == becomes


@pytest.mark.parametrize("fields", [{"to": []}, {"to": ["a@example.org", "b@example.org"]}])
def test_one_recipient_a_message(fields: dict[str, Any]) -> None:
    assert refused(STUB, {}, **fields).stage is Stage.LOCAL


def test_an_aborted_session_sends_nothing_until_closed() -> None:
    session = Transport("t", STUB).session()
    session.abort()
    with pytest.raises(TransportFailure):
        sent(session, message())
    session.close()
    assert outcome(sent(session, message())) is Outcome.SENT


# -- anymail -------------------------------------------------------------------------------

ANYMAIL = "anymail.backends.test.EmailBackend"


def anymail_error(status: int | None, body: bytes = b"{}", **headers: str) -> Exception:
    requests = pytest.importorskip("requests")
    from anymail.exceptions import AnymailRequestsAPIError

    response = None
    if status is not None:
        response = requests.Response()
        response.status_code, response._content = status, body
        response.headers.update(headers)
    return AnymailRequestsAPIError("no", response=response)


def wrapped(cause: BaseException) -> Exception:
    """As anymail wraps what requests raised."""
    error = anymail_error(None)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("status", "body", "becomes"),
    [
        (400, b"", "failed"),
        (401, b"bad key", "relay_down"),
        (403, b"domain is not verified", "failed"),
        (409, b"concurrent", "in_doubt"),
        (422, b'{"message": "Invalid `to` field"}', "bounced"),
        (429, b"slow down", "retry"),
        (500, b"", "in_doubt"),
        (503, b"", "in_doubt"),
        (200, b"not json", "in_doubt"),
    ],
)
def test_anymail_http_errors(status: int, body: bytes, becomes: str) -> None:
    said = refused(STUB, {"result": anymail_error(status, body)})
    assert said.stage is Stage.HTTP
    assert outcome(said) == becomes


def test_anymail_retry_after() -> None:
    error = anymail_error(429, b"", **{"Retry-After": "17"})
    assert answer_of_error(error, Reached.SENDING).retry_after == 17


def test_anymail_losses() -> None:
    requests = pytest.importorskip("requests")
    urllib3 = pytest.importorskip("urllib3")
    refused_here = urllib3.exceptions.NewConnectionError(None, "refused")
    unreached = requests.ConnectionError(urllib3.exceptions.MaxRetryError(None, "/", refused_here))
    broken = requests.ConnectionError(urllib3.exceptions.ProtocolError("aborted", OSError("x")))
    for cause, becomes in [
        (unreached, Outcome.RELAY_DOWN),
        (requests.ConnectTimeout("late"), Outcome.RELAY_DOWN),
        (requests.ReadTimeout("late"), Outcome.IN_DOUBT),
        (broken, Outcome.IN_DOUBT),
        (requests.exceptions.ChunkedEncodingError("cut"), Outcome.IN_DOUBT),
    ]:
        assert outcome(refused(STUB, {"result": wrapped(cause)})) is becomes, cause


def test_anymail_never_left() -> None:
    exceptions = pytest.importorskip("anymail.exceptions")
    for name in ("InvalidAddress", "UnsupportedFeature", "SerializationError"):
        said = refused(STUB, {"result": getattr(exceptions, f"Anymail{name}")("no")})
        assert said.stage is Stage.LOCAL, name


@pytest.mark.parametrize(
    ("status", "becomes"),
    [("invalid", "bounced"), ("rejected", "failed"), ("failed", "failed"), ("unknown", "in_doubt")],
)
def test_anymail_statuses(status: str, becomes: str) -> None:
    pytest.importorskip("anymail")
    from anymail.message import AnymailRecipientStatus

    entry = {"a@example.org": AnymailRecipientStatus("id-1", status)}
    mail = message()
    mail.anymail_test_response = {"recipient_status": entry}  # type: ignore[attr-defined]
    with pytest.raises(TransportFailure) as caught:
        sent(Transport("t", ANYMAIL).session(), mail)
    assert outcome(caught.value.answer) == becomes


def test_anymail_accepts_and_gives_its_id() -> None:
    pytest.importorskip("anymail")
    from anymail.message import AnymailRecipientStatus

    mail = message()
    entry = {"a@example.org": AnymailRecipientStatus("id-1", "queued")}
    mail.anymail_test_response = {"recipient_status": entry}  # type: ignore[attr-defined]
    said = sent(Transport("t", ANYMAIL).session(), mail)
    assert (said.stage, said.code, said.message_id) == (Stage.HTTP, 200, "id-1")


def test_what_is_raised_after_an_acceptance_does_not_undo_it() -> None:
    """anymail lets the exception of a ``post_send`` receiver through, with the status set."""

    def accepted_then_raised(mail: Any) -> None:
        entry = SimpleNamespace(status="sent", message_id="id-2")
        mail.anymail_status = SimpleNamespace(recipients={"a@example.org": entry})
        raise RuntimeError("a receiver's bug")

    said = sent(Transport("t", STUB, {"result": accepted_then_raised}).session(), message())
    assert said.message_id == "id-2"


def test_the_status_of_an_earlier_attempt_does_not_speak_for_this_one() -> None:
    mail = message()
    entry = SimpleNamespace(status="sent", message_id="id-3")
    mail.anymail_status = SimpleNamespace(recipients={"a": entry})  # type: ignore[attr-defined]
    with pytest.raises(TransportFailure) as caught:
        sent(Transport("t", STUB, {"result": OSError("lost")}).session(), mail)
    assert outcome(caught.value.answer) is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 60),
        ({"X-RateLimit-Reset": "1767225690"}, 90),
        ({"ratelimit-reset": "1.5"}, 1.5),
        ({"x-sib-ratelimit-reset": "12"}, 12),
        ({"x-ratelimit-reset": "1767225690000"}, 90),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-4"}, None),
        ({}, None),
    ],
)
def test_retry_after_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
