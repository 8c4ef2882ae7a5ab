"""The webhooks as providers call them: what is refused, and what is counted."""

from __future__ import annotations

import json
import logging
import sys
from base64 import b64encode
from importlib import import_module
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import include, path

from sending.models import ProviderEvent
from sending.tracking import inbox as tracking
from sending.tracking import webhooks
from tests.provider_payloads import ANYMAIL, NAMES, Post, basic, ours, post, raw

from . import webhook_posts
from .rows import campaign_to, row, status_of
from .tracked import counts
from .webhook_posts import MISSING, POSTED, SIGNED, about, send_post

pytest.importorskip("anymail")
pytestmark = webhook_posts.MARKS

webhook_keys = webhook_posts.webhook_keys


@pytest.mark.parametrize("esp", POSTED)
def test_a_wrong_or_missing_secret_is_403_and_counted(esp: str) -> None:
    said = post(esp, [raw(esp, ours(esp, "complained"))])
    logins = [basic(s) for s in ("webhooks:wrong", "wrong", "", "webhooks:a-long-passwor", "\xe9")]
    logins += ["Basic", "Basic ===", "Basic /w==", "Bearer x", "x" * 5000]
    for login in logins:
        said.headers["Authorization"] = login
        answer = send_post(said)
        assert (answer.status_code, answer.content) == (403, b"Forbidden.\n"), login
    del said.headers["Authorization"]
    # Amazon asks without it first, and shows it only to whoever says so.
    assert send_post(said).status_code == (401 if esp == "amazon_ses" else 403)
    assert not ProviderEvent.objects.exists()
    assert counts() == {f"{NAMES[esp]} refused": len(logins) + (esp != "amazon_ses")}


@pytest.mark.parametrize("esp", SIGNED)
@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_a_wrong_or_missing_signature_is_403_and_counted(esp: str, harm: str) -> None:
    said = post(esp, [raw(esp, ours(esp, "complained"))])
    header = {
        "mailersend": "Signature",
        "mailtrap": "Mailtrap-Signature",
        "mandrill": "X-Mandrill-Signature",
    }.get(esp)
    if header:
        said.headers[header] = "0" * 64
        if harm == "missing":
            del said.headers[header]
    else:  # it is in the body
        key = b'"auth"' if esp == "unisender_go" else b'"signature"'
        body = json.loads(said.body)
        if harm == "missing":
            said.body = said.body.replace(key, b'"other"')
        elif esp == "unisender_go":
            said.body = json.dumps({**body, "auth": "0" * 32}).encode()
        else:
            body["signature"]["signature"] = "0" * 64
            said.body = json.dumps(body).encode()
    assert send_post(said).status_code == 403
    assert not ProviderEvent.objects.exists()
    assert counts() == {f"{NAMES[esp]} refused": 1}


