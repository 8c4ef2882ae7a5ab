"""Webhook requests in the shapes that the providers document, signed as they sign them.

``raw(esp, what, **told)`` is one raw event; ``post(esp, events)`` the request that brings some.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

SECRET = "webhooks:a-long-password"
#: What the signing providers need, besides the secret.
ANYMAIL = {
    "WEBHOOK_SECRET": SECRET,
    "MAILGUN_WEBHOOK_SIGNING_KEY": "mailgun-key",
    "MAILERSEND_SIGNING_SECRET": "mailersend-secret",
    "MAILTRAP_TRACKING_SECRET": "mailtrap-secret",
    "MANDRILL_WEBHOOK_KEY": "mandrill-key",
    "UNISENDER_GO_API_KEY": "unisender-key",
}
HOST = "https://news.example.org"
#: The moment of every event: 2026-03-01 12:00:00 UTC.
AT = 1772366400
ISO = "2026-03-01T12:00:00.000Z"

NAMES = {
    "amazon_ses": "Amazon SES",
    "brevo": "Brevo",
    "mailersend": "MailerSend",
    "mailgun": "Mailgun",
    "mailjet": "Mailjet",
    "mailtrap": "Mailtrap",
    "mandrill": "Mandrill",
    "postal": "Postal",
    "postmark": "Postmark",
    "resend": "Resend",
    "sendgrid": "SendGrid",
    "sparkpost": "SparkPost",
    "unisender_go": "Unisender Go",
}


@dataclass
class Post:
    """A request as a provider sends it."""

    path: str
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def basic(secret: str = SECRET) -> str:
    return f"Basic {base64.b64encode(secret.encode()).decode()}"


def raw(
    esp: str,
    what: str,
    *,
    to: str = "ann@example.org",
    job: str = "campaign:1:1",
    tag: str = "0123456789abcdef",
    message: str = "m-1",
    number: int = 1,
    reply: str = "",
    **more: Any,
) -> dict[str, Any]:
    """One raw event; ``what`` in the provider's own words, ``more`` over its fields."""
    metadata = {"job_id": job, "installation": tag}
    event: dict[str, Any]
    match esp:
        case "amazon_ses":
            event = {
                "eventType": what,
                "mail": {
                    "timestamp": ISO,
                    "messageId": message,
                    "destination": [to],
                    "headers": [
                        {"name": "To", "value": to},
                        {"name": "X-Metadata", "value": json.dumps(metadata)},
                    ],
                },
            }
            if what == "Bounce":
                event["bounce"] = {
                    "bounceType": "Permanent",
                    "bounceSubType": "General",
                    "bouncedRecipients": [
                        {
                            "emailAddress": to,
                            "action": "failed",
                            "status": "5.1.1",
                            "diagnosticCode": reply or "smtp; 550 5.1.1 user unknown",
                        }
                    ],
                    "timestamp": ISO,
                    "feedbackId": f"f-{number}",
                }
            elif what == "Complaint":
                event["complaint"] = {
                    "complainedRecipients": [{"emailAddress": to}],
                    "complaintFeedbackType": "abuse",
                    "complaintSubType": None,
                }
            elif what == "Delivery":
                event["delivery"] = {"recipients": [to], "smtpResponse": reply or "250 2.6.0 ok"}
            elif what == "Reject":
                event["reject"] = {"reason": "Bad content"}
        case "brevo":
            event = {
                "event": what,
                "email": to,
                "id": 26224,
                "date": "2026-03-01 13:00:00",
                "ts": AT,
                "message-id": message,
                "ts_event": AT,
                "ts_epoch": AT * 1000,
                "subject": "Spring",
                "X-Mailin-custom": json.dumps(metadata),
                "sending_ip": "192.0.2.1",
            }
            if reply:
                event["reason"] = reply
        case "mailersend":
            event = {
                "type": f"activity.{what}",
                "created_at": ISO,
                "webhook_id": "w-1",
                "url": f"{HOST}/webhooks/mailersend/tracking/",
                "data": {
                    "object": "activity",
                    "id": f"activity-{number}",
                    "type": what,
                    "created_at": ISO,
                    "email": {
                        "object": "email",
                        "id": "e-1",
                        "from": "news@example.org",
                        "status": "rejected",
                        "message": {"object": "message", "id": message},
                        "recipient": {"object": "recipient", "id": "r-1", "email": to},
                    },
                    "morph": {"object": "recipient_bounce", "reason": reply} if reply else None,
                },
            }
        case "mailgun":
            token = hashlib.sha256(f"{message}{what}{number}".encode()).hexdigest()[:50]
            signed = hmac.new(b"mailgun-key", f"{AT}{token}".encode(), hashlib.sha256)
            event = {
                "signature": {
                    "token": token,
                    "timestamp": str(AT),
                    "signature": signed.hexdigest(),
                },
                "event-data": {
                    "event": what,
                    "timestamp": AT + 0.25,
                    "id": f"id-{number}",
                    "recipient": to,
                    "message": {"headers": {"message-id": message, "to": to}},
                    "user-variables": metadata,
                    "tags": [],
                    "delivery-status": {
                        "code": 550,
                        "message": reply or "5.1.1 The email account does not exist",
                        "description": "",
                    },
                },
            }
            if what == "failed":
                event["event-data"] |= {"severity": "permanent", "reason": "bounce"}
            event["event-data"] |= more.pop("data", {})
        case "mailjet":
            event = {
                "event": what,
                "time": AT,
                "MessageID": 19421777835146490 + number,
                "Message_GUID": "1ab23cd4",
                "email": to,
                "mj_campaign_id": 7257,
                "customcampaign": "",
                "CustomID": job,
                "Payload": json.dumps(metadata),
            }
            if what == "bounce":
                event |= {
                    "blocked": False,
                    "hard_bounce": True,
                    "error_related_to": "recipient",
                    "error": "user unknown",
                    "comment": reply,
                }
        case "mailtrap":
            event = {
                "event": what,
                "message_id": message,
                "sending_stream": "bulk",
                "email": to,
                "timestamp": AT,
                "event_id": f"event-{number}",
                "custom_variables": metadata,
            }
            if what == "bounce":
                event |= {
                    "bounce_category": "badmailbox",
                    "response_code": 550,
                    "response": reply or "5.1.1 no such user",
                }
        case "mandrill":
            event = {
                "event": what,
                "ts": AT,
                "_id": message,
                "msg": {
                    "ts": AT - 10,
                    "_id": message,
                    "state": "bounced",
                    "email": to,
                    "sender": "news@example.org",
                    "metadata": metadata,
                    "tags": [],
                    "bounce_description": "bad_mailbox",
                    "diag": reply or "smtp;550 5.1.1 The email account does not exist.",
                },
            }
        case "postal":
            event = {
                "event": "MessageDelivered",
                "timestamp": AT,
                "uuid": f"uuid-{number}",
                "payload": {
                    "status": what,
                    "details": "Message for x refused by mx.example.org",
                    "output": reply,
                    "message": {"id": message, "to": to, "direction": "outgoing"},
                },
            }
        case "postmark":
            event = {
                "RecordType": what,
                "MessageStream": "broadcast",
                "MessageID": message,
                "Metadata": metadata,
                "Tag": "",
            }
            when = {"Delivery": "DeliveredAt", "SubscriptionChange": "ChangedAt"}
            event[when.get(what, "BouncedAt" if what != "Open" else "ReceivedAt")] = ISO
            if what in ("Bounce", "SpamComplaint"):
                event |= {
                    "ID": number,
                    "Type": "HardBounce" if what == "Bounce" else "SpamComplaint",
                    "Email": to,
                    "Description": "The server was unable to deliver your message.",
                    "Details": reply or "smtp;550 5.1.1 The email account does not exist.",
                }
            else:
                event["Recipient"] = to
        case "resend":
            event = {
                "type": f"email.{what}",
                "created_at": ISO,
                "data": {
                    "email_id": message,
                    "created_at": ISO,
                    "from": "News <news@example.org>",
                    "to": [to],
                    "subject": "Spring",
                    "headers": [{"name": "X-Metadata", "value": json.dumps(metadata)}],
                },
            }
            if what == "bounced":
                event["data"]["bounce"] = {
                    "message": "The recipient's email provider sent a hard bounce message, but "
                    "didn't specify the reason. Sending to it can hurt your sender reputation.",
                    "type": "Permanent",
                    "subType": "General",
                    "diagnosticCode": [reply] if reply else [],
                }
        case "sendgrid":
            event = {
                "event": what,
                "email": to,
                "timestamp": AT,
                "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>",
                "sg_event_id": f"sg-event-{number}",
                "sg_message_id": "14c5d75ce93.dfd.64b469.filter0001",
                "anymail_id": message,
                **metadata,
            }
            if what == "bounce":
                event |= {
                    "type": "bounce",
                    "status": "5.1.1",
                    "reason": reply or "550 5.1.1 user unknown",
                }
            elif what == "dropped":
                event["reason"] = "Bounced Address"
        case "sparkpost":
            kind = "track_event" if what in ("open", "click") else "message_event"
            inner = {
                "type": what,
                "event_id": f"event-{number}",
                "timestamp": str(AT),
                "transmission_id": message,
                "message_id": "000443ee14578172be22",
                "rcpt_to": to.lower(),
                "raw_rcpt_to": to,
                "rcpt_meta": metadata,
                "rcpt_tags": [],
                "campaign_id": "",
            }
            if what in ("bounce", "out_of_band"):
                inner |= {
                    "bounce_class": "10",
                    "error_code": "550",
                    "raw_reason": reply or "550 5.1.1 <redacted>: user unknown",
                    "reason": "550 5.1.1 ...@... user unknown",
                }
            return {"msys": {kind: inner | more}}
        case "unisender_go":
            event = {
                "event_name": "transactional_email_status",
                "event_data": {
                    "job_id": "1ZymBc-00041N-9X",
                    "metadata": {**metadata, "anymail_id": message},
                    "email": to,
                    "status": what,
                    "event_time": "2026-03-01 12:00:00",
                    "delivery_info": {
                        "delivery_status": "ok_delivered",
                        "destination_response": reply,
                    },
                },
            }
            if what == "hard_bounced":
                event["event_data"]["delivery_info"] = {
                    "delivery_status": "err_user_unknown",
                    "destination_response": reply or "550 5.1.1 user unknown",
                }
            event["event_data"] |= more
            return event
        case _:
            raise AssertionError(esp)
    return {**event, **more}


