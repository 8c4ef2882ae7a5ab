"""What anymail's backends make of each provider's answers, faults and silence, and we of that."""

from __future__ import annotations

import itertools
import socket

import pytest

from sending import clock, sessions
from sending.answers import Outcome, Stage

from .faults import NOT_ACCEPTED, Fault
from .mail import a_message, outcome, send, through
from .running import ProviderServer
from .shapes import SHAPES

pytest.importorskip("anymail")
pytestmark = pytest.mark.filterwarnings("ignore:django-anymail has dropped official support")

OVER_HTTP = [name for name in SHAPES if name != "amazon_ses"]
_number = itertools.count()

#: What becomes of a row, by fault, wherever a provider is not named below.
BECOMES = {
    Fault.NONE: Outcome.SENT,
    Fault.SLOW: Outcome.SENT,
    Fault.BUSY: Outcome.RETRY,
    Fault.REFUSE: Outcome.BOUNCED,
    Fault.LOGIN: Outcome.RELAY_DOWN,
    Fault.DOWN: Outcome.IN_DOUBT,
    Fault.ERROR: Outcome.IN_DOUBT,
    Fault.RESET: Outcome.IN_DOUBT,
    Fault.CUT: Outcome.IN_DOUBT,
    Fault.GARBAGE: Outcome.IN_DOUBT,
    Fault.EMPTY: Outcome.IN_DOUBT,
    Fault.MOVED: Outcome.IN_DOUBT,
    Fault.GONE: Outcome.IN_DOUBT,
}
#: Where an answer says less, or where anymail does not look into it.
BUT = {
    ("unisender_go", Fault.REFUSE): Outcome.FAILED,  # which address it means it does not say
    ("sparkpost", Fault.REFUSE): Outcome.FAILED,
    # Any 2xx is an acceptance, whatever is in it.
    ("sendgrid", Fault.GARBAGE): Outcome.SENT,
    ("sendgrid", Fault.EMPTY): Outcome.SENT,
}


def address(fault: Fault) -> str:
    return f"{fault}-{next(_number)}@example.org"


@pytest.mark.parametrize("fault", BECOMES)
@pytest.mark.parametrize("provider", OVER_HTTP)
def test_each_provider_with_each_fault(provider: str, fault: Fault, server: ProviderServer) -> None:
    recipient = address(fault)
    transport = through(provider, server.url(provider))
    session = transport.session()
    said = send(session, a_message(transport, recipient))
    session.close()
    assert outcome(said) is BUT.get((provider, fault), BECOMES[fault]), said
    assert len(server.accepted(recipient)) == (fault not in NOT_ACCEPTED)
    if fault is Fault.BUSY:
        assert said.retry_after == 1
    if fault is Fault.NONE:
        assert said.message_id


@pytest.mark.parametrize("provider", OVER_HTTP)
def test_a_session_goes_on_after_a_loss(provider: str, server: ProviderServer) -> None:
    transport = through(provider, server.url(provider))
    session = transport.session()
    assert outcome(send(session, a_message(transport, address(Fault.RESET)))) is Outcome.IN_DOUBT
    assert outcome(send(session, a_message(transport, address(Fault.NONE)))) is Outcome.SENT
    session.close()


@pytest.mark.parametrize("provider", ["resend", "postmark", "mailgun"])
def test_no_answer_in_time(provider: str, server: ProviderServer) -> None:
    transport = through(provider, server.url(provider), timeout=(10, 0.3))
    recipient = address(Fault.LATE)
    said = send(transport.session(), a_message(transport, recipient))
    assert outcome(said) is Outcome.IN_DOUBT
    assert said.text.startswith("timed out")
    assert len(server.accepted(recipient)) == 1


@pytest.mark.parametrize(
    ("provider", "becomes"),
    [
        ("postmark", Outcome.FAILED),
        ("mandrill", Outcome.FAILED),
        ("sparkpost", Outcome.FAILED),
        ("mailersend", Outcome.FAILED),
        ("unisender_go", Outcome.FAILED),
    ],
)
def test_a_recipient_refused_in_the_providers_own_way(
    provider: str, becomes: Outcome, server: ProviderServer
) -> None:
    """Its list of people not to write to: refused, and no proof of a dead address."""
    recipient = address(Fault.REJECT)
    transport = through(provider, server.url(provider))
    said = send(transport.session(), a_message(transport, recipient))
    assert outcome(said) is becomes
    assert "rejected" in said.text
    assert recipient in said.text or provider == "sparkpost"  # the provider's words are kept
    assert server.accepted(recipient) == []


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as held:  # bound, and nobody listens
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
        for provider in OVER_HTTP:
            transport = through(provider, url)
            said = send(transport.session(), a_message(transport, "a@example.org"))
            assert said.stage is Stage.CONNECT, provider


@pytest.mark.parametrize("url", ["nonsense", "smtp://127.0.0.1/", "http://nowhere.invalid/"])
def test_an_address_that_leads_nowhere(url: str) -> None:
    transport = through("postmark", url)
    said = send(transport.session(), a_message(transport, "a@example.org"))
    assert outcome(said) is Outcome.RELAY_DOWN, said


