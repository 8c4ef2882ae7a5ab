"""django-post_office: ``send_queued_mail --processes N`` on rows with ready text and HTML.

Its own templates, rendered at delivery, are slower (each is compiled anew for each message), so
bodies are rendered when the queue is filled, outside what is measured.
"""

from __future__ import annotations

import os

from benchmarks.harness import message
from benchmarks.harness.machine import cores
from benchmarks.peers import site

NAME = "django-post_office"
PACKAGE = "django-post-office"
SETTINGS: tuple[site.Setting, ...] = (
    {"processes": cores(), "threads": 1, "batch": 5000},
    {"processes": cores(), "threads": 2, "batch": 5000},
    {"processes": 1, "threads": 4, "batch": 5000},
    {"processes": 2 * cores(), "threads": 1, "batch": 5000},
)
GUARANTEE = "what was accepted of the whole batch is sent again: nothing is recorded before its end"


def set_up(setting: site.Setting) -> None:
    site.configure(
        ["post_office"],
        POST_OFFICE={
            "BATCH_SIZE": setting.get("batch", 5000),
            "THREADS_PER_PROCESS": setting.get("threads", 1),
            "BATCH_DELIVERY_TIMEOUT": 600,
            "LOG_LEVEL": 0,
            "DEFAULT_PRIORITY": "medium",
            "SENDING_ORDER": ["id"],
        },
    )


def fill(count: int) -> None:
    from post_office.models import PRIORITY, STATUS, Email

    Email.objects.all().delete()
    rows = []
    for number in range(1, count + 1):
        subject, text, html = site.rendered(number)
        rows.append(
            Email(
                from_email=message.FROM,
                to=[message.address(number)],
                subject=subject,
                message=text,
                html_message=html,
                status=STATUS.queued,
                priority=PRIORITY.medium,
            )
        )
    Email.objects.bulk_create(rows, batch_size=1000)


def send(setting: site.Setting) -> None:
    from django.core.management import call_command

    call_command(
        "send_queued_mail",
        processes=setting["processes"],
        log_level=0,
        lockfile=os.environ["LOCK_PATH"],
    )


def left() -> int:
    from post_office.models import STATUS, Email

    return Email.objects.exclude(status=STATUS.sent).count()


if __name__ == "__main__":
    site.main(set_up, fill, send, left)
