"""The webhooks while the database is away."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from sending.models import ProviderEvent
from tests.provider_payloads import post, raw

from . import webhook_posts
from .racing import Race
from .webhook_posts import send_post

pytest.importorskip("anymail")
pytestmark = webhook_posts.MARKS

webhook_keys = webhook_posts.webhook_keys


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
