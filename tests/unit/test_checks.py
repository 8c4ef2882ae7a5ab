"""What ``manage.py check`` says about settings that would do harm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.core.checks import CheckMessage
from django.test import override_settings
from django.urls import include, path

from sending import checks as sending_checks
from subscribers import checks
from tests.conftest import ROOT, run_manage

SMTP = "sending.smtp.EmailBackend"


def said(check: Callable[..., list[CheckMessage]], **overridden: Any) -> list[CheckMessage]:
    with override_settings(**overridden):
        return check(None)


def ids(found: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in found]


def smtp(**options: Any) -> dict[str, Any]:
    return {"BACKEND": SMTP, "OPTIONS": options}


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


def test_libraries_of_providers_that_nobody_uses_are_not_imported(
    bare_environ: dict[str, str],
) -> None:
    """The addresses of the webhooks are known by then; Amazon's library is a sixth of a start."""
    look = (
        "import sys\n"
        "from django.urls import get_resolver, reverse\n"
        "get_resolver().check()\n"
        "print(reverse('sendonce_webhooks:amazon_ses_tracking_webhook'))\n"
        "print({'boto3', 'botocore', 'cryptography', 's3transfer'} & set(sys.modules))\n"
    )
    pytest.importorskip("anymail")
    env = {**bare_environ, "SECRET_KEY": "x" * 50, "DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}
    done = run_manage("shell", "--no-imports", "-c", look, env=env)
    assert done.stdout == "/webhooks/amazon_ses/tracking/\nset()\n", done.stderr
