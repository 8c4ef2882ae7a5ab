"""What is known of each provider: how it is told apart, whether it deduplicates, and for how long.

A table without effects, by the dotted path of the e-mail backend. A subclass of a known backend
is that provider too; what isn't in the table is taken for a backend that promises nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

HOUR = 3600.0
MINUTE = 60.0


class KeyTravels(StrEnum):
    """How the deduplication key reaches the provider."""

    NOT = ""
    #: HTTP header ``Idempotency-Key`` of the request, put there by ``keyed_backends``.
    HTTP_HEADER = "http_header"
    #: ``idempotencyKey`` among the mail headers of the request's body.
    MAIL_HEADER = "mail_header"
    #: ``idempotence_key`` in the request's body.
    BODY = "body"
    #: The contact's address and the name of a campaign.
    CAMPAIGN = "campaign"


class Speaks(StrEnum):
    """The library that talks to the provider; its settings say how long an answer may take."""

    SMTP = "smtp"
    REQUESTS = "requests"
    BOTOCORE = "botocore"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, or one kind of backend.

    ``esp_name`` is anymail's name for it, as its webhooks give it, or "" outside anymail.
    ``window`` is how many seconds the provider remembers a key and ``margin`` how many of them are
    not relied on: the clock starts at our hand-over, the message may start some seconds later, and
    its request takes a while. ``accepted_already`` are the answers (HTTP status, error code in the
    body) that mean: the message with this key was accepted before. ``drops_headers`` are headers
    (lower case) that the provider sets itself and refuses to be given. ``refuses_address`` is
    found in the body of a 4xx that says: the recipient's address is none.
    """

    name: str
    esp_name: str = ""
    window: float = 0.0
    margin: float = 0.0
    has_metadata: bool = False
    key_travels: KeyTravels = KeyTravels.NOT
    accepted_already: frozenset[tuple[int, str]] = frozenset()
    drops_headers: frozenset[str] = frozenset()
    refuses_address: re.Pattern[str] | None = None
    speaks: Speaks = Speaks.OTHER

    @property
    def deduplicates(self) -> bool:
        return self.key_travels is not KeyTravels.NOT

    @property
    def replay_window(self) -> float:
        """Seconds after a hand-over within which the same message, sent again, is harmless."""
        return max(self.window - self.margin, 0.0) if self.deduplicates else 0.0

    @property
    def is_anymail(self) -> bool:
        return bool(self.esp_name)


def _esp(name: str, **known: Any) -> Provider:
    known = {"has_metadata": True, "speaks": Speaks.REQUESTS, **known}
    return Provider(name=name, esp_name=name, **known)


UNKNOWN = Provider("unknown Django backend")

