"""The deduplication key on the wire, and what each provider makes of a second request with it."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sending.answers import Outcome
from sending.providers.table import deduplication_key
from sending.transports import Transport

from .faults import Fault
from .mail import NAMESPACE, a_message, job_id, outcome, send, through
from .running import ProviderServer, backend, options
from .shapes import SHAPES

pytest.importorskip("anymail")
pytestmark = pytest.mark.filterwarnings("ignore:django-anymail has dropped official support")

DEDUPLICATING = ["resend", "brevo", "mailjet", "unisender_go"]


def twice(
    provider: str, recipient: str, server: ProviderServer
) -> tuple[list[Outcome], list[dict[str, Any]]]:
    """A message and its replay, each built anew in a session of its own, as after a crash."""
    outcomes = []
    for _ in range(2):
        transport = through(provider, server.url(provider))
        session = transport.session()
        outcomes.append(outcome(send(session, a_message(transport, recipient))))
        session.close()
    return outcomes, server.requests(recipient)


@pytest.mark.parametrize("provider", DEDUPLICATING)
def test_a_replay_is_the_same_request(provider: str, server: ProviderServer) -> None:
    recipient = f"{Fault.RESET}-same-{provider}@example.org"
    _, requests = twice(provider, recipient, server)
    first, second = requests
    assert first["content"] == second["content"]
    assert first["headers"] == second["headers"]
    assert first["path"] == second["path"]


@pytest.mark.parametrize(
    ("provider", "replayed"),
    [
        ("resend", {Outcome.SENT}),  # the first answer again
        ("brevo", {Outcome.SENT}),  # "duplicate_parameter"
        ("mailjet", {Outcome.SENT}),  # accepted, and blocked afterwards
        # Refused, which says nothing about the first.
        ("unisender_go", {Outcome.FAILED, Outcome.IN_DOUBT}),
    ],
)
@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.RESET, Fault.CUT, Fault.GARBAGE])
def test_a_replay_is_not_accepted_again(
    provider: str, replayed: set[Outcome], fault: Fault, server: ProviderServer
) -> None:
    recipient = f"{fault}-replay-{provider}@example.org"
    outcomes, _ = twice(provider, recipient, server)
    assert outcomes[0] is Outcome.IN_DOUBT
    assert outcomes[1] in replayed
    [accepted] = server.accepted(recipient)
    assert deduplication_key(NAMESPACE, job_id(recipient)) in accepted["key"] or (
        provider == "mailjet"
    )


def test_resend_gets_its_key_as_an_http_header_and_nowhere_else(server: ProviderServer) -> None:
    recipient = "header@example.org"
    _, requests = twice("resend", recipient, server)
    key = deduplication_key(NAMESPACE, job_id(recipient))
    for request in requests:
        assert request["headers"]["idempotency-key"] == key
        assert key not in request["content"]


def test_a_subclass_of_a_known_backend_gets_it_too(server: ProviderServer) -> None:
    own = "tests.providers.own_backend.EmailBackend"
    transport = Transport("t", own, options("resend", server.url("resend")))
    assert transport.provider.name == "Resend"
    recipient = "subclass@example.org"
    assert outcome(send(transport.session(), a_message(transport, recipient))) is Outcome.SENT
    [accepted] = server.accepted(recipient)
    assert accepted["key"] == deduplication_key(NAMESPACE, job_id(recipient))


def test_brevo_gets_a_uuid_among_the_mail_headers(server: ProviderServer) -> None:
    recipient = "uuid@example.org"
    _, [request, _again] = twice("brevo", recipient, server)
    key = json.loads(request["content"])["headers"]["idempotencyKey"]
    assert UUID(key).version == 5


def test_brevos_duplicate_without_our_key_is_no_acceptance(server: ProviderServer) -> None:
    """A message that did not carry a key can't be the duplicate of its own first attempt."""
    transport = through("brevo", server.url("brevo"))
    recipient = "nokey@example.org"
    outcomes = []
    for _ in range(2):
        message = a_message(transport, recipient)
        del message.__dict__["deduplication_key"]
        outcomes.append(outcome(send(transport.session(), message)))
    assert outcomes[0] is Outcome.SENT
    assert outcomes[1] in (Outcome.IN_DOUBT, Outcome.FAILED)


