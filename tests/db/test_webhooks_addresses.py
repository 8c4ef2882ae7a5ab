"""The webhooks' addresses, and a host that serves anymail's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings
from django.urls import include, path, reverse

from sending.models import ProviderEvent
from sending.tracking import webhooks
from tests.provider_payloads import NAMES, post, raw

from . import webhook_posts
from .tracked import counts
from .webhook_posts import send_post

pytest.importorskip("anymail")
pytestmark = webhook_posts.MARKS

webhook_keys = webhook_posts.webhook_keys

urlpatterns = [
    path("hooks/", include("sending.webhook_urls")),
    path("anymail/", include("anymail.urls")),
]


def test_every_address_has_the_name_that_anymail_gives_it() -> None:
    assert reverse("sendonce_webhooks:postmark_tracking_webhook") == "/webhooks/postmark/tracking/"
    for esp in NAMES:
        assert reverse(f"sendonce_webhooks:{esp}_tracking_webhook").endswith(f"/{esp}/tracking/")
    with override_settings(ROOT_URLCONF=__name__):
        for esp in [*NAMES, "sendinblue"]:
            name = f"{esp}_tracking_webhook"
            theirs = reverse(f"anymail:{name}").removeprefix("/anymail/")
            assert reverse(f"sendonce_webhooks:{name}") == f"/hooks/{theirs}"
        assert reverse("sendonce_webhooks:mandrill_webhook") == "/hooks/mandrill/"


@pytest.fixture
def receiver() -> Iterator[None]:
    from anymail.signals import tracking as signal

    was_there = signal.disconnect(dispatch_uid="sendonce.webhooks")
    assert webhooks.connect()
    assert webhooks.connect()  # twice is once
    yield
    if not was_there:
        signal.disconnect(dispatch_uid="sendonce.webhooks")


@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize("prefix", ["anymail", "hooks"])
def test_the_signal_stores_once(prefix: str) -> None:
    said = post("sendgrid", [raw("sendgrid", "delivered", number=n) for n in range(5)])
    said.path = f"/{prefix}/sendgrid/tracking/"
    assert send_post(said).status_code == 200
    assert ProviderEvent.objects.count() == 5
    assert counts() == {}


@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.usefixtures("receiver")
def test_the_signal_passes_errors_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> int:
        raise OperationalError("connection refused")

    monkeypatch.setattr(webhooks, "take_in", away)
    said = post("brevo", [raw("brevo", "delivered")])
    said.path = "/anymail/brevo/tracking/"
    answer = send_post(said, server=Client(raise_request_exception=False))
    assert answer.status_code == 500


def test_other_receivers_of_the_signal_get_the_events_too() -> None:
    from anymail.signals import tracking as signal

    got = []

    def mine(*, event: Any, esp_name: str, **_: Any) -> None:
        got.append((esp_name, event.event_type))

    signal.connect(mine)
    try:
        assert send_post(post("brevo", [raw("brevo", "delivered")])).status_code == 200
    finally:
        signal.disconnect(mine)
    assert got == [("Brevo", "delivered")]
