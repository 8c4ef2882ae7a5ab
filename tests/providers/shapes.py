"""How the providers' APIs look: where each wants its parts, and how it answers.

Written from their public documentation. ``SHAPES`` is by the first part of the path; the rest of
the path is the provider's own.
"""

from __future__ import annotations

import base64
import email
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Not in the ledger of what was accepted: the recipient is told apart in a 200.
    refused: bool = False

    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Request:
    """``headers`` by lower-case name."""

    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class Submission:
    """``key`` is "" where the provider got none it honours."""

    recipient: str
    metadata: Mapping[str, str]
    key: str = ""


@dataclass(frozen=True)
class Shape:
    """One provider. ``secret`` finds the API key in a request; ``repeated`` answers a repeat of a
    key (None: the first answer again)."""

    read: Callable[[Request], Submission]
    secret: Callable[[Request], str]
    accepted: Callable[[Submission, str], Reply]
    refused: Callable[[Submission, int, str], Reply]
    rejected: Callable[[Submission], Reply] | None = None
    repeated: Callable[[Submission, str], Reply] | None = None
    compares_bodies: bool = False


def _bearer(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _header(name: str) -> Callable[[Request], str]:
    return lambda request: request.headers.get(name, "")


def _basic(request: Request) -> str:
    encoded = request.headers.get("authorization", "").removeprefix("Basic ")
    return base64.b64decode(encoded).decode().partition(":")[2]


def _bare(address: str) -> str:
    return address.rpartition("<")[2].rstrip(">")


# --- Resend ----------------------------------------------------------------------------------


def _resend(request: Request) -> Submission:
    assert request.path == "emails", request.path
    body = request.json
    metadata = json.loads(body["headers"]["X-Metadata"])
    assert "idempotency_key" not in body
    key = request.headers.get("idempotency-key", "")
    assert len(key) <= 256
    return Submission(_bare(body["to"][0]), metadata, key)


RESEND = Shape(
    read=_resend,
    secret=_bearer,
    accepted=lambda s, id: Reply(200, {"id": id}),
    refused=lambda s, status, what: Reply(
        status,
        {
            "statusCode": status,
            "name": {401: "missing_api_key", 409: "concurrent_idempotent_requests"}.get(
                status, "validation_error"
            ),
            "message": f"Invalid `to` field. {s.recipient}" if what == "address" else what,
        },
    ),
    compares_bodies=True,
)

# --- Brevo -----------------------------------------------------------------------------------


def _brevo(request: Request) -> Submission:
    assert request.path == "smtp/email", request.path
    body = request.json
    headers = body.get("headers", {})
    return Submission(
        body["to"][0]["email"],
        json.loads(headers["X-Mailin-custom"]),
        headers.get("idempotencyKey", ""),
    )


BREVO = Shape(
    read=_brevo,
    secret=_header("api-key"),
    accepted=lambda s, id: Reply(201, {"messageId": f"<{id}@brevo.example.org>"}),
    refused=lambda s, status, what: Reply(
        status,
        {
            "code": {401: "unauthorized", 429: "too_many_requests"}.get(
                status, "invalid_parameter"
            ),
            "message": "email is not valid in to" if what == "address" else what,
        },
    ),
    repeated=lambda s, id: Reply(
        400, {"code": "duplicate_parameter", "message": "idempotencyKey was used already"}
    ),
)

# --- Mailjet ---------------------------------------------------------------------------------

_MAILJET_FORBIDDEN = {"date", "message-id", "list-id", "from", "to", "subject", "sender"}


def _mailjet(request: Request) -> Submission:
    assert request.path == "send", request.path
    common, [message] = request.json["Globals"], request.json["Messages"]
    forbidden = _MAILJET_FORBIDDEN & {name.lower() for name in common.get("Headers", {})}
    assert not forbidden, f"Header cannot be customized using the Headers collection: {forbidden}"
    recipient = message["To"][0]["Email"]
    key = f"{common['CustomCampaign']}:{recipient}" if common.get("DeduplicateCampaign") else ""
    metadata = json.loads(common["EventPayload"])
    assert common["CustomID"] == metadata["job_id"]
    return Submission(recipient, metadata, key)


def _mailjet_accepted(s: Submission, id: str) -> Reply:
    sent = {"Email": s.recipient, "MessageUUID": id, "MessageID": int(id[:8], 16)}
    return Reply(200, {"Messages": [{"Status": "success", "To": [sent]}]})


def _mailjet_refused(s: Submission, status: int, what: str) -> Reply:
    if what != "address":
        said = {"ErrorIdentifier": "x", "ErrorCode": "mj-0001", "StatusCode": status}
        return Reply(status, {**said, "ErrorMessage": what})
    error = {
        "ErrorIdentifier": "x",
        "ErrorCode": "mj-0013",
        "StatusCode": status,
        "ErrorMessage": f'"{s.recipient}" is an invalid email address.',
        "ErrorRelatedTo": ["To[0].Email"],
    }
    return Reply(status, {"Messages": [{"Status": "error", "Errors": [error]}]})


MAILJET = Shape(
    read=_mailjet,
    secret=_basic,
    accepted=_mailjet_accepted,
    refused=_mailjet_refused,
    # A repeat is accepted by the API, and blocked afterwards.
    repeated=_mailjet_accepted,
)

# --- Unisender Go ----------------------------------------------------------------------------


def _unisender(request: Request) -> Submission:
    assert request.path == "email/send.json", request.path
    message = request.json["message"]
    [recipient] = message["recipients"]
    assert recipient["metadata"]["anymail_id"]
    key = message.get("idempotence_key", "")
    assert len(key) <= 64
    return Submission(recipient["email"], message["global_metadata"], key)


UNISENDER = Shape(
    read=_unisender,
    secret=_header("x-api-key"),
    accepted=lambda s, id: Reply(
        200, {"status": "success", "job_id": id, "emails": [s.recipient], "failed_emails": {}}
    ),
    refused=lambda s, status, what: Reply(
        status, {"status": "error", "code": 204, "message": f"Error: {what}"}
    ),
    rejected=lambda s: Reply(
        200,
        {
            "status": "success",
            "job_id": "j",
            "emails": [],
            "failed_emails": {s.recipient: "unsubscribed"},
        },
        refused=True,
    ),
    repeated=lambda s, id: Reply(
        400, {"status": "error", "code": 205, "message": "idempotence_key was used already"}
    ),
)

# --- Postmark --------------------------------------------------------------------------------


def _postmark(request: Request) -> Submission:
    assert request.path == "email", request.path
    body = request.json
    assert all(len(k) <= 20 and len(v) <= 80 for k, v in body["Metadata"].items())
    return Submission(_bare(body["To"]), body["Metadata"])


def _postmark_refused(s: Submission, status: int, what: str) -> Reply:
    if what == "address":
        said = f"Error parsing 'To': Illegal email domain 'x' in address '{s.recipient}'."
        return Reply(422, {"ErrorCode": 300, "Message": said})
    return Reply(status, {"ErrorCode": {401: 10}.get(status, 100), "Message": what})


POSTMARK = Shape(
    read=_postmark,
    secret=_header("x-postmark-server-token"),
    accepted=lambda s, id: Reply(
        200, {"To": s.recipient, "MessageID": id, "ErrorCode": 0, "Message": "OK"}
    ),
    refused=_postmark_refused,
    rejected=lambda s: Reply(
        422,
        {
            "ErrorCode": 406,
            "Message": "You tried to send to a recipient that has been marked as inactive.\n"
            f"Found inactive addresses: {s.recipient}.\nInactive recipients are ones that have "
            "generated a hard bounce or a spam complaint.",
        },
    ),
)

# --- SendGrid, Mailgun, Mandrill, SparkPost, MailerSend -----------------------------------------


def _sendgrid(request: Request) -> Submission:
    assert request.path == "mail/send", request.path
    body = request.json
    return Submission(body["personalizations"][0]["to"][0]["email"], body["custom_args"])


SENDGRID = Shape(
    read=_sendgrid,
    secret=_bearer,
    accepted=lambda s, id: Reply(202, ""),
    refused=lambda s, status, what: Reply(
        status,
        {
            "errors": [
                {
                    "message": "Does not contain a valid address.",
                    "field": "personalizations.0.to.0.email",
                }
                if what == "address"
                else {"message": what, "field": None}
            ]
        },
    ),
)


def _mailgun(request: Request) -> Submission:
    assert request.path.endswith("/messages"), request.path
    form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
    return Submission(
        _bare(form["to"]), {k.removeprefix("v:"): v for k, v in form.items() if k.startswith("v:")}
    )


MAILGUN = Shape(
    read=_mailgun,
    secret=_basic,
    accepted=lambda s, id: Reply(200, {"id": f"<{id}>", "message": "Queued. Thank you."}),
    refused=lambda s, status, what: Reply(
        status,
        {
            "message": "to parameter is not a valid address. please check documentation"
            if what == "address"
            else what
        },
    ),
)


def _mandrill(request: Request) -> Submission:
    assert request.path == "messages/send.json", request.path
    message = request.json["message"]
    return Submission(message["to"][0]["email"], message["metadata"])


def _mandrill_says(s: Submission, status: str, **more: Any) -> Reply:
    refused = status in ("rejected", "invalid")
    return Reply(200, [{"email": s.recipient, "status": status, **more}], refused=refused)


MANDRILL = Shape(
    read=_mandrill,
    secret=lambda request: request.json["key"],
    accepted=lambda s, id: _mandrill_says(s, "sent", _id=id),
    refused=lambda s, status, what: (
        _mandrill_says(s, "invalid")
        if what == "address"
        else Reply(status, {"status": "error", "name": "Invalid_Key", "message": what})
    ),
    rejected=lambda s: _mandrill_says(s, "rejected", reject_reason="unsub"),
)


def _sparkpost(request: Request) -> Submission:
    assert request.path == "transmissions/", request.path
    body = request.json
    return Submission(body["recipients"][0]["address"]["email"], body["metadata"])


def _sparkpost_says(id: str, accepted: int) -> Reply:
    count = {"total_accepted_recipients": accepted, "total_rejected_recipients": 1 - accepted}
    return Reply(200, {"results": {**count, "id": id}}, refused=not accepted)


SPARKPOST = Shape(
    read=_sparkpost,
    secret=_header("authorization"),
    accepted=lambda s, id: _sparkpost_says(id, 1),
    refused=lambda s, status, what: Reply(
        status, {"errors": [{"message": "Invalid data format/type", "description": what}]}
    ),
    rejected=lambda s: _sparkpost_says("11", 0),
)


def _mailersend(request: Request) -> Submission:
    assert request.path == "email", request.path
    return Submission(request.json["to"][0]["email"], {})


def _mailersend_refused(s: Submission, status: int, what: str) -> Reply:
    if what == "address":
        words = "The to.0.email must be a valid email address."
        return Reply(422, {"message": words, "errors": {"to.0.email": [words]}})
    return Reply(status, {"message": what})


MAILERSEND = Shape(
    read=_mailersend,
    secret=_bearer,
    accepted=lambda s, id: Reply(202, "", {"Content-Type": "text/html", "X-Message-Id": id}),
    refused=_mailersend_refused,
    rejected=lambda s: Reply(
        202,
        {
            "message": "There are some warnings for your request.",
            "warnings": [
                {
                    "type": "ALL_SUPPRESSED",
                    "warning": "All the recipients are suppressed.",
                    "recipients": [{"email": s.recipient, "name": "", "reason": ["unsubscribed"]}],
                }
            ],
        },
        refused=True,
    ),
)

# --- Amazon SES ------------------------------------------------------------------------------


def _ses(request: Request) -> Submission:
    assert request.path == "v2/email/outbound-emails", request.path
    body = request.json
    [recipient] = body["Destination"]["ToAddresses"]
    raw = email.message_from_bytes(base64.b64decode(body["Content"]["Raw"]["Data"]))
    return Submission(recipient, json.loads(raw["X-Metadata"]))


_SES_ERRORS = {401: (403, "InvalidClientTokenId"), 429: (400, "ThrottlingException")}


def _ses_refused(s: Submission, status: int, what: str) -> Reply:
    code, name = _SES_ERRORS.get(status, (400, "BadRequestException"))
    return Reply(code, {"message": what}, {"x-amzn-ErrorType": name})


SES = Shape(
    read=_ses,
    # Signed, not sent: "Credential=<key id>/<date>/<region>/..."
    secret=lambda request: (
        request.headers["authorization"].partition("Credential=")[2].partition("/")[0]
    ),
    accepted=lambda s, id: Reply(200, {"MessageId": id}),
    refused=_ses_refused,
    rejected=lambda s: Reply(
        400,
        {"message": f"Email address is not verified: {s.recipient}"},
        {"x-amzn-ErrorType": "MessageRejected"},
    ),
)

SHAPES: dict[str, Shape] = {
    "resend": RESEND,
    "brevo": BREVO,
    "mailjet": MAILJET,
    "unisender_go": UNISENDER,
    "postmark": POSTMARK,
    "sendgrid": SENDGRID,
    "mailgun": MAILGUN,
    "mandrill": MANDRILL,
    "sparkpost": SPARKPOST,
    "mailersend": MAILERSEND,
    "amazon_ses": SES,
}