def test_mailjet_gets_a_campaign_to_deduplicate_in(server: ProviderServer) -> None:
    transport = through("mailjet", server.url("mailjet"))
    for job, campaign_id in [("campaign:7:1", 7), ("campaign:8:1", 8), ("message:1:a:b", None)]:
        message = a_message(transport, "mj@example.org", job=job, campaign_id=campaign_id)
        assert outcome(send(transport.session(), message)) is Outcome.SENT
    names = [json.loads(r["content"])["Globals"] for r in server.requests("mj@example.org")]
    assert [name["CustomID"] for name in names] == ["campaign:7:1", "campaign:8:1", "message:1:a:b"]
    assert all(name["DeduplicateCampaign"] is True for name in names)
    assert len({name["CustomCampaign"] for name in names}) == 3
    # None of them is a repetition of another.
    assert len(server.accepted("mj@example.org")) == 3


def test_mailjet_refuses_some_headers_which_are_left_out(server: ProviderServer) -> None:
    transport = through("mailjet", server.url("mailjet"))
    assert outcome(send(transport.session(), a_message(transport, "hd@example.org"))) is (
        Outcome.SENT
    )
    [request] = server.requests("hd@example.org")
    headers = {name.lower() for name in json.loads(request["content"])["Globals"]["Headers"]}
    assert {"list-unsubscribe", "list-unsubscribe-post", "feedback-id"} <= headers


@pytest.mark.parametrize("provider", [name for name in SHAPES if name != "amazon_ses"])
def test_metadata_travels_where_it_can(provider: str, server: ProviderServer) -> None:
    transport = through(provider, server.url(provider))
    recipient = f"meta-{provider}@example.org"
    assert outcome(send(transport.session(), a_message(transport, recipient))) is Outcome.SENT
    [accepted] = server.accepted(recipient)
    expected = {"job_id": job_id(recipient), "installation": NAMESPACE.hex[:16]}
    given = {k: v for k, v in accepted["metadata"].items() if k in expected}
    assert given == (expected if transport.provider.has_metadata else {})


@pytest.mark.parametrize("provider", ["mailersend", "postal", "scaleway"])
def test_no_metadata_where_anymail_would_refuse_it(provider: str) -> None:
    """Were it set, not one message could be sent."""
    transport = Transport("t", backend(provider), {})
    message = a_message(transport, "a@example.org")
    assert not hasattr(message, "metadata")


def test_another_payload_under_a_key_is_doubt(server: ProviderServer) -> None:
    transport = through("resend", server.url("resend"))
    recipient = "other@example.org"
    assert outcome(send(transport.session(), a_message(transport, recipient))) is Outcome.SENT
    message = a_message(transport, recipient)
    message.subject = "Another"
    said = send(transport.session(), message)
    assert (said.code, outcome(said)) == (409, Outcome.IN_DOUBT)
    assert len(server.accepted(recipient)) == 1


def test_a_replay_beside_the_first_request_is_doubt(tmp_path: Path) -> None:
    """Resend's other 409: nobody knows yet what becomes of the request under way."""
    with ProviderServer(tmp_path, "--slow-seconds", "2") as slow, ThreadPoolExecutor(1) as thread:
        transport = through("resend", slow.url("resend"))
        recipient = f"{Fault.SLOW}-beside@example.org"
        first = thread.submit(send, transport.session(), a_message(transport, recipient))
        while not slow.requests(recipient):
            time.sleep(0.01)
        beside = send(transport.session(), a_message(transport, recipient))
        assert (beside.code, outcome(beside)) == (409, Outcome.IN_DOUBT)
        assert outcome(first.result()) is Outcome.SENT
        after = send(transport.session(), a_message(transport, recipient))
        assert (outcome(after), after.message_id) == (Outcome.SENT, first.result().message_id)
        assert len(slow.accepted(recipient)) == 1
