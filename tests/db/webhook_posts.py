"""Requests of providers to the webhooks, as their servers make them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from django.test import Client, override_settings

from sending.installation import tag
from sending.models import Send
from sending.tracking import webhooks
from tests.provider_payloads import ANYMAIL, HOST, NAMES, Post, raw

MARKS = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:django-anymail has dropped official support for SendGrid"),
]

#: Those whose views and signatures need no further package, or one that is there.
MISSING = {"amazon_ses": "boto3", "postal": "cryptography"}
POSTED = [esp for esp in NAMES if esp not in MISSING]
POSTED += ["amazon_ses"] if find_spec("boto3") else []
#: Those that the shared secret alone protects.
UNSIGNED = ["brevo", "mailjet", "postmark", "resend", "sendgrid", "sparkpost"]
SIGNED = [esp for esp in POSTED if esp not in (*UNSIGNED, "amazon_ses")]


@pytest.fixture(autouse=True)
def webhook_keys() -> Iterator[None]:
    webhooks._said.clear()
    with override_settings(ANYMAIL=ANYMAIL, ALLOWED_HOSTS=["news.example.org"]):
        yield


def send_post(said: Post, *, server: Any = None) -> Any:
    return (server or Client(enforce_csrf_checks=True)).post(
        said.path,
        said.body,
        content_type=said.content_type,
        headers=said.headers,
        secure=True,
        SERVER_NAME=HOST.removeprefix("https://"),
    )


def about(send: Send, esp: str, word: str, **more: Any) -> dict[str, Any]:
    return raw(esp, word, to=send.email or "", job=send.job_id, tag=tag(), **more)
