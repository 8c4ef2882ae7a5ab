"""What the runnable site makes of ``ANYMAIL`` and ``ANYMAIL_WEBHOOK_SECRET``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import anymail_settings
from tests.conftest import ROOT

WITHOUT_ANYMAIL = """
import sys
sys.modules["anymail"] = None
import django
django.setup()
from django.conf import settings
from django.urls import resolve, Resolver404
from sending import webhook_urls
from sending.tracking import webhooks
assert webhook_urls.urlpatterns == []
assert not webhooks.connect()
assert "anymail" not in settings.INSTALLED_APPS
try:
    resolve("/webhooks/postmark/tracking/")
except Resolver404:
    print("as expected")
"""


@pytest.mark.parametrize(
    ("given", "secret", "expected"),
    [
        ("", "", {}),
        (" ", "", {}),
        ("{}", "a:b", {"WEBHOOK_SECRET": "a:b"}),
        ('{"POSTMARK_SERVER_TOKEN": "x"}', "", {"POSTMARK_SERVER_TOKEN": "x"}),
        ('{"WEBHOOK_SECRET": "old:one"}', "new:one", {"WEBHOOK_SECRET": "new:one"}),
        ('{"WEBHOOK_SECRET": ["a:b", "c:d"]}', "", {"WEBHOOK_SECRET": ["a:b", "c:d"]}),
    ],
)
def test_what_is_set(given: str, secret: str, expected: dict[str, object]) -> None:
    assert anymail_settings(given, secret) == expected


@pytest.mark.parametrize(
    ("given", "secret"),
    [("{", ""), ("[]", ""), ("7", ""), ("null", ""), ('{"KEY": "sesame"', ""), ("", "sesame")],
)
def test_what_cannot_be_read_is_refused_in_one_line_without_the_value(
    given: str, secret: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        anymail_settings(given, secret)
    assert "ANYMAIL" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_it_works_without_anymail() -> None:
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "SECRET_KEY": "x" * 50}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ANYMAIL],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.returncode) == ("as expected", 0), done.stderr
