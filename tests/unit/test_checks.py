"""What ``manage.py check`` says about settings that would do harm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.urls import include, path

from sending import checks as sending_checks
from subscribers import checks
from subscribers.conf import Conf, conf
from subscribers.conf_values import fits, in_words, wrong_values
from tests.conftest import ROOT, run_manage

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
        ({"BACKEND": "sending.smtp.mailbox"}, "E005", "TypeError"),
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


# --- E003: the database ----------------------------------------------------------------------


class Elsewhere:
    """Routes the models of one app to another database."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.label == "sendonce_sending.Send" else None


def test_a_model_in_another_database_is_named() -> None:
    routers = [f"{__name__}.Elsewhere"]
    found = said(checks.check_database, DATABASE_ROUTERS=routers)
    assert ids(found) == ["sendonce.E003"]
    assert "sendonce_sending.Send " in found[0].msg


# --- E004: packages of the same name ---------------------------------------------------------

PROJECT = """
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="x" * 50,
    INSTALLED_APPS=[
        "subscribers", *sys.argv[1:], "django.contrib.auth", "django.contrib.contenttypes"
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "unused"}},
)
django.setup()
from subscribers.checks import check_database, check_names
for message in [*check_database(None), *check_names(None)]:
    print(message.id, message.msg)
"""
APPS = """
from django.apps import AppConfig
class CampaignsConfig(AppConfig):
    name = "campaigns"
"""


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"__init__.py": "", "apps.py": APPS}, ["campaigns"]),
        ({"__init__.py": "", "apps.py": APPS}, []),
        ({"__init__.py": "", "apps.py": "raise RuntimeError"}, []),
        ({"__init__.py": ""}, []),
        ({"readme.txt": ""}, []),
    ],
)
def test_a_package_that_hides_ours_is_named(
    tmp_path: Path, files: dict[str, str], installed: list[str]
) -> None:
    shadow = tmp_path / "campaigns"
    shadow.mkdir()
    for name, text in files.items():
        (shadow / name).write_text(text)
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]\n{PROJECT}"
    done = subprocess.run(
        [sys.executable, "-c", code, *installed],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    if "__init__.py" not in files:
        # A folder is no package while a real one is found behind it.
        assert done.stdout == "", done.stderr
        return
    assert done.stdout.startswith("sendonce.E004 "), done.stderr
    assert done.stdout.count("\n") == 1
    assert "'campaigns'" in done.stdout
    assert str(shadow / "__init__.py") in done.stdout


# --- W001: the page behind the links ---------------------------------------------------------

urlpatterns: list[Any] = []


def test_urls_without_the_unsubscribe_page_are_a_warning() -> None:
    found = said(checks.check_links, ROOT_URLCONF=__name__)
    assert ids(found) == ["sendonce.W001"]
    assert said(checks.check_links, ROOT_URLCONF=None) == []


# --- W004: an unsubscribe link that is redirected --------------------------------------------

#: As a module of URLs: ours below a language prefix, which is what a host may come to do.
IN_LANGUAGES = type(
    "Urls", (), {"urlpatterns": i18n_patterns(path("m/", include("subscribers.urls")))}
)


@pytest.mark.parametrize(
    ("overridden", "words"),
    [
        ({}, None),
        ({"SECURE_SSL_REDIRECT": True}, None),  # the project's own settings exempt it
        ({"SECURE_SSL_REDIRECT": True, "SECURE_REDIRECT_EXEMPT": []}, "SECURE_SSL_REDIRECT"),
        ({"SECURE_SSL_REDIRECT": True, "SECURE_REDIRECT_EXEMPT": [r"^mail/u/"]}, "SSL_REDIRECT"),
        ({"SECURE_SSL_REDIRECT": True, "SECURE_REDIRECT_EXEMPT": [r"u/"]}, None),
        ({"PREPEND_WWW": True, "SENDONCE": {"BASE_URL": "https://example.org"}}, "PREPEND_WWW"),
        ({"PREPEND_WWW": True, "SENDONCE": {"BASE_URL": "https://www.example.org"}}, None),
        ({"PREPEND_WWW": True, "SENDONCE": {"BASE_URL": 5}}, "PREPEND_WWW"),
        ({"PREPEND_WWW": True, "SENDONCE": 5}, "PREPEND_WWW"),
        ({"ROOT_URLCONF": IN_LANGUAGES}, "another path in each language"),
        ({"ROOT_URLCONF": IN_LANGUAGES, "USE_I18N": False}, None),
    ],
)
def test_what_would_redirect_a_one_click_is_a_warning(
    overridden: dict[str, Any], words: str | None
) -> None:
    found = said(checks.check_links, **overridden)
    assert ids(found) == ([] if words is None else ["sendonce.W004"])
    assert words is None or words in found[0].msg


def test_the_hint_names_the_path_to_exempt() -> None:
    (found,) = said(checks.check_links, SECURE_SSL_REDIRECT=True, SECURE_REDIRECT_EXEMPT=[])
    assert found.hint is not None
    assert 'r"^u/"' in found.hint


# --- W002: links that nobody else can follow -------------------------------------------------

RELAY = smtp(host="relay.example.org")
HOME = smtp(host="127.0.0.1", port=2525)
DJANGO = "django.core.mail.backends."


@pytest.mark.parametrize(
    ("url", "entry", "words"),
    [
        ("http://127.0.0.1:8000", RELAY, "this machine only"),
        ("https://127.0.0.1", RELAY, "this machine only"),
        ("https://localhost", RELAY, "this machine only"),
        ("https://mail.localhost.", RELAY, "this machine only"),
        ("https://[::1]:8000", RELAY, "this machine only"),
        ("http://0.0.0.0:8000", RELAY, "this machine only"),
        ("http://www.example.org", RELAY, "not https"),
        ("http://www.example.org", smtp(host="192.0.2.25"), "not https"),
        ("http://www.example.org", {"BACKEND": "anymail.backends.mailgun.EmailBackend"}, "https"),
        ("https://www.example.org", RELAY, None),
        ("http://www.example.org", HOME, None),
        ("http://127.0.0.1:8000", HOME, None),
        ("http://127.0.0.1:8000", smtp(host="127.9.9.9"), None),
        ("http://127.0.0.1:8000", smtp(host="localhost"), None),
        ("http://127.0.0.1:8000", smtp(host="::ffff:127.0.0.1"), None),
        ("http://127.0.0.1:8000", {"BACKEND": DJANGO + "console.EmailBackend"}, None),
        ("nonsense", RELAY, None),
        ("http://[", RELAY, None),
        (None, RELAY, None),
        (5, RELAY, None),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_dead_links_in_real_mail_are_a_warning(
    url: Any, entry: dict[str, Any], words: str | None, debug: bool
) -> None:
    given = {"BASE_URL": url, "TRANSPORTS": {"bulk": entry, "home": HOME}}
    found = said(sending_checks.check_base_url, SENDONCE=given, DEBUG=debug)
    assert ids(found) == ([] if words is None else ["sendonce.W002"])
    if words is not None:
        assert words in found[0].msg
        assert "transport bulk " in found[0].msg


def test_the_default_base_url_counts() -> None:
    found = said(sending_checks.check_base_url, SENDONCE={"TRANSPORTS": {"default": RELAY}})
    assert ids(found) == ["sendonce.W002"]


# --- the command line ------------------------------------------------------------------------


def test_a_wrong_setting_stops_a_command(bare_environ: dict[str, str]) -> None:
    env = {**bare_environ, "SECRET_KEY": "x" * 50, "SENDONCE_NAMESPACE": "abc"}
    done = run_manage("check", env=env)
    assert done.returncode == 1
    assert "(sendonce.E002) SENDONCE['NAMESPACE']" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_warns_of_dead_links(bare_environ: dict[str, str]) -> None:
    env = {**bare_environ, "SECRET_KEY": "x" * 50, "EMAIL_URL": "smtp://relay.example.org:25"}
    done = run_manage("check", "--fail-level", "WARNING", env=env)
    assert done.returncode == 1
    assert "(sendonce.W002)" in done.stderr
