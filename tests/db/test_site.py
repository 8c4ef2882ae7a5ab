"""The runnable site around the apps: where it leads, and what its pages may load."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from config.security import HEADER, POLICY


def test_the_front_page_leads_to_the_admin(client: Client) -> None:
    response = client.get("/")
    assert response.status_code == 302
    assert response["Location"] == "/admin/"


@pytest.mark.django_db
def test_every_page_has_the_strict_policy(admin_client: Client) -> None:
    response = admin_client.get("/admin/")
    assert response.status_code == 200
    assert response[HEADER] == POLICY
    assert "unsafe" not in POLICY
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"
    assert admin_client.get("/no-such-page/")[HEADER] == POLICY


@pytest.mark.django_db
def test_the_admin_has_its_style_without_collecting(client: Client) -> None:
    response = client.get("/static/admin/css/base.css")
    assert response.status_code == 200
    response.close()


@pytest.mark.django_db
def test_the_site_has_an_icon_where_browsers_look_for_it(client: Client) -> None:
    response = client.get("/favicon.ico", follow=True)
    assert response.status_code == 200
    assert response["Content-Type"] == "image/svg+xml"
    assert b"".join(response).startswith(b"<svg")
    response.close()


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_the_checks_find_nothing() -> None:
    call_command("check", fail_level="WARNING", databases=["default"])


@pytest.mark.django_db
def test_the_database_is_a_durable_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
        assert cursor.fetchone() == ("on", "on")
    assert User.objects.count() == 0
