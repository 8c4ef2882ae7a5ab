"""Amazon SES with botocore's own client, against a local endpoint."""

from __future__ import annotations

import base64
import email
import json
from typing import Any

import pytest

from sending.answers import Outcome, Reason, Stage
from sending.outcomes import classify
from sending.providers.http_answers import http_answer
from sending.transports import Transport

from .faults import NOT_ACCEPTED, Fault
from .mail import NAMESPACE, a_message, job_id, outcome, send, through
from .running import ProviderServer, backend, options

pytest.importorskip("anymail")
pytest.importorskip("boto3")


@pytest.mark.parametrize(
    ("fault", "becomes"),
    [
        (Fault.NONE, Outcome.SENT),
        (Fault.SLOW, Outcome.SENT),
        (Fault.BUSY, Outcome.RETRY),
        (Fault.REFUSE, Outcome.FAILED),
        (Fault.REJECT, Outcome.FAILED),
        (Fault.LOGIN, Outcome.RELAY_DOWN),
        (Fault.DOWN, Outcome.IN_DOUBT),
        (Fault.ERROR, Outcome.IN_DOUBT),
        (Fault.RESET, Outcome.IN_DOUBT),
        (Fault.CUT, Outcome.IN_DOUBT),
        (Fault.GARBAGE, Outcome.IN_DOUBT),
        (Fault.EMPTY, Outcome.IN_DOUBT),
    ],
)
def test_each_fault(fault: Fault, becomes: Outcome, server: ProviderServer) -> None:
    recipient = f"{fault}-ses@example.org"
    transport = through("amazon_ses", server.url("amazon_ses"))
    session = transport.session()
    said = send(session, a_message(transport, recipient))
    session.close()
    assert outcome(said) is becomes, said
    # botocore asked once, whatever it was told.
    assert len(requests_to(recipient, server)) == 1
    assert len(server.accepted(recipient)) == (fault not in NOT_ACCEPTED)


def test_botocore_would_have_sent_it_again(server: ProviderServer) -> None:
    """Why E006 insists: with botocore's default the same fault is two accepted messages."""
    given = options("amazon_ses", server.url("amazon_ses"))
    del given["client_params"]["config"]["retries"]
    transport = Transport("t", backend("amazon_ses"), given)
    recipient = f"{Fault.ERROR}-again@example.org"
    said = send(transport.session(), a_message(transport, recipient))
    assert outcome(said) is Outcome.SENT
    assert len(server.accepted(recipient)) == 2


def test_no_answer_in_time(server: ProviderServer) -> None:
    transport = through("amazon_ses", server.url("amazon_ses"), read_timeout=0.4)
    recipient = f"{Fault.LATE}-ses@example.org"
    said = send(transport.session(), a_message(transport, recipient))
    assert outcome(said) is Outcome.IN_DOUBT
    assert len(server.accepted(recipient)) == 1


def test_nobody_there() -> None:
    transport = through("amazon_ses", "http://127.0.0.1:9/")
    said = send(transport.session(), a_message(transport, "a@example.org"))
    assert said.stage is Stage.CONNECT


def test_the_message_is_ours_byte_for_byte(server: ProviderServer) -> None:
    transport = through("amazon_ses", server.url("amazon_ses"))
    recipient = "bytes-ses@example.org"
    message = a_message(transport, recipient)
    plain = message.wire_bytes()
    assert outcome(send(transport.session(), message)) is Outcome.SENT
    [request] = requests_to(recipient, server)
    raw = base64.b64decode(json.loads(request["content"])["Content"]["Raw"]["Data"])
    sent, expected = email.message_from_bytes(raw), email.message_from_bytes(plain)
    for name in ("From", "To", "Subject", "Message-ID", "List-Unsubscribe", "Date"):
        assert sent[name] == expected[name], name
    metadata = {"job_id": job_id(recipient), "installation": NAMESPACE.hex[:16]}
    assert json.loads(sent["X-Metadata"]) == metadata


@pytest.mark.parametrize(
    ("name", "message", "status", "becomes", "reason"),
    [
        ("ThrottlingException", "Maximum sending rate exceeded.", 400, "retry", "throttled"),
        ("TooManyRequestsException", "slow down", 429, "retry", "throttled"),
        ("ThrottlingException", "Daily message quota exceeded.", 400, "relay_down", "quota"),
        ("AccountSuspendedException", "suspended", 400, "relay_down", "relay"),
        ("SendingPausedException", "paused", 400, "relay_down", "relay"),
        ("SignatureDoesNotMatch", "no", 403, "relay_down", "credentials"),
        ("ExpiredTokenException", "old", 403, "relay_down", "credentials"),
        ("InternalServiceErrorException", "oops", 500, "in_doubt", None),
    ],
)
def test_amazons_errors_by_name(
    name: str, message: str, status: int, becomes: str, reason: str | None
) -> None:
    ClientError = pytest.importorskip("botocore.exceptions").ClientError
    response = {
        "Error": {"Code": name, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
    }
    said = http_answer(ClientError(response, "SendEmail"))
    verdict = classify(said.stage, said.code, said.enhanced, said.text)
    assert verdict.outcome == becomes
    assert reason is None or verdict.reason is Reason(reason)


def requests_to(recipient: str, server: ProviderServer) -> list[dict[str, Any]]:
    return [r for r in server.requests(recipient) if r["provider"] == "amazon_ses"]
