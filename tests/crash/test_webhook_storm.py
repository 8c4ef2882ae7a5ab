"""Ten thousand events from several sides at a web server that is killed in the middle of it: what
was answered with 200 is stored, a provider repeats the rest, and nothing is lost or told twice."""

from __future__ import annotations

import http.client
import os
import random
import socket
import statistics
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.installation import tag
from sending.models import CampaignHealth, DeliveryEvent, ProviderEvent, Send
from sending.tracking import inbox as tracking
from subscribers.models import Suppression
from tests.conftest import ROOT
from tests.factories import CampaignFactory
from tests.forks import Forked, Forks
from tests.provider_payloads import AT, SECRET, Post, post, raw

pytest.importorskip("anymail")

SENDS = 2000
EVENTS = 10_000
SIDES = 4
DEADLINE = 120.0


class Site:
    """The web server's process, on a port of its own."""

    def __init__(self, environ: dict[str, str], forks: Forks) -> None:
        self.environ = {**environ, "ANYMAIL_WEBHOOK_SECRET": SECRET, "LOG_LEVEL": "ERROR"}
        self.forks = forks
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.process: Forked | None = None

    def start(self) -> None:
        where = f"127.0.0.1:{self.port}"
        command = [str(ROOT / "manage.py"), "runserver", "--noreload", "--skip-checks", where]
        self.process = self.forks.start(command, env=self.environ, out=Path(os.devnull))

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def site(environ: dict[str, str], forks: Forks) -> Iterator[Site]:
    found = Site(environ, forks)
    found.start()
    yield found
    found.kill()


def in_doubt(campaign: Campaign) -> list[Send]:
    now = timezone.now()
    return Send.objects.bulk_create(
        Send(
            account=campaign.account,
            campaign=campaign,
            email=f"p{n}@example.org",
            job_id=f"campaign:{campaign.pk}:{n}",
            status=Send.Status.IN_DOUBT,
            claim_token=uuid.uuid4(),
            handed_at=now,
            attempts=1,
        )
        for n in range(SENDS)
    )


def stories(sends: list[Send]) -> tuple[list[tuple[str, dict[str, Any]]], Counter[str]]:
    """Five events of each send, by two providers, and how many rows end how."""
    events: list[tuple[str, dict[str, Any]]] = []
    ends: Counter[str] = Counter()
    ours = tag()
    for n, send in enumerate(sends):
        esp, last = ("brevo", "delivered") if n % 50 == 3 else ("sparkpost", "delivery")
        words = {
            "sparkpost": ["injection", "delay", last, "open", "click"],
            "brevo": ["request", "deferred", last, "opened", "click"],
        }[esp]
        if n % 10 == 0:
            words[2:] = ["bounce"] * 3
        elif n % 50 == 7:
            words[4] = "spam_complaint"
        ends["bounced" if n % 10 == 0 else "sent"] += 1
        ends["complaints"] += n % 50 == 7
        for number, word in enumerate(words):
            more: dict[str, Any] = {"ts_epoch": AT * 1000 + number} if esp == "brevo" else {}
            told = raw(
                esp,
                word,
                to=str(send.email),
                job=send.job_id,
                tag=ours,
                message=f"m{n}",
                number=n * 10 + number,
                **more,
            )
            events.append((esp, told))
    return events, ends


def requests(events: list[tuple[str, dict[str, Any]]], dice: random.Random) -> list[Post]:
    """Shuffled, in requests of one event (Brevo makes no others) to three hundred."""
    dice.shuffle(events)
    many = [told for esp, told in events if esp == "sparkpost"]
    sizes = iter(lambda: dice.choice([1, 3, 20, 100, 300]), None)
    batches, at = [], 0
    while at < len(many):
        size = next(sizes)
        batches.append(post("sparkpost", many[at : at + size]))
        at += size
    singles = [post("brevo", [told]) for esp, told in events if esp == "brevo"]
    found = [*batches, *singles]
    dice.shuffle(found)
    return found


def tell(site: Site, posts: list[Post], took: list[float], end: float) -> None:
    """As a provider does: what is not answered with 200 is told again, later."""
    waiting = list(posts)
    link: http.client.HTTPConnection | None = None
    while waiting:
        assert time.monotonic() < end, f"{len(waiting)} requests were not taken"
        said = waiting.pop(0)
        link = link or http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
        begun = time.perf_counter()
        try:
            link.request(
                "POST",
                said.path,
                said.body,
                {**said.headers, "Content-Type": said.content_type},
            )
            answer = link.getresponse()
            answer.read()
            status = answer.status
        except (OSError, http.client.HTTPException):
            link.close()
            status, link = 0, None
            time.sleep(0.02)
        if status == 200:
            took.append(time.perf_counter() - begun)
        else:
            waiting.append(said)
    if link is not None:
        link.close()


def test_a_storm_loses_nothing(own_database: str, site: Site) -> None:
    campaign = CampaignFactory.create(sending=True)
    sends = in_doubt(campaign)
    events, ends = stories(sends)
    assert len(events) == EVENTS
    posts = requests(events, random.Random(20260301))
    took: list[list[float]] = [[] for _ in range(SIDES)]
    end = time.monotonic() + DEADLINE
    sides = [
        threading.Thread(target=tell, args=(site, posts[n::SIDES], took[n], end), daemon=True)
        for n in range(SIDES)
    ]
    for side in sides:
        side.start()
    while ProviderEvent.objects.count() < EVENTS // 4:
        assert time.monotonic() < end
        time.sleep(0.05)
    site.kill()
    site.start()
    while any(side.is_alive() for side in sides):
        if not tracking.apply_waiting():
            time.sleep(0.05)
    assert sum(len(times) for times in took) == len(posts)

    assert ProviderEvent.objects.count() == EVENTS
    while tracking.apply_waiting():
        pass
    assert not ProviderEvent.objects.filter(applied_at__isnull=True).exists()
    statuses = Counter(Send.objects.values_list("status", flat=True))
    assert statuses == {status: ends[status] for status in ("sent", "bounced")}
    reasons = Counter(Suppression.objects.values_list("reason", flat=True))
    assert reasons == {"hard_bounce": ends["bounced"], "complaint": ends["complaints"]}
    health = CampaignHealth.objects.get(campaign=campaign)
    assert (health.bounced, health.complained) == (ends["bounced"], ends["complaints"])
    applied = ProviderEvent.objects.filter(result="applied").count()
    assert DeliveryEvent.objects.count() == applied
    results = set(ProviderEvent.objects.values_list("result", flat=True))
    assert results == {"applied"}
    times = sorted(chain.from_iterable(took))
    print(
        f"{len(posts)} requests with {EVENTS} events; a request took "
        f"{statistics.median(times) * 1000:.1f} ms (half), "
        f"{times[int(len(times) * 0.95)] * 1000:.1f} ms (95 %), {times[-1] * 1000:.0f} ms (most)"
    )
