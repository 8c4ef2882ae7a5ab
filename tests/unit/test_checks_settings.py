"""The system checks of the settings: keys, values, transports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from sending import checks as sending_checks
from subscribers import checks
from subscribers.conf import Conf, conf
from subscribers.conf_values import fits, in_words, wrong_values

SMTP = "sending.smtp.EmailBackend"
UUID = "6f2a9f0e-5f3a-4f6e-9a57-0d7d7a7a0001"


def said(check: Callable[..., list[CheckMessage]], **overridden: Any) -> list[CheckMessage]:
    with override_settings(**overridden):
        return check(None)


def ids(found: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in found]


def smtp(**options: Any) -> dict[str, Any]:
    return {"BACKEND": SMTP, "OPTIONS": options}


# --- E001, E002: keys and values -------------------------------------------------------------


def test_the_defaults_and_the_projects_own_settings_are_right() -> None:
    assert wrong_values({}) == []
    for check in (
        checks.check_settings,
        checks.check_database,
        checks.check_names,
        checks.check_links,
        sending_checks.check_transports,
        sending_checks.check_base_url,
    ):
        assert check(None) == []


def test_an_unknown_key_is_named() -> None:
    found = said(checks.check_settings, SENDONCE={"LANE": 3, 5: 1, "LANES": 3})
    assert ids(found) == ["sendonce.E001", "sendonce.E001"]
    assert "5" in found[0].msg
    assert "'LANE'" in found[1].msg


@pytest.mark.parametrize("given", [5, None, "x", [("LANES", 3)]])
def test_what_is_no_dict_is_refused_and_never_read(given: Any) -> None:
    assert ids(said(checks.check_settings, SENDONCE=given)) == ["sendonce.E002"]
    assert said(sending_checks.check_transports, SENDONCE=given) == []
    assert said(sending_checks.check_base_url, SENDONCE=given) == []
    with override_settings(SENDONCE=given), pytest.raises(ImproperlyConfigured, match="a dict"):
        _ = conf.LANES


WRONG: list[tuple[str, Any]] = [
    ("SECRET_KEYS", "supersecret"),
    ("SECRET_KEYS", b"supersecret"),
    ("SECRET_KEYS", {"supersecret"}),
    ("SECRET_KEYS", ("supersecret", 5)),
    ("SECRET_KEYS", ("supersecret", "")),
    ("SECRET_KEYS", None),
    ("NAMESPACE", "abc"),
    ("NAMESPACE", None),
    ("NAMESPACE", 5),
    ("TRANSPORTS", 5),
    ("TRANSPORTS", "smtp://supersecret@127.0.0.1"),
    ("TRANSPORTS", {"default": "supersecret"}),
    ("TRANSPORTS", {"default": None}),
    ("TRANSPORTS", {5: {"BACKEND": SMTP}}),
    ("DIRECT_CONNECTION", "false"),
    ("DIRECT_CONNECTION", 1),
    ("BASE_URL", None),
    ("BASE_URL", "www.example.org"),
    ("BASE_URL", "ftp://www.example.org"),
    ("BASE_URL", "https://"),
    ("BASE_URL", "https://www.example.org/"),
    ("BASE_URL", "https://www.example.org?a=b"),
    ("BASE_URL", "https://www.example.org:port"),
    ("BASE_URL", "https://[::1"),
    ("BASE_URL", "https://www.example.org\n"),
    ("LANES", 0),
    ("LANES", 2.0),
    ("LANES", True),
    ("LANES", "8"),
    ("LEASE", 0),
    ("LEASE", "60"),
    ("LEASE", True),
    ("LEASE", float("nan")),
    ("LEASE", float("inf")),
    ("LEASE_MARGIN", 31),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_wrong_value_is_one_error_that_names_its_key(key: str, value: Any) -> None:
    found = said(checks.check_settings, SENDONCE={key: value})
    assert ids(found) == ["sendonce.E002"]
    assert f"SENDONCE[{key!r}]" in found[0].msg
    assert "supersecret" not in found[0].msg


@pytest.mark.parametrize(
    "given",
    [
        {"SECRET_KEYS": ["one key", "another"]},
        {"SECRET_KEYS": ()},
        {"NAMESPACE": UUID},
        {"NAMESPACE": ""},
        {"TRANSPORTS": {}},
        {"BASE_URL": "https://[::1]:8000"},
        {"BASE_URL": "https://www.example.org/mail"},
        {"LEASE": 20, "LEASE_MARGIN": 10},
        {"DIRECT_CONNECTION": True},
    ],
)
def test_a_right_value_is_none(given: dict[str, Any]) -> None:
    assert said(checks.check_settings, SENDONCE=given) == []


def test_every_key_is_checked_by_its_declared_type() -> None:
    nothing = object()
    for key, hint in get_type_hints(Conf).items():
        assert in_words(hint)
        assert fits(getattr(Conf(), key), hint)
        assert len(wrong_values({key: nothing})) == 1, key


def test_a_text_never_becomes_one_letter_keys() -> None:
    """A web server does not run the checks."""
    for keys in ("supersecret", ("",)):
        with pytest.raises(ImproperlyConfigured, match="SECRET_KEYS"):
            Conf(SECRET_KEYS=keys).signing_keys()  # type: ignore[arg-type]


# --- E001, E002, E005: transports ------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "found", "names"),
    [
        ({"BACKEND": SMTP, "OPTION": {}, "OPTIONS": {"host": "x"}}, "E001", "'OPTION'"),
        ({}, "E002", "BACKEND"),
        ({"BACKEND": None}, "E002", "BACKEND"),
        ({"BACKEND": SMTP, "OPTIONS": "host"}, "E002", "OPTIONS"),
        ({"BACKEND": SMTP, "OPTIONS": {5: 1}}, "E002", "OPTIONS"),
        ({"BACKEND": "sending.smpt.EmailBackend"}, "E005", "sending.smpt"),
        ({"BACKEND": "sending.smtp.Backend"}, "E005", "Backend"),
        ({"BACKEND": "EmailBackend"}, "E005", "EmailBackend"),
        ({"BACKEND": "sending.smtp_envelope.mailbox"}, "E005", "TypeError"),
        (smtp(host="x", prot=25), "E005", "prot"),
        (smtp(host="x", port="smtp"), "E005", "smtp"),
        (smtp(host="x", use_tls=True, use_ssl=True), "E005", "use_ssl"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(
    entry: dict[str, Any], found: str, names: str
) -> None:
    given = {"TRANSPORTS": {"bulk": entry, "other": smtp(host="127.0.0.1")}}
    errors = said(sending_checks.check_transports, SENDONCE=given)
    assert ids(errors) == [f"sendonce.{found}"]
    assert "'bulk'" in errors[0].msg
    assert names in errors[0].msg
    assert said(checks.check_settings, SENDONCE=given) == []


@pytest.mark.parametrize("transports", [5, "x", {"default": 5}, {5: {}}, None])
def test_what_is_no_entry_is_an_error_and_no_crash(transports: Any) -> None:
    given = {"TRANSPORTS": transports}
    said(sending_checks.check_transports, SENDONCE=given)
    said(sending_checks.check_base_url, SENDONCE=given)
    assert ids(said(checks.check_settings, SENDONCE=given)) == ["sendonce.E002"]


def test_a_strangers_backend_is_imported_but_not_made(tmp_path: Path) -> None:
    backend = "django.core.mail.backends.filebased.EmailBackend"
    entry = {"BACKEND": backend, "OPTIONS": {"file_path": str(tmp_path / "mail")}}
    assert said(sending_checks.check_transports, SENDONCE={"TRANSPORTS": {"x": entry}}) == []
    assert not (tmp_path / "mail").exists()


def test_a_missing_api_key_is_found() -> None:
    pytest.importorskip("anymail")
    entry = {"BACKEND": "anymail.backends.resend.EmailBackend"}
    found = said(sending_checks.check_transports, SENDONCE={"TRANSPORTS": {"x": entry}}, ANYMAIL={})
    assert ids(found) == ["sendonce.E005"]
    assert "api_key" in found[0].msg.lower()
    given = {"SENDONCE": {"TRANSPORTS": {"x": entry}}, "ANYMAIL": {"RESEND_API_KEY": "x"}}
    assert said(sending_checks.check_transports, **given) == []


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"RATE": 14}, None),
        ({"RATE": 0.5, "CONNECTIONS": 1}, None),
        ({"RATE": None, "CONNECTIONS": None}, None),
        ({"RATE": 0}, "RATE"),
        ({"RATE": -1}, "RATE"),
        ({"RATE": "14"}, "RATE"),
        ({"RATE": True}, "RATE"),
        ({"RATE": float("inf")}, "RATE"),
        ({"RATE": float("nan")}, "RATE"),
        ({"CONNECTIONS": 0}, "CONNECTIONS"),
        ({"CONNECTIONS": 2.5}, "CONNECTIONS"),
        ({"CONNECTIONS": True}, "CONNECTIONS"),
        ({"CONNECTIONS": "many"}, "CONNECTIONS"),
    ],
)
def test_limits_of_a_transport(limits: dict[str, Any], names: str | None) -> None:
    given = {"TRANSPORTS": {"bulk": {**smtp(host="127.0.0.1"), **limits}}}
    errors = said(sending_checks.check_transports, SENDONCE=given)
    assert ids(errors) == ([] if names is None else ["sendonce.E002"])
    assert all(f"'bulk']: {names}" in error.msg for error in errors)


@pytest.mark.parametrize(
    ("timeout", "is_right"),
    [
        (30, True),
        (0.5, True),
        (None, True),
        ((5, 30), True),
        ([5, 30], True),
        ((5, None), True),
        (0, False),
        (-1, False),
        (True, False),
        ("30", False),
        ((5, "30"), False),
        ((1, 2, 3), False),
    ],
)
def test_the_time_out_of_a_providers_requests(timeout: Any, is_right: bool) -> None:
    pytest.importorskip("anymail")
    entry: dict[str, Any] = {"BACKEND": "anymail.backends.postmark.EmailBackend"}
    expected = [] if is_right else ["sendonce.E002"]
    given = {"TRANSPORTS": {"bulk": entry}}
    token = {"POSTMARK_SERVER_TOKEN": "x"}
    by_settings = {"SENDONCE": given, "ANYMAIL": {"REQUESTS_TIMEOUT": timeout, **token}}
    assert ids(said(sending_checks.check_transports, **by_settings)) == expected
    entry["OPTIONS"] = {"timeout": timeout}
    assert ids(said(sending_checks.check_transports, SENDONCE=given, ANYMAIL=token)) == expected


# --- E006: Amazon's library must not send again by itself ------------------------------------

SES = "anymail.backends.amazon_ses.EmailBackend"


@pytest.mark.parametrize(
    ("params", "is_right"),
    [
        (None, False),
        ({}, False),
        ({"config": {}}, False),
        ({"config": None}, False),
        ({"config": {"retries": {"max_attempts": 1}}}, False),
        ({"config": {"retries": {"total_max_attempts": 2}}}, False),
        ({"config": {"retries": {"mode": "standard"}}}, False),
        ({"config": {"retries": {"total_max_attempts": 1}}}, True),
        ({"config": {"retries": {"total_max_attempts": 1, "mode": "standard"}}}, True),
    ],
)
def test_amazons_own_retries(params: Any, is_right: bool) -> None:
    pytest.importorskip("boto3")
    expected = [] if is_right else ["sendonce.E006"]
    by_settings: dict[str, Any] = {"SENDONCE": {"TRANSPORTS": {"ses": {"BACKEND": SES}}}}
    by_settings["ANYMAIL"] = {} if params is None else {"AMAZON_SES_CLIENT_PARAMS": params}
    assert ids(said(sending_checks.check_transports, **by_settings)) == expected
    options = {} if params is None else {"client_params": params}
    entry = {"BACKEND": SES, "OPTIONS": options}
    by_options = {"TRANSPORTS": {"ses": entry}}
    assert ids(said(sending_checks.check_transports, SENDONCE=by_options)) == expected


def test_amazons_config_object_is_looked_into() -> None:
    Config = pytest.importorskip("botocore.config").Config
    entry = {"TRANSPORTS": {"ses": {"BACKEND": SES}}}
    for attempts, expected in ((1, []), (3, ["sendonce.E006"])):
        config = Config(retries={"total_max_attempts": attempts})
        params = {"AMAZON_SES_CLIENT_PARAMS": {"config": config}}
        found = said(sending_checks.check_transports, SENDONCE=entry, ANYMAIL=params)
        assert ids(found) == expected
