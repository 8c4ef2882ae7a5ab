"""nuntius: its worker renders and builds in one process and sends in others.

It can't do without its tracking of links and openings: its messages are longer than the others'.
The rate limit is lifted, connections stay open. The worker never ends by itself: it is stopped
when all were sent.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from benchmarks.harness import message
from benchmarks.harness.machine import cores
from benchmarks.peers import site

NAME = "nuntius"
PACKAGE = "nuntius"
LEAST_PYTHON = (3, 12)
SETTINGS: tuple[site.Setting, ...] = (
    {"senders": cores()},
    {"senders": 2 * cores()},
    {"senders": 4 * cores()},
)
GUARANTEE = (
    "those between acceptance and its record are sent again at its next start; "
    "those still in its pipe when the campaign is called sent are never sent"
)
PATIENCE_S = 300
SETTLE_S = 1.0


def set_up(setting: site.Setting) -> None:
    site.configure(
        [
            "django.contrib.admin",
            "django.contrib.messages",
            "django.contrib.sessions",
            "benchmarks.peers.audience",
            "nuntius",
        ],
        ROOT_URLCONF="benchmarks.peers.nuntius_urls",
        STATIC_URL="/static/",
        MEDIA_URL="/media/",
        NUNTIUS_SUBSCRIBER_MODEL="audience.Person",
        NUNTIUS_SEGMENT_MODEL="audience.Group",
        NUNTIUS_PUBLIC_URL="https://www.example.org",
        NUNTIUS_MAX_CONCURRENT_SENDERS=setting.get("senders", 2),
        NUNTIUS_MAX_SENDING_RATE=1_000_000,
        NUNTIUS_MAX_MESSAGES_PER_SMTP_CONNECTION=0,
        NUNTIUS_POLLING_INTERVAL=0.2,
    )


def fill(count: int) -> None:
    from nuntius.models import Campaign, CampaignSentEvent

    from benchmarks.peers.audience.models import Group, Person

    CampaignSentEvent.objects.all().delete()
    Campaign.objects.all().delete()
    Person.objects.all().delete()
    Person.objects.bulk_create(
        [
            Person(subscriber_status=Person.STATUS_SUBSCRIBED, **message.context(number))
            for number in range(1, count + 1)
        ],
        batch_size=1000,
    )
    Campaign.objects.create(
        name="Bench",
        segment=Group.objects.create(),
        status=Campaign.STATUS_SENDING,
        message_from_email=message.FROM,
        message_subject="News for you",
        message_content_html=message.HTML,
        message_content_text=message.TEXT,
    )


def send(setting: site.Setting) -> None:
    """The command, until all are recorded as sent."""
    from django.core.management import call_command
    from django.db import connection

    parent = os.getpid()
    watcher = os.fork()
    if not watcher:
        # The worker's handler of signals must be there; it is as long with nothing to send.
        time.sleep(SETTLE_S)
        deadline = time.monotonic() + PATIENCE_S
        while _busy() and time.monotonic() < deadline and os.getppid() == parent:
            time.sleep(0.05)
        os.kill(parent, signal.SIGTERM)
        os._exit(0)
    connection.close()
    call_command("nuntius_worker")
    os.waitpid(watcher, 0)
    if left():
        sys.exit(f"{left()} were not sent")


def _busy() -> bool:
    from nuntius.models import Campaign

    return Campaign.objects.outbox().exists() or left() > 0


def left() -> int:
    from nuntius.models import CampaignSentEvent, CampaignSentStatusType

    from benchmarks.peers.audience.models import Person

    return Person.objects.count() - (
        CampaignSentEvent.objects.filter(result=CampaignSentStatusType.UNKNOWN).count()
    )


if __name__ == "__main__":
    site.main(set_up, fill, send, left)