@pytest.mark.parametrize("secret", ["with\na line end", "with a \u200bhidden letter"])
def test_a_key_that_no_header_can_hold(secret: str, server: ProviderServer) -> None:
    """Everybody's trouble, not this recipient's."""
    transport = through("brevo", server.url("brevo"), api_key=secret)
    said = send(transport.session(), a_message(transport, "a@example.org"))
    assert outcome(said) is Outcome.RELAY_DOWN, said


def test_https_where_http_is_spoken(server: ProviderServer) -> None:
    transport = through("resend", server.url("resend").replace("http:", "https:"))
    said = send(transport.session(), a_message(transport, "a@example.org"))
    assert said.stage is Stage.TLS
    assert outcome(said) is Outcome.RELAY_DOWN


def test_a_pair_of_time_outs_from_json(server: ProviderServer) -> None:
    transport = through("postmark", server.url("postmark"), timeout=[30, 30])
    said = send(transport.session(), a_message(transport, address(Fault.NONE)))
    assert outcome(said) is Outcome.SENT
    transport = through("postmark", server.url("postmark"), requests_timeout=[10, 0.3])
    said = send(transport.session(), a_message(transport, address(Fault.LATE)))
    assert said.text.startswith("timed out")


def test_a_proxy_that_lets_nobody_through(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")  # it knows no CONNECT
    monkeypatch.setenv("no_proxy", "")
    transport = through("postmark", "https://api.example.org/")
    said = send(transport.session(), a_message(transport, "a@example.org"))
    assert said.stage is Stage.CONNECT


def test_a_refusal_is_one_although_anymail_does_not_see_whose(server: ProviderServer) -> None:
    """Postmark names the address in its wire form, which anymail looks for in vain."""
    transport = through("postmark", server.url("postmark"))
    recipient = f"{Fault.REFUSE}-idn@grüße.example.org"
    said = send(transport.session(), a_message(transport, recipient))
    assert (said.code, outcome(said)) == (422, Outcome.BOUNCED)


def test_what_a_provider_can_not_carry_fails_alone(server: ProviderServer) -> None:
    transport = through("brevo", server.url("brevo"))
    recipient = address(Fault.NONE)
    message = a_message(transport, recipient)
    message.extra_headers["X-Note"] = "Grüße"
    said = send(transport.session(), message)
    assert said.stage is Stage.LOCAL
    assert server.requests(recipient) == []


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError("no file"), KeyError("x")])
def test_an_exception_before_the_request_is_no_doubt(
    error: Exception, server: ProviderServer
) -> None:
    from anymail.signals import pre_send

    def fail(**kwargs: object) -> None:
        raise error

    transport = through("postmark", server.url("postmark"))
    recipient = address(Fault.NONE)
    pre_send.connect(fail)
    try:
        said = send(transport.session(), a_message(transport, recipient))
    finally:
        pre_send.disconnect(fail)
    assert said.stage is Stage.LOCAL
    assert outcome(said) is Outcome.FAILED
    assert server.requests(recipient) == []


@pytest.mark.parametrize("provider", ["resend", "mandrill"])
def test_an_exception_after_an_acceptance_does_not_undo_it(
    provider: str, server: ProviderServer
) -> None:
    from anymail.exceptions import AnymailInvalidAddress
    from anymail.signals import post_send

    def fail(**kwargs: object) -> None:
        raise AnymailInvalidAddress("a receiver's bug, and it looks like a message that stayed")

    transport = through(provider, server.url(provider))
    recipient = address(Fault.NONE)
    post_send.connect(fail)
    try:
        said = send(transport.session(), a_message(transport, recipient))
    finally:
        post_send.disconnect(fail)
    assert outcome(said) is Outcome.SENT
    assert len(server.accepted(recipient)) == 1


def test_an_answer_that_anymail_fails_to_read_is_doubt(server: ProviderServer) -> None:
    """Its parser raises what it also raises for a message that never left."""
    from anymail.backends.postmark import EmailBackend
    from anymail.exceptions import AnymailInvalidAddress

    class Stumbling(EmailBackend):
        def parse_recipient_status(self, *args: object) -> None:
            raise AnymailInvalidAddress("To in the answer")

    transport = through("postmark", server.url("postmark"))
    transport.__dict__["backend_class"] = Stumbling
    recipient = address(Fault.NONE)
    said = send(transport.session(), a_message(transport, recipient))
    assert outcome(said) is Outcome.IN_DOUBT
    assert len(server.accepted(recipient)) == 1


def test_resends_conflict_says_nothing(server: ProviderServer) -> None:
    transport = through("resend", server.url("resend"))
    said = send(transport.session(), a_message(transport, address(Fault.CONFLICT)))
    assert said.code == 409
    assert outcome(said) is Outcome.IN_DOUBT


def test_a_connection_is_kept_while_it_is_in_use_and_not_trusted_after(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = through("postmark", server.url("postmark"))
    session = transport.session()
    ports = []
    for idled in (0.0, 0.0, sessions.IDLE_HTTP + 1):
        later = clock.now() + idled
        monkeypatch.setattr(clock, "now", lambda later=later: later)
        recipient = address(Fault.NONE)
        assert outcome(send(session, a_message(transport, recipient))) is Outcome.SENT
        ports.append(server.requests(recipient)[0]["client_port"])
    session.close()
    assert ports[0] == ports[1] != ports[2]
