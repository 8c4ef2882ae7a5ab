"""A person's copy of what the ledger knows of them, as plain JSON data."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from campaigns.models import Campaign
from subscribers.addresses import canonical, lower
from subscribers.models import lower_c
from subscribers.tokens import read_token

from . import installation
from .answers import said
from .models import DeliveryEvent, ProviderEvent, Send
from .tracking import archived
from .wording import kind_words, reason_words

_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-])")


def personal_data(account_id: int, subscriber_id: int | None, email: str) -> dict[str, Any]:
    """``{"sends": [...], "provider_events": [...]}``, oldest first, times in ISO 8601 (UTC).

    The sends of the person and those to the address, in this account, each with the events in its
    delivery; and what mail providers told about the address. A person has some thousands of these
    at most.
    """
    forms = sorted({lower(email.strip()), lower(canonical(email))} - {""})
    sends = list(_sends(account_id, subscriber_id, forms))
    events = _events([send.pk for send in sends])
    return {
        "sends": [_send(send, events[send.pk]) for send in sends],
        "provider_events": [_told(event) for event in _provider_events(account_id, forms)],
    }


def _sends(account_id: int, subscriber_id: int | None, forms: list[str]) -> QuerySet[Send]:
    own = Send.objects.filter(account=account_id)
    # Two look-ups: of an OR of the two, neither would find its index.
    # What was sent there to somebody who has another address now is not the person's.
    theirs = Q(subscriber__isnull=True) | Q(subscriber__email_lower__in=forms)
    ids = set(own.filter(theirs, email_lower__in=forms).values_list("pk", flat=True))
    if subscriber_id is not None:
        ids |= set(own.filter(subscriber=subscriber_id).values_list("pk", flat=True))
    return (
        Send.objects.filter(pk__in=ids)
        .select_related("campaign", "content")
        .defer("campaign__body", "campaign__text_body", "content__html", "frozen")
        .order_by("pk")
    )


def _send(send: Send, events: list[DeliveryEvent]) -> dict[str, Any]:
    about = send.campaign or send.content
    return {
        "campaign": send.campaign.name if send.campaign else None,
        "subject": about.subject if about else "",
        "to": send.email,
        "data": _without_links(send.context),
        "status": send.status,
        "reason": reason_words(send.reason),
        "attempts": send.attempts,
        "handed_over": _time(send.handed_at),
        "sent": _time(send.sent_at),
        "last_answer": said(send.answer_code, send.answer_enhanced, send.answer_text),
        "provider_message_id": send.provider_message_id,
        "events": [
            {
                "at": _time(event.at),
                "what": kind_words(event.kind, event.stage),
                "reason": reason_words(event.reason, known=event.known),
                "answer": said(event.code, event.enhanced, event.text),
            }
            for event in events
        ],
    }


def _events(send_ids: list[int]) -> dict[int, list[DeliveryEvent]]:
    found: dict[int, list[DeliveryEvent]] = defaultdict(list)
    for event in DeliveryEvent.objects.filter(send__in=send_ids).order_by("at", "pk"):
        assert event.send_id is not None
        found[event.send_id].append(event)
    return found


def _provider_events(account_id: int, forms: list[str]) -> list[ProviderEvent]:
    """Those that belong to another account's row are that account's."""
    told = ProviderEvent.objects.annotate(folded=lower_c("recipient"))
    found = list(told.filter(~Q(recipient=""), folded__in=forms).order_by("pk"))
    named = DeliveryEvent.objects.filter(event_id__in=[event.event_id for event in found])
    owners = dict(named.values_list("event_id", "account_id"))
    # Those that were not applied yet say whose they are by the row that they name.
    sends = Send.objects.filter(job_id__in={event.job_id for event in found if event.job_id})
    rows = dict(sends.values_list("job_id", "account_id"))
    tag = installation.tag()
    # Or by their campaign: the row may have been pruned since, and its events with it.
    campaigns = {
        event.job_id: int(job[1])
        for event in found
        if event.installation == tag and (job := archived.JOB.fullmatch(event.job_id))
    }
    of = dict(Campaign.objects.filter(pk__in=campaigns.values()).values_list("pk", "account_id"))
    rows = {job: of[campaign] for job, campaign in campaigns.items() if campaign in of} | rows
    return [
        event
        for event in found
        if owners.get(event.event_id, rows.get(event.job_id, account_id)) == account_id
    ]


def _told(event: ProviderEvent) -> dict[str, Any]:
    return {
        "provider": event.esp,
        "at": _time(event.at),
        "received": _time(event.received),
        "what": kind_words(event.kind, "webhook"),
        "recipient": event.recipient,
        "text": event.text,
    }


def _without_links(value: Any) -> Any:
    """Plain JSON data without the tokens of links: whoever has one acts as the person."""
    if isinstance(value, dict):
        return {key: _without_links(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_links(part) for part in value]
    if isinstance(value, str):
        return _TOKEN.sub(lambda found: "(link)" if read_token(found[0]) else found[0], value)
    return value


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