@pytest.mark.parametrize("esp", NAMES)
def test_without_any_secret_everything_is_refused(
    esp: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = post(esp, [raw(esp, ours(esp, "delivered") or ours(esp, "taken"))])
    with override_settings(ANYMAIL={}), caplog.at_level(logging.ERROR, "sendonce.webhooks"):
        assert [send_post(said).status_code for _ in range(3)] == [403] * 3
    assert not ProviderEvent.objects.exists()
    assert counts() == {f"{NAMES[esp]} refused": 3}
    (record,) = [r for r in caplog.records if r.name == "sendonce.webhooks"]  # said once
    assert "WEBHOOK_SECRET" in record.getMessage()


@pytest.mark.parametrize("esp", ["mailgun", "mandrill", "unisender_go"])
def test_a_signature_does_without_the_shared_secret(esp: str) -> None:
    keys = {name: value for name, value in ANYMAIL.items() if name != "WEBHOOK_SECRET"}
    said = post(esp, [raw(esp, ours(esp, "complained"))], secret=None)
    with override_settings(ANYMAIL=keys):
        assert send_post(said).status_code == 200
    assert ProviderEvent.objects.count() == 1


def test_any_of_several_secrets_will_do() -> None:
    keys = {**ANYMAIL, "WEBHOOK_SECRET": ["old:one", "new:one"]}
    with override_settings(ANYMAIL=keys):
        for secret, status in [("old:one", 200), ("new:one", 200), ("newer:one", 403)]:
            said = post("brevo", [raw("brevo", "delivered")])
            said.headers["Authorization"] = basic(secret)
            assert send_post(said).status_code == status


def test_an_empty_secret_is_none() -> None:
    said = post("brevo", [raw("brevo", "delivered")])
    for login in (basic(""), basic("None"), "Basic Og=="):
        said.headers["Authorization"] = login
        for secret in ("", [""], [], None):
            with override_settings(ANYMAIL={"WEBHOOK_SECRET": secret}):
                assert send_post(said).status_code == 403


def test_whoever_does_not_know_the_secret_does_not_get_the_body_read() -> None:
    for esp in ("sendgrid", "amazon_ses"):
        for body in (b"{", b"\xff" * 99, b"x" * 20_000_000):
            said = Post(f"/webhooks/{esp}/tracking/", body, headers={"Authorization": basic("a:b")})
            assert send_post(said).status_code == 403
    assert counts() == {"Amazon SES refused": 3, "SendGrid refused": 3}


def _hide(package: str, esp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports the package does not find it, and the provider's view is imported anew."""
    view = f"anymail.webhooks.{esp}"
    modules: dict[str, Any] = sys.modules
    monkeypatch.setattr(view, import_module(view))  # the package's attribute comes back, too
    monkeypatch.delitem(modules, view)
    for name in [package, *(name for name in modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(modules, name, None)


@pytest.mark.parametrize("esp", MISSING)
def test_a_provider_whose_package_is_missing_is_refused(
    esp: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _hide(MISSING[esp], esp, monkeypatch)
    urls = (path("webhooks/", include((webhooks.patterns(), "sendonce_webhooks"))),)
    keys = {**ANYMAIL, "POSTAL_WEBHOOK_KEY": "MFwwDQYJKoZIhvcNAQEB"}
    with override_settings(ANYMAIL=keys, ROOT_URLCONF=urls):
        said = post(esp, [raw(esp, ours(esp, "delivered"))])
        said.headers["X-Postal-Signature"] = "AAAA"
        assert send_post(said).status_code == 403
    assert counts() == {f"{NAMES[esp]} refused": 1}
    assert f"The {MISSING[esp]} package" in caplog.text


def test_postal_signs_with_a_key_of_its_own() -> None:
    primitives = "cryptography.hazmat.primitives"
    hashes = pytest.importorskip(f"{primitives}.hashes")
    serialization = pytest.importorskip(f"{primitives}.serialization")
    padding = pytest.importorskip(f"{primitives}.asymmetric.padding")
    rsa = pytest.importorskip(f"{primitives}.asymmetric.rsa")
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    send = row(campaign_to(0), "sent", provider_message_id="7")
    event = about(send, "postal", "HardFail", message="7", reply="550 5.1.1 no such user")
    said = post("postal", [event])
    signature = key.sign(said.body, padding.PKCS1v15(), hashes.SHA1())
    said.headers["X-Postal-Signature"] = b64encode(signature).decode()
    keys = {**ANYMAIL, "POSTAL_WEBHOOK_KEY": b64encode(public).decode()}
    with override_settings(ANYMAIL=keys):
        assert send_post(said).status_code == 200
        said.body += b" "
        assert send_post(said).status_code == 403
    tracking.apply_waiting()
    assert status_of(send) == "bounced"


def test_a_hard_bounce_at_amazon_from_the_request_to_the_suppression() -> None:
    pytest.importorskip("boto3")
    send = row(campaign_to(0), "in_doubt")
    said = post("amazon_ses", [about(send, "amazon_ses", "Bounce")])
    said.headers["X-Amz-Sns-Message-Id"] = "another"
    assert send_post(said).status_code == 403
    said = post("amazon_ses", [about(send, "amazon_ses", "Bounce")])
    assert send_post(said).status_code == 200
    tracking.apply_waiting()
    assert (status_of(send), counts()) == ("bounced", {"Amazon SES refused": 1})
    said.headers["X-Amz-Sns-Message-Type"] = "SubscriptionConfirmation"
    assert send_post(said).status_code == 403


@pytest.mark.parametrize(
    ("method", "status"), [("head", 200), ("get", 405), ("put", 405), ("options", 200)]
)
def test_other_methods(method: str, status: int) -> None:
    answer: HttpResponse = getattr(Client(), method)(
        "/webhooks/mandrill/tracking/", SERVER_NAME="news.example.org"
    )
    assert answer.status_code == status
    assert not ProviderEvent.objects.exists()