def ours(esp: str, what: str) -> str:
    """The provider's own word for a kind of event."""
    words = {
        "amazon_ses": ("Send", "Delivery", "Bounce", "Complaint"),
        "brevo": ("request", "delivered", "hard_bounce", "spam"),
        "mailersend": ("sent", "delivered", "hard_bounced", "spam_complaint"),
        "mailgun": ("accepted", "delivered", "failed", "complained"),
        "mailjet": ("", "sent", "bounce", "spam"),
        "mailtrap": ("", "delivery", "bounce", "spam"),
        "mandrill": ("send", "", "hard_bounce", "spam"),
        "postal": ("Held", "Sent", "HardFail", ""),
        "postmark": ("", "Delivery", "Bounce", "SpamComplaint"),
        "resend": ("sent", "delivered", "bounced", "complained"),
        "sendgrid": ("processed", "delivered", "bounce", "spamreport"),
        "sparkpost": ("injection", "delivery", "bounce", "spam_complaint"),
        "unisender_go": ("sent", "delivered", "hard_bounced", "spam"),
    }
    return words[esp][("taken", "delivered", "hard_bounce", "complained").index(what)]


#: Providers that put several events into one request.
BATCHING = ("mailjet", "mailtrap", "mandrill", "sendgrid", "sparkpost", "unisender_go")


