"""The Django site of a peer: settings, and the three commands of ``benchmarks.peers``."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.harness import message

Setting = Mapping[str, Any]


def configure(apps: list[str], **settings: Any) -> None:
    """Django with these apps, on ``DATABASE_URL`` and the relay at ``SINK_PORT``; migrated by
    ``fill``. Logging is off: the fastest."""
    import django
    from django.conf import settings as django_settings

    url = urlsplit(os.environ["DATABASE_URL"])
    where = {name: values[0] for name, values in parse_qs(url.query).items()}
    django_settings.configure(
        **{
            "DATABASES": {
                "default": {
                    "ENGINE": "django.db.backends.postgresql",
                    "NAME": url.path.lstrip("/"),
                    "USER": url.username or "",
                    "HOST": where["host"],
                    "PORT": where["port"],
                    "CONN_MAX_AGE": None,
                }
            },
            "SECRET_KEY": "for-the-benchmark-only",
            "INSTALLED_APPS": ["django.contrib.contenttypes", "django.contrib.auth", *apps],
            "TEMPLATES": [{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
            "EMAIL_HOST": "127.0.0.1",
            "EMAIL_PORT": int(os.environ["SINK_PORT"]),
            "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
            "LOGGING_CONFIG": None,
            "USE_TZ": True,
            **settings,
        }
    )
    import logging

    logging.disable(logging.ERROR)
    django.setup()


def main(
    set_up: Callable[[Setting], None],
    fill: Callable[[int], None],
    send: Callable[[Setting], None],
    left: Callable[[], int],
) -> None:
    action, *rest = sys.argv[1:]
    set_up(json.loads(rest[0]) if action == "send" else {})
    if action == "fill":
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0, interactive=False)
        fill(int(rest[0]))
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE)")
    elif action == "send":
        send(json.loads(rest[0]))
    else:
        print(left())


def rendered(number: int) -> tuple[str, str, str]:
    """Subject, text and HTML for recipient ``number``, by Django's template engine."""
    from django.template import Context

    context = Context(message.context(number))
    subject, text, html = templates()
    return subject.render(context), text.render(context), html.render(context)


@functools.cache
def templates() -> tuple[Any, Any, Any]:
    """Compiled once."""
    from django.template import Template

    return Template(message.SUBJECT), Template(message.TEXT), Template(message.HTML)
