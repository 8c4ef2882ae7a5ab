"""What is known of each provider, and what a transport derives from it and from its settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.mail import EmailMultiAlternatives
from django.test import override_settings

from sending import installation
from sending.providers.answer_timeouts import answer_timeout
from sending.providers.fingerprints import fingerprint
from sending.providers.table import (
    PROVIDERS,
    UNKNOWN,
    KeyTravels,
    Provider,
    Speaks,
    campaign_key,
    deduplication_key,
    installation_tag,
    metadata_job_id,
    provider_of,
)
from sending.smtp import EmailBackend as SMTPBackend
from sending.transports import Transport, transport
from tests.conftest import ROOT

ONE = UUID("0d1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b")
OTHER = UUID("9b8c7d6e-5f4a-4b3c-9d2e-1f0a9b8c7d6e")
RESEND = "anymail.backends.resend.EmailBackend"
POSTMARK = "anymail.backends.postmark.EmailBackend"

# --- the table -----------------------------------------------------------------------------------


def test_every_backend_of_anymail_is_in_the_table() -> None:
    """A new version with another provider fails here, and somebody looks it up."""
    backends = pytest.importorskip("anymail.backends")
    here = {path.stem for folder in backends.__path__ for path in Path(folder).glob("*.py")}
    known = {path.split(".")[2] for path in PROVIDERS if path.startswith("anymail.")}
    assert here - known <= {"__init__", "base", "console", "sendinblue"}


@pytest.mark.parametrize("path", [p for p in PROVIDERS if p.startswith("anymail.")])
def test_the_table_agrees_with_anymail(path: str) -> None:
    pytest.importorskip("anymail")
    if "amazon" in path:
        pytest.importorskip("boto3")
    kind = Transport("t", path).backend_class
    found = provider_of(kind)
    assert found is PROVIDERS[path]
    if found.is_anymail:
        assert found.esp_name == getattr(kind, "esp_name")  # noqa: B009
    over_http = "AnymailRequestsBackend" in {k.__name__ for k in kind.__mro__}
    assert (found.speaks is Speaks.REQUESTS) is over_http


@pytest.mark.parametrize(
    ("name", "replays_within", "has_metadata", "key_travels"),
    [
        ("resend", 23 * 3600, True, KeyTravels.HTTP_HEADER),
        ("brevo", 720, True, KeyTravels.MAIL_HEADER),
        ("unisender_go", 45, True, KeyTravels.BODY),
        ("mailjet", 23 * 3600, True, KeyTravels.CAMPAIGN),
        ("postmark", 0, True, KeyTravels.NOT),
        ("amazon_ses", 0, True, KeyTravels.NOT),
        ("sendgrid", 0, True, KeyTravels.NOT),
        ("mailersend", 0, False, KeyTravels.NOT),
        ("postal", 0, False, KeyTravels.NOT),
        ("scaleway", 0, False, KeyTravels.NOT),
    ],
)
def test_what_the_table_says(
    name: str, replays_within: float, has_metadata: bool, key_travels: KeyTravels
) -> None:
    found = PROVIDERS[f"anymail.backends.{name}.EmailBackend"]
    assert found.replay_window == replays_within
    assert found.deduplicates is bool(replays_within)
    assert (found.has_metadata, found.key_travels) == (has_metadata, key_travels)


def test_a_window_without_a_key_is_none() -> None:
    assert Provider("x", window=60.0).replay_window == 0.0
    assert Provider("x", window=5.0, margin=9.0, key_travels=KeyTravels.BODY).replay_window == 0.0


def test_a_subclass_is_its_provider() -> None:
    class Ours(SMTPBackend):
        pass

    assert provider_of(Ours) is PROVIDERS["sending.smtp.EmailBackend"]
    assert provider_of(object) is UNKNOWN
    assert not UNKNOWN.is_anymail


def test_a_backend_that_somebody_built_on_anymail() -> None:
    base = pytest.importorskip("anymail.backends.base_requests")

    theirs = type("Theirs", (base.AnymailRequestsBackend,), {"esp_name": "Theirs"})
    found = provider_of(theirs)
    assert (found.esp_name, found.speaks) == ("Theirs", Speaks.REQUESTS)
    assert not found.deduplicates
    assert not found.has_metadata


def test_the_old_name_of_brevo_keeps_its_settings_and_webhooks() -> None:
    module = pytest.importorskip("anymail.backends.sendinblue")
    found = provider_of(module.EmailBackend)
    assert (found.name, found.esp_name) == ("Brevo", "SendinBlue")


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_is_a_uuid_of_job_and_installation() -> None:
    key = deduplication_key(ONE, "campaign:7:12")
    assert UUID(key).version == 5
    assert key == deduplication_key(ONE, "campaign:7:12")
    assert key != deduplication_key(ONE, "campaign:7:13")
    assert key != deduplication_key(OTHER, "campaign:7:12")
    assert len(deduplication_key(ONE, "x" * 5000)) == 36
    keys = {deduplication_key(ONE, "campaign:7:12", repeats) for repeats in range(3)}
    assert len(keys) == 3
    assert key in keys


def test_a_campaigns_name_is_its_installations_own() -> None:
    assert campaign_key(ONE, "campaign:7:1", 7) == campaign_key(ONE, "campaign:7:2", 7)
    assert campaign_key(ONE, "campaign:7:1", 7) != campaign_key(OTHER, "campaign:7:1", 7)
    assert campaign_key(ONE, "message:1:a:1", None) != campaign_key(ONE, "message:1:a:2", None)


@pytest.mark.parametrize(
    ("job_id", "travels_as"),
    [
        ("campaign:7:12", "campaign:7:12"),
        ("message:1:confirm:a b", "message:1:confirm:a b"),
        ("m" * 80, "m" * 80),
        ("m" * 81, "send:5"),
        ("message:1:k:grüße", "send:5"),
        ('message:1:k:"', "send:5"),
        ("message:1:k:\\u00fc", "send:5"),
        ("message:1:k:\n", "send:5"),
        ("message:1:k:\x7f", "send:5"),
        ("", "send:5"),
    ],
)
def test_a_job_id_that_can_not_travel(job_id: str, travels_as: str) -> None:
    assert metadata_job_id(job_id, 5) == travels_as


def test_the_installations_tag_is_one() -> None:
    with override_settings(SENDONCE={"NAMESPACE": str(ONE)}):
        assert installation.tag() == installation_tag(ONE)


def test_nothing_is_put_on_a_message_for_another_backend() -> None:
    message = EmailMultiAlternatives("s", "b", "s@example.org", ["a@example.org"])
    before = dict(vars(message))
    for path in ("sending.smtp.EmailBackend", "django.core.mail.backends.locmem.EmailBackend"):
        Transport("t", path).prepare(
            message, job_id="campaign:1:1", namespace=ONE, send_id=1, campaign_id=1
        )
    assert vars(message) == before


def test_what_is_on_a_message_already_stays() -> None:
    pytest.importorskip("anymail")
    message = EmailMultiAlternatives("s", "b", "s@example.org", ["a@example.org"])
    message.metadata = {"own": "1", "job_id": "x"}  # type: ignore[attr-defined]
    message.esp_extra = {"tags": ["t"]}  # type: ignore[attr-defined]
    Transport("t", RESEND).prepare(
        message, job_id="campaign:1:1", namespace=ONE, send_id=1, campaign_id=1
    )
    found: Any = message
    assert found.metadata["own"] == "1"
    assert found.metadata["job_id"] == "campaign:1:1"
    assert found.esp_extra["tags"] == ["t"]
    assert set(found.esp_extra) == {"tags", "idempotency_key"}


# --- entries -------------------------------------------------------------------------------------


def test_rate_and_connections_of_an_entry() -> None:
    entry = {"BACKEND": "sending.smtp.EmailBackend", "RATE": 2.5, "CONNECTIONS": 3}
    plain = {"BACKEND": "sending.smtp.EmailBackend"}
    with override_settings(SENDONCE={"TRANSPORTS": {"a": entry, "b": plain}}):
        assert (transport("a").rate, transport("a").connections) == (2.5, 3)
        assert (transport("b").rate, transport("b").connections) == (None, None)


# --- how long an answer may take ------------------------------------------------------------------

HTTP = Provider("x", speaks=Speaks.REQUESTS)
BOTO = Provider("x", speaks=Speaks.BOTOCORE)


@pytest.mark.parametrize(
    ("provider", "options", "anymail", "seconds"),
    [
        (Provider("x", speaks=Speaks.SMTP), {}, {}, 600),
        (UNKNOWN, {}, {}, 600),
        (HTTP, {}, {}, 150),
        (HTTP, {}, {"REQUESTS_TIMEOUT": 5}, 60),
        (HTTP, {}, {"REQUESTS_TIMEOUT": (5, 100)}, 405),
        (HTTP, {}, {"REQUESTS_TIMEOUT": None}, 600),
        (HTTP, {}, {"REQUESTS_TIMEOUT": (5, None)}, 600),
        (HTTP, {}, {"REQUESTS_TIMEOUT": "soon"}, 600),
        (HTTP, {"timeout": 20}, {"REQUESTS_TIMEOUT": 5}, 100),
        (HTTP, {"requests_timeout": 20}, {"REQUESTS_TIMEOUT": 5}, 100),
        (HTTP, {}, {"REQUESTS_TIMEOUT": 1000}, 5000),
        (BOTO, {}, {}, 300),
        (BOTO, {"client_params": {"config": {"read_timeout": 5, "connect_timeout": 1}}}, {}, 60),
        (BOTO, {}, {"AMAZON_SES_CLIENT_PARAMS": {"config": {"read_timeout": 100}}}, 460),
    ],
)
def test_the_answer_timeout(
    provider: Provider, options: dict[str, Any], anymail: dict[str, Any], seconds: float
) -> None:
    with override_settings(ANYMAIL=anymail):
        assert answer_timeout(provider, options) == seconds


def test_a_shorter_answer_timeout_of_the_project_lowers_the_floor_only() -> None:
    with override_settings(SENDONCE={"ANSWER_TIMEOUT": 3.0}, ANYMAIL={"REQUESTS_TIMEOUT": 0.5}):
        assert answer_timeout(HTTP, {}) == 3.0
    with override_settings(SENDONCE={"ANSWER_TIMEOUT": 3.0}, ANYMAIL={"REQUESTS_TIMEOUT": 10}):
        assert answer_timeout(HTTP, {}) == 50.0


def test_botocores_own_config_object_is_read_too() -> None:
    Config = pytest.importorskip("botocore.config").Config
    options = {"client_params": {"config": Config(read_timeout=100, connect_timeout=10)}}
    assert answer_timeout(BOTO, options) == 410


# --- fingerprints --------------------------------------------------------------------------------


def via(
    backend: str = RESEND,
    options: dict[str, Any] | None = None,
    *,
    alias: str = "bulk",
    anymail: dict[str, Any] | None = None,
    **sendonce: Any,
) -> str:
    pytest.importorskip("anymail")
    given = {"NAMESPACE": str(ONE), "BASE_URL": "https://www.example.org", **sendonce}
    with override_settings(SENDONCE=given, ANYMAIL=anymail or {"RESEND_API_KEY": "re_secret"}):
        return Transport(alias, backend, options or {}).via


def test_what_changes_a_transports_fingerprint() -> None:
    others = {
        "alias": via(alias="other"),
        "backend": via(POSTMARK),
        "options": via(options={"api_key": "x"}),
        "key": via(anymail={"RESEND_API_KEY": "re_other"}),
        "url": via(anymail={"RESEND_API_KEY": "re_secret", "RESEND_API_URL": "https://x"}),
        "defaults": via(anymail={"RESEND_API_KEY": "re_secret", "SEND_DEFAULTS": {"tags": ["x"]}}),
        "namespace": via(NAMESPACE=str(OTHER)),
        "links": via(BASE_URL="https://other.example.org"),
        "link key": via(SECRET_KEYS=("another",)),
    }
    assert via() == via()
    assert len({via(), *others.values()}) == len(others) + 1


@pytest.mark.parametrize(
    "anymail",
    [
        {"RESEND_API_KEY": "re_secret", "WEBHOOK_SECRET": "a:b"},
        {"RESEND_API_KEY": "re_secret", "POSTMARK_SERVER_TOKEN": "x"},
        {"RESEND_API_KEY": "re_secret", "REQUESTS_TIMEOUT": 5},
    ],
)
def test_what_does_not_change_it(anymail: dict[str, Any]) -> None:
    assert via(anymail=anymail) == via()


def test_a_key_outside_the_dict_counts_as_well() -> None:
    with override_settings(RESEND_API_KEY="bare"):
        one = via(anymail={"X": 1})
    with override_settings(ANYMAIL_RESEND_API_KEY="prefixed"):
        other = via(anymail={"X": 1})
    assert len({one, other, via(anymail={"X": 1})}) == 3


def test_it_tells_no_secret_and_fits_its_column() -> None:
    found = via(alias="a" * 200)
    assert len(found) == 80
    name, colon, digits = via().partition(":")
    assert (name, colon, len(digits)) == ("bulk", ":", 16)
    assert set(digits) <= set("0123456789abcdef")


def test_without_the_signing_key_nothing_can_be_tried_out() -> None:
    assert fingerprint("one", "password") != fingerprint("two", "password")


def test_the_same_in_every_process() -> None:
    """A worker that restarts has to find its own rows; hash seeds and addresses change."""
    code = (
        "from sending.providers.fingerprints import fingerprint\n"
        "from uuid import UUID\n"
        "class Options:\n"
        "    def __init__(self): self.size, self.names = 5, {'b', 'a', 'c'}\n"
        "def call(): pass\n"
        "print(fingerprint('k', {'b': 1, 'a': [Options(), call, object()]}, UUID(int=1), b'x'))"
    )
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_values_that_differ_give_other_fingerprints() -> None:
    values: list[Any] = [
        None,
        0,
        False,
        "",
        "0",
        b"0",
        [],
        {},
        {"a": 1},
        {"a": 2},
        {1: "a"},
        {"1": "a"},
        ONE,
        OTHER,
        SimpleNamespace(a=1),
        SimpleNamespace(a=2),
        len,
        sorted,
        json.dumps,
    ]
    assert len({fingerprint("k", value) for value in values}) == len(values)


def test_endless_values_end() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    assert len(fingerprint("k", endless)) == 16