def post(esp: str, events: list[Any], *, secret: str | None = SECRET) -> Post:
    """The request that brings these raw events: one, or more where the provider batches."""
    found = Post(f"/webhooks/{esp}/tracking/", b"")
    if secret is not None:
        found.headers["Authorization"] = basic(secret)
    if esp not in BATCHING:
        (only,) = events
        found.body = json.dumps(only).encode()
    match esp:
        case "amazon_ses":
            sns = {
                "Type": "Notification",
                "MessageId": hashlib.sha256(found.body).hexdigest()[:36],
                "TopicArn": "arn:aws:sns:eu-west-1:123456789012:ses",
                "Message": found.body.decode(),
                "Timestamp": ISO,
            }
            found.body = json.dumps(sns).encode()
            found.content_type = "text/plain; charset=UTF-8"
            found.headers["X-Amz-Sns-Message-Type"] = "Notification"
            found.headers["X-Amz-Sns-Message-Id"] = sns["MessageId"]
        case "mailersend":
            found.headers["Signature"] = _hmac(b"mailersend-secret", found.body)
        case "mailtrap":
            found.body = json.dumps({"events": events}).encode()
            found.headers["Mailtrap-Signature"] = _hmac(b"mailtrap-secret", found.body)
        case "mandrill":
            form = {"mandrill_events": json.dumps(events)}
            found.body = urlencode(form).encode()
            found.content_type = "application/x-www-form-urlencoded"
            found.headers["X-Mandrill-Signature"] = _mandrill(found.path, form, secret)
        case "resend":
            found.headers["svix-id"] = f"msg_{hashlib.sha256(found.body).hexdigest()[:27]}"
        case "unisender_go":
            body = json.dumps(
                {"auth": "unisender-key", "events_by_user": [{"user_id": 1, "events": events}]}
            ).encode()
            digest = hashlib.md5(body).hexdigest()
            found.body = body.replace(b"unisender-key", digest.encode())
        case "mailjet" | "sendgrid" | "sparkpost":
            found.body = json.dumps(events).encode()
    return found


def _hmac(key: bytes, body: bytes) -> str:
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def _mandrill(path: str, form: dict[str, str], secret: str | None) -> str:
    login = f"{secret}@" if secret else ""
    signed = HOST.replace("//", f"//{login}") + path
    signed += "".join(key + form[key] for key in sorted(form))
    mac = hmac.new(b"mandrill-key", signed.encode(), hashlib.sha1)
    return base64.b64encode(mac.digest()).decode()