#: Keys and windows: https://resend.com/docs/dashboard/emails/idempotency-keys (24 hours, an HTTP
#: header of at most 256 characters), https://developers.brevo.com/docs/heterogenous-versions-batch-emails
#: (30 minutes, a UUID; its changelog says 15, which is what can be relied on), Unisender Go's
#: ``email/send`` (``idempotence_key``, at most 64 characters, about a minute), Mailjet's Send API
#: v3.1 (``CustomCampaign`` with ``DeduplicateCampaign``). The others document none.
PROVIDERS: dict[str, Provider] = {
    "anymail.backends.resend.EmailBackend": _esp(
        "Resend",
        window=24 * HOUR,
        margin=HOUR,
        key_travels=KeyTravels.HTTP_HEADER,
        refuses_address=re.compile(r"invalid `to` field", re.I),
    ),
    "anymail.backends.brevo.EmailBackend": _esp(
        "Brevo",
        window=15 * MINUTE,
        margin=3 * MINUTE,
        key_travels=KeyTravels.MAIL_HEADER,
        accepted_already=frozenset({(400, "duplicate_parameter")}),
        refuses_address=re.compile(r"email is not valid in to\b", re.I),
    ),
    "anymail.backends.mailjet.EmailBackend": _esp(
        "Mailjet",
        window=24 * HOUR,
        margin=HOUR,
        key_travels=KeyTravels.CAMPAIGN,
        # "List of forbidden headers" of the Send API's guide; with one of them nothing is sent.
        drops_headers=frozenset({"date", "message-id", "list-id"}),
        refuses_address=re.compile(r"(?s)\A(?=.*mj-0013)(?=.*\"To\[)"),
    ),
    "anymail.backends.unisender_go.EmailBackend": _esp(
        "Unisender Go", window=MINUTE, margin=15.0, key_travels=KeyTravels.BODY
    ),
    "anymail.backends.amazon_ses.EmailBackend": _esp("Amazon SES", speaks=Speaks.BOTOCORE),
    "anymail.backends.mailgun.EmailBackend": _esp(
        "Mailgun", refuses_address=re.compile(r"to parameter is not a valid address", re.I)
    ),
    "anymail.backends.mailtrap.EmailBackend": _esp("Mailtrap"),
    "anymail.backends.mandrill.EmailBackend": _esp("Mandrill"),
    "anymail.backends.postmark.EmailBackend": _esp("Postmark"),
    "anymail.backends.sendgrid.EmailBackend": _esp(
        "SendGrid",
        refuses_address=re.compile(r"(?s)\A(?=.*valid address)(?=.*personalizations\.\d+\.to)"),
    ),
    "anymail.backends.sparkpost.EmailBackend": _esp("SparkPost"),
    "anymail.backends.mailersend.EmailBackend": _esp(
        "MailerSend",
        has_metadata=False,
        refuses_address=re.compile(r"to\.\d+\.email must be a valid", re.I),
    ),
    "anymail.backends.postal.EmailBackend": _esp("Postal", has_metadata=False),
    "anymail.backends.scaleway.EmailBackend": _esp("Scaleway", has_metadata=False),
    "anymail.backends.test.EmailBackend": _esp("Test", speaks=Speaks.OTHER),
    "sending.smtp.EmailBackend": Provider("SMTP", speaks=Speaks.SMTP),
    "django.core.mail.backends.smtp.EmailBackend": Provider("SMTP", speaks=Speaks.SMTP),
    # What anymail's own bases tell of a backend that somebody else built on them.
    "anymail.backends.base_requests.AnymailRequestsBackend": Provider(
        "unknown anymail backend", speaks=Speaks.REQUESTS
    ),
}


def provider_of(kind: type) -> Provider:
    """The provider behind a backend class, by the nearest class in its line that is known.

    ``esp_name`` is the class's own, where it has one: it names the settings and the webhooks.
    """
    for ancestor in kind.__mro__:
        known = PROVIDERS.get(f"{ancestor.__module__}.{ancestor.__qualname__}")
        if known is not None:
            own = getattr(kind, "esp_name", None)
            if not isinstance(own, str) or own == known.esp_name:
                return known
            return replace(known, esp_name=own)
    return UNKNOWN


def deduplication_key(namespace: UUID, job_id: str, repeats: int = 0) -> str:
    """The key of a send: the same on every attempt, another in each installation.

    ``repeats``: how often staff asked for it again after it had failed. That is another message
    to the provider, which might else answer with what it remembers of the one that failed.

    36 characters, a UUID: what Brevo wants, and short enough for the others (Resend 256,
    Unisender Go 64).
    """
    again = f":{repeats}" if repeats else ""
    return str(uuid5(namespace, f"key{again}:{job_id}"))


def campaign_key(namespace: UUID, job_id: str, campaign_id: int | None, repeats: int = 0) -> str:
    """The name of the campaign within which a contact gets one message (Mailjet).

    A transactional message is a campaign of its own: another message to the same person must not
    count as its repetition.
    """
    if campaign_id is None:
        return f"sendonce-{deduplication_key(namespace, job_id, repeats)}"
    again = f"-{repeats}" if repeats else ""
    return f"sendonce-{installation_tag(namespace)}-{campaign_id}{again}"


def installation_tag(namespace: UUID) -> str:
    """16 hexadecimal digits that stand for the installation of this namespace."""
    return namespace.hex[:16]


def metadata_job_id(job_id: str, send_id: int) -> str:
    """The job id as it can travel with every provider: plain ASCII of at most 80 characters
    (Postmark's limit), no backslash or quote (Brevo takes an escaped one for a foreign letter).
    Otherwise ``send:<id of the row>``."""
    return job_id if re.fullmatch(r"[ !#-\[\]-~]{1,80}", job_id) else f"send:{send_id}"
