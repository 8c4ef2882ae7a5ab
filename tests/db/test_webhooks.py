"""The webhooks as providers call them: what is stored, what is refused, and what is counted."""

from __future__ import annotations

import json
import logging
import random
from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse
from django.utils import timezone

from sending.installation import tag
from sending.models import ProviderEvent, Send
from sending.tracking import inbox as tracking
from sending.tracking import webhooks
from subscribers.models import Suppression
from tests.provider_payloads import (
    ANYMAIL,
    BATCHING,
    HOST,
    NAMES,
    Post,
    basic,
    ours,
    post,
    raw,
)

from .racing import Race
from .rows import campaign_to, row, status_of
from .tracked import counts

pytest.importorskip("anymail")
pytestmark = [
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

urlpatterns = [
    path("hooks/", include("sending.webhook_urls")),
    path("anymail/", include("anymail.urls")),
]


@pytest.fixture(autouse=True)
def _keys() -> Iterator[None]:
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


# --- stored ----------------------------------------------------------------------------------


@pytest.mark.parametrize("esp", POSTED)
def test_a_request_is_stored_and_settles_the_doubt(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    more = {"provider_message_id": "esp-1"} if esp == "mailersend" else {}
    send = row(campaign_to(0), "in_doubt", **more)
    answer = send_post(post(esp, [about(send, esp, word, message="esp-1")]))
    assert (answer.status_code, answer.content) == (200, b"")
    assert not answer.cookies
    stored = ProviderEvent.objects.get()
    assert (stored.esp, stored.applied_at, stored.recipient) == (NAMES[esp], None, send.email)
    assert tracking.apply_waiting() == 1
    assert (status_of(send), counts()) == ("sent", {})


def test_a_hard_bounce_at_postmark_from_the_request_to_the_suppression() -> None:
    send = row(campaign_to(0), "sent")
    assert send_post(post("postmark", [about(send, "postmark", "Bounce")])).status_code == 200
    tracking.apply_waiting()
    assert status_of(send) == "bounced"
    assert [s.email for s in Suppression.objects.all()] == [send.email]


@pytest.mark.parametrize("esp", BATCHING)
def test_all_events_of_a_request_are_one_insert(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    events = [raw(esp, word, to=f"p{n}@example.org", number=n, message=f"m{n}") for n in range(40)]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert send_post(post(esp, events)).status_code == 200
    assert sum("INSERT" in query["sql"] for query in queries) == 1
    assert ProviderEvent.objects.count() == 40
    assert send_post(post(esp, events)).status_code == 200
    assert ProviderEvent.objects.count() == 40
    assert counts() == {f"{NAMES[esp]} replayed": 40}


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


# --- refused ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("esp", [e for e, package in MISSING.items() if not find_spec(package)])
def test_a_provider_whose_package_is_missing_is_refused(esp: str) -> None:
    with override_settings(ANYMAIL={**ANYMAIL, "POSTAL_WEBHOOK_KEY": "MFwwDQYJKoZIhvcNAQEB"}):
        said = post(esp, [raw(esp, ours(esp, "delivered"))])
        said.headers["X-Postal-Signature"] = "AAAA"
        assert send_post(said).status_code == 403
    assert counts() == {f"{NAMES[esp]} refused": 1}


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


# --- malformed -------------------------------------------------------------------------------

BROKEN: list[bytes] = [
    b"",
    b"{",
    b"null",
    b"7",
    b'"text"',
    b"[[]]",
    b"[7]",
    b"[null]",
    b'{"a": 1}',
    b'[{"a": 1}]',
    b"\xff\xfe\x00",
    "{\u4f60".encode(),
    b"\xd6\xe9" * 500,
    b"[" * 100_000,
    b'{"event": NaN}',
    b'{"event": {"a": []}, "events": 7, "msys": [], "Type": [], "RecordType": {}}',
    b'[{"event": {"a": []}, "msys": 7, "timestamp": "x", "time": []}]',
    b'[{"event": "delivered", "timestamp": 1e300, "msys": {"a": 1, "b": 2}}]',
    b"a=b&c=d",
]
LENIENT = {  # what anymail takes for an event of unknown kind, or for none at all
    "brevo": {b"[[]]", b'{"a": 1}'},
    "postmark": {b'{"a": 1}'},
    "mailtrap": {b'{"a": 1}'},
}


@pytest.mark.parametrize("esp", UNSIGNED)
def test_what_cannot_be_read_is_400_and_counted(esp: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = 0
    for body in BROKEN:
        said = Post(f"/webhooks/{esp}/tracking/", body, headers={"Authorization": basic()})
        answer = send_post(said)
        assert answer.status_code in (200, 400), body
        refused += answer.status_code == 400
        if answer.status_code == 200:
            kinds = set(ProviderEvent.objects.values_list("kind", flat=True))
            assert kinds <= {"unknown"}, body
    assert refused >= len(BROKEN) - 4
    assert counts()[f"{NAMES[esp]} malformed"] == refused
    assert not any(record.exc_info for record in caplog.records if record.name != "django.request")
    tracking.apply_waiting()
    assert not Suppression.objects.exists()


@pytest.mark.parametrize("esp", SIGNED)
def test_garbage_at_a_provider_that_signs(esp: str) -> None:
    for body in BROKEN:
        said = Post(f"/webhooks/{esp}/tracking/", body, headers={"Authorization": basic()})
        assert send_post(said).status_code in (400, 403), body
    assert sum(counts().values()) == len(BROKEN)
    assert not ProviderEvent.objects.exists()


@pytest.mark.parametrize("esp", BATCHING)
def test_one_event_that_cannot_be_read_does_not_cost_the_others(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    events: list[Any] = [raw(esp, word, to=f"p{n}@example.org", number=n) for n in range(3)]
    broken = {
        "mailjet": {"email": "x"},
        "mailtrap": {"event": None},
        "mandrill": {"event": "send", "msg": []},
        "sendgrid": {"event": "delivered", "timestamp": "yesterday"},
        "sparkpost": {"msys": {"message_event": {"no": "type"}}},
        "unisender_go": {
            "event_name": "transactional_email_status",
            "event_data": {"status": "sent", "event_time": "never"},
        },
    }[esp]
    assert send_post(post(esp, [events[0], broken, *events[1:]])).status_code == 200
    kinds = list(ProviderEvent.objects.order_by("kind").values_list("kind", flat=True))
    assert (len(kinds), kinds.count("unreadable")) == (4, 1)
    assert counts() == {f"{NAMES[esp]} malformed": 1}
    assert send_post(post(esp, [broken])).status_code == 400


def test_wrong_types_inside_an_event_change_nothing() -> None:
    send = row(campaign_to(0), "in_doubt")
    for field, value in [
        ("recipient", ["a"]),
        ("Email", {"a": 1}),
        ("MessageID", 7.5),
        ("Metadata", {"job_id": {"a": 1}, "installation": None}),
        ("Details", ["550 5.1.1"]),
        ("BouncedAt", "yesterday"),
        ("ID", {"a": "\0"}),
        ("Type", 7),
    ]:
        event = {**about(send, "postmark", "Bounce"), field: value}
        assert send_post(post("postmark", [event])).status_code in (200, 400)
    nul = about(send, "postmark", "Bounce", reply="550 5.7.1 blocked \0 \ud800 \u4f60\u597d")
    assert send_post(post("postmark", [nul])).status_code == 200
    tracking.apply_waiting()
    assert status_of(send) in ("sent", "bounced")  # Details as a list: hard, by its Type


JUNK: list[Any] = [None, True, 0, -1, 1e300, 10**400, "", "x\0y", "\ud800", "9" * 5000, [], {}]


def spoiled(value: Any, dice: random.Random) -> Any:
    """A copy with one thing in it, at any depth, replaced by something of another kind."""
    if isinstance(value, dict | list) and value and dice.random() < 0.8:
        copy: Any = value.copy()
        key = dice.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
        copy[key] = spoiled(copy[key], dice)
        return copy
    return dice.choice(JUNK)


@pytest.mark.parametrize("esp", POSTED)
def test_any_part_of_an_event_may_be_anything(esp: str) -> None:
    """Signed as they should be, so that all of it is read."""
    dice = random.Random(f"webhooks of {esp}")
    send = row(campaign_to(0), "in_doubt")
    for number in range(30):
        word = ours(esp, dice.choice(["taken", "delivered", "complained"])) or "open"
        event = spoiled(about(send, esp, word, number=number), dice)
        assert send_post(post(esp, [event])).status_code in (200, 400, 403), event
    # Those of a provider without metadata would wait for an outcome.
    stored = ProviderEvent.objects.update(received=timezone.now() - timedelta(hours=1))
    done = 0
    while step := tracking.apply_waiting():
        done += step
    assert done == stored
    assert not ProviderEvent.objects.filter(result="error").exists()
    assert not Suppression.objects.exclude(reason="complaint").exists()


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00", "1970-01-01"]
)
def test_a_time_out_of_range_is_counted(at: str) -> None:
    send = row(campaign_to(0), "in_doubt")
    event = {**about(send, "postmark", "Delivery"), "DeliveredAt": at}
    assert send_post(post("postmark", [event])).status_code == 200
    tracking.apply_waiting()
    send.refresh_from_db()
    assert (send.status, counts()) == ("sent", {"Postmark odd_time": 1})
    assert send.sent_at is not None
    assert send.handed_at is not None
    assert send.sent_at >= send.handed_at


def test_a_huge_request_is_413_and_counted() -> None:
    body = json.dumps([raw("sendgrid", "delivered")] * 30).encode()
    said = Post("/webhooks/sendgrid/tracking/", body, headers={"Authorization": basic()})
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000):
        assert send_post(said).status_code == 413
    assert (counts(), ProviderEvent.objects.count()) == ({"SendGrid too_large": 1}, 0)
    form = post("mandrill", [raw("mandrill", "send")] * 20)
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000):
        assert send_post(form).status_code == 413
    assert counts() == {"SendGrid too_large": 1, "Mandrill too_large": 1}


# --- the database is away --------------------------------------------------------------------


def test_a_database_that_is_away_is_503(transactional_db: None) -> None:
    """Never 200 for what is not stored."""
    said = post("brevo", [raw("brevo", "delivered")])

    def post_without_a_database() -> Any:
        away = {"HOST": "127.0.0.1", "PORT": "1"}
        connection.settings_dict = {**connection.settings_dict, **away}
        connection.close()
        return send_post(said)

    with Race() as race:
        answer = race.start(post_without_a_database).result()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
    assert not ProviderEvent.objects.exists()
    assert send_post(said).status_code == 200
    assert ProviderEvent.objects.count() == 1


def test_a_connection_that_died_meanwhile_is_made_anew(transactional_db: None) -> None:
    said = post("brevo", [raw("brevo", "delivered")])

    def client() -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        with Race() as race:
            race.start(lambda: _kill(pid)).result()
        return [send_post(said).status_code, send_post(said).status_code]

    with Race() as race:
        assert race.start(client).result() == [200, 200]
    assert ProviderEvent.objects.count() == 1


def _kill(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


# --- a host that serves anymail's own addresses ----------------------------------------------


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
