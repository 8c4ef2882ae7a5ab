"""A message as a lane has it, and sending it as a lane does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from campaigns.rendering import Rendered
from sending.answers import Answer, Outcome
from sending.messages import Envelope, SendMessage, build_message
from sending.outcomes import classify
from sending.sessions import sent
from sending.transports import Session, Transport, TransportFailure

from .running import backend, options

NAMESPACE = UUID("0d1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b")
DATE = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def job_id(recipient: str) -> str:
    return f"campaign:7:{recipient.partition('@')[0]}"


def a_message(
    transport: Transport,
    recipient: str,
    *,
    job: str = "",
    campaign_id: int | None = 7,
    unsubscribe_url: str = "https://www.example.org/u/1",
) -> SendMessage:
    """Bulk mail with every header it can have, prepared for ``transport``."""
    job = job or job_id(recipient)
    message = build_message(
        Envelope(
            to=recipient,
            from_email="news@example.org",
            from_name="Żółw, Ltd",
            reply_to="answers@example.org",
            job_id=job,
            namespace=NAMESPACE,
            date=DATE,
            account_slug="zolw",
            account_name="Żółw, Ltd",
            campaign_id=campaign_id,
            unsubscribe_url=unsubscribe_url if campaign_id else "",
        ),
        Rendered(subject="Grüße", text="Hello\n", html="<p>Grüße</p>"),
    )
    transport.prepare(message, job_id=job, namespace=NAMESPACE, send_id=11, campaign_id=campaign_id)
    return message


def through(provider: str, url: str, **more: Any) -> Transport:
    return Transport("t", backend(provider), options(provider, url, **more))


def send(session: Session, message: Any) -> Answer:
    """The answer, an acceptance or not."""
    try:
        session.open()
        return sent(session, message)
    except TransportFailure as failure:
        return failure.answer


def outcome(said: Answer) -> Outcome:
    return classify(said.stage, said.code, said.enhanced, said.text).outcome
