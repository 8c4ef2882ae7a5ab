"""Upkeep: campaigns that fall due, builds, rescues, policies, brakes, notices and finishes, and
imports that wait; one thread.

Every worker does all of it; each step is a compare-and-set or idempotent, so that any number
of them get along. ``steps`` are methods that say whether they did something.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections.abc import Callable

from django.db import connection, connections
from django.utils import timezone

from campaigns import lifecycle
from campaigns.errors import CampaignError, GateBusy
from campaigns.models import Campaign, CampaignQuerySet
from subscribers.conf import conf
from subscribers.importing.pruning import prune as prune_imports
from subscribers.joining.window import prune_signups

from . import clock, cluster, counters, doubt, health, notices, rescue, sql, withdraw
from .build import build_chunk, next_size, unbuilt
from .connections import LOST, close_quietly
from .import_runner import ImportRunner
from .ledger import has_open_rows
from .shared import Shared
from .tracking import inbox as tracking

log = logging.getLogger("sendonce.sender")

#: Provider events are applied in slices of so many, so many at most in a round.
_SLICE, _SLICES = 500, 10
#: Seconds of building, about, before the other steps have their turn.
BUILDING = 0.15


class Upkeep(threading.Thread):
    """``drained`` is set by a look that found nothing open; only looked for when asked. A sender
    that stays, for all campaigns, also sees to what ``subscribers`` has to be done."""

    def __init__(self, shared: Shared, *, watch_drain: bool, patience: float) -> None:
        super().__init__(name="upkeep", daemon=True)
        self.shared = shared
        self.watch_drain = watch_drain
        self.patience = patience
        self.drained = threading.Event()
        self.imports = ImportRunner()
        self._spans: dict[int, int] = {}
        #: When each campaign that is being built had its last turn.
        self._turns: dict[int, float] = {}
        self._next: dict[str, float] = {}

    def run(self) -> None:
        shared = self.shared
        while not shared.stopping.is_set():
            try:
                busy = self.step()
            except LOST as error:
                log.warning(
                    "database not reached, trying again",
                    extra={"event": "database_wait", "what": "upkeep", "error": str(error).strip()},
                )
                close_quietly(connection)
                busy = False
            except Exception:
                log.exception("upkeep failed", extra={"event": "upkeep_error"})
                close_quietly(connection)
                busy = False
            if not busy:
                shared.wake_upkeep.wait(shared.poll * random.uniform(0.7, 1.0))
                shared.wake_upkeep.clear()
        self._tell_the_last()
        connections.close_all()

    def _tell_the_last(self) -> None:
        """The counts since the last look, for the other workers; those that the lanes' last
        messages add are lost."""
        try:
            self.shared.brake.flush()
        except LOST as error:
            log.info("the last counts were not told: %s", error, extra={"event": "counts_lost"})
        except Exception:
            log.exception("the last counts were not told", extra={"event": "upkeep_error"})

    def step(self) -> bool:
        """One round; True when there is more to do at once (a build goes on)."""
        if connection.connection is None:
            cluster.check()
        self._every("pauses", 1.0, self.look_at_pauses)
        self._every("rescue", 1.0, self.rescue)
        self._every("policies", 5.0, doubt.apply_policies)
        self._every("cancels", 10.0, withdraw.finish_cancels)
        self.start_due()
        building = self.build_a_little()
        self._every("finish", 0.3, self.finish_all)
        self._every("counters", 5.0, counters.compact)
        self._every("limits", 1.0, self.refresh_limits)
        self._every("events", 0.25, self.apply_events)
        self._every("prune", 60.0, tracking.prune)
        self._every("brakes", 1.0, self.apply_brakes)
        self._every("paused", 3.0, health.mark_paused)
        self._every("notices", 10.0, notices.tell)
        if not self.watch_drain and self.shared.campaign_id is None:
            self._every("imports", 2.0, self.run_imports)
            self._every("sign-ups", 300.0, prune_signups)
            self._every("old imports", 3600.0, prune_imports)
        if self.watch_drain and not building and self.is_drained():
            self.finish_all()
            self.apply_brakes()
            if not notices.tell():  # else they are to be sent first
                self.drained.set()
        return building

    def _every(self, name: str, seconds: float, step: Callable[[], object]) -> None:
        now = clock.now()
        if now >= self._next.get(name, 0.0):
            step()
            self._next[name] = clock.now() + seconds

    def _campaigns(self) -> CampaignQuerySet:
        campaigns = Campaign.objects.order_by("id")
        if self.shared.campaign_id is not None:
            campaigns = campaigns.filter(pk=self.shared.campaign_id)
        return campaigns

    def start_due(self) -> bool:
        """Start every campaign whose time has come."""
        started = False
        for campaign in self._campaigns().due():
            try:
                begun = lifecycle.due(campaign)
            except CampaignError:
                continue  # withdrawn, edited or busy this very moment
            if begun:
                log.info("campaign started", extra={"event": "started", "campaign": campaign.pk})
                started = True
                continue
            campaign.refresh_from_db()
            # Another sender was first (several processes wake at the same moment): no news.
            if campaign.status == Campaign.Status.DRAFT:
                log.warning(
                    "campaign not started",
                    extra={
                        "event": "not_started",
                        "campaign": campaign.pk,
                        "status": campaign.status,
                        "reason": campaign.status_reason,
                    },
                )
        return started

    def build_a_little(self) -> bool:
        """One chunk of campaigns that are being built, of as many as there is time for; next time
        those whose turn was longest ago go first. So none waits for another, nor a campaign that
        falls due meanwhile for all of them."""
        busy = False
        wanted = self.shared.campaign_id
        began = clock.now()
        turns = {c: self._turns.get(c, 0.0) for c in unbuilt()}
        self._turns = turns
        for campaign_id in sorted(turns, key=lambda c: (turns[c], c)):
            if wanted not in (None, campaign_id) or self.shared.stopping.is_set():
                continue
            if clock.now() - began > BUILDING:
                return True
            span = self._spans.get(campaign_id, conf.BUILD_CHUNK)
            chunk_began = turns[campaign_id] = clock.now()
            step = build_chunk(campaign_id, size=span)
            if step is None:
                continue
            busy = True
            seconds = clock.now() - chunk_began
            self._spans[campaign_id] = next_size(span, step.inserted, conf.BUILD_CHUNK, seconds)
            if step.done:
                self._spans.pop(campaign_id, None)
            if step.inserted:
                self.shared.wake_dispatcher.set()
        return busy

    def rescue(self) -> bool:
        """Rows of workers that are gone; at once where a free session lock shows it."""
        rescued = 0
        if conf.DIRECT_CONNECTION:
            rescued += rescue.rescue_dead(
                doubt_wait=self.shared.doubt_wait, me=self.shared.worker_id
            )
        rescued += rescue.rescue_expired(doubt_wait=self.shared.doubt_wait)
        if rescued:
            self.shared.wake_dispatcher.set()
        return rescued > 0

    def run_imports(self) -> bool:
        """Imports that wait, in a process of their own."""
        return self.imports.look(self.shared.worker_id)

    def look_at_pauses(self) -> bool:
        """Which transports take no mail; True when this process is to try one again."""
        probes = self.shared.pauses.refresh()
        if probes:
            self.shared.wake_dispatcher.set()  # a probe is ours for a second only
        return probes

    def refresh_limits(self) -> None:
        """What all workers may send together, and how much of it is this process's."""
        self.shared.limits.refresh(self.shared.worker_id)

    def apply_events(self) -> bool:
        """What providers have told by webhook; storms are taken in slices."""
        for _ in range(_SLICES):
            if self.shared.stopping.is_set() or tracking.apply_waiting(_SLICE) < _SLICE:
                return False
        return True

    def apply_brakes(self) -> bool:
        """Tell what this process has counted, and pause what all of them together say must be."""
        shared, paused = self.shared, False
        pulled = [*shared.brake.flush(), *health.look(shared.campaign_id)]
        for campaign_id, reason in dict(pulled).items():
            try:
                if health.pause(campaign_id, reason):
                    health.log_pause(campaign_id, reason)
                    paused = True
            except GateBusy:
                shared.brake.keep(campaign_id, reason)
        return paused

    def finish_all(self) -> bool:
        """Finish every campaign that is built and has no open row."""
        finished = False
        built = self._campaigns().filter(status=Campaign.Status.SENDING, built_at__isnull=False)
        for campaign in built:
            # The cheap look first: the gate is only taken when it is likely to succeed.
            if has_open_rows(campaign.pk):
                continue
            with contextlib.suppress(CampaignError):  # busy; the next look comes soon
                if lifecycle.finish(campaign):
                    _tell_finished(campaign)
                    finished = True
        return finished

    def is_drained(self) -> bool:
        """Nothing queued, claimed or sending, and no retry due within the patience."""
        with connection.cursor() as cursor:
            cursor.execute(
                sql.HAS_WORK, {"campaign": self.shared.campaign_id, "patience": self.patience}
            )
            row = cursor.fetchone()
        return not (row and row[0])


def _tell_finished(campaign: Campaign) -> None:
    """The line about a campaign that is over. Doubt waits for somebody, so it warns."""
    found = counters.with_audience(campaign.pk)
    doubt_left = found["in_doubt"]
    seconds = None
    if campaign.started_at is not None:
        seconds = round((timezone.now() - campaign.started_at).total_seconds(), 1)
    log.log(
        logging.WARNING if doubt_left else logging.INFO,
        "campaign finished, some rows are in doubt" if doubt_left else "campaign sent",
        extra={
            "event": "finished",
            "campaign": campaign.pk,
            "seconds": seconds,
            **{status: number for status, number in found.items() if number},
        },
    )
