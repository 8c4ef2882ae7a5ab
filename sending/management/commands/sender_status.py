"""``manage.py sender_status``: how the sending is doing, and one address's story."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

from django.core.management.base import CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from sending import status as facts
from sending import status_text, story_text
from sending.management.looking import LookingCommand
from sending.story import MOST, story
from sending.waits import pause_of
from subscribers.database_clock import database_time

#: Seconds between two looks, how many of them a rate is taken from at most, and the people that
#: make an earlier one enough.
SAMPLE_S = 1.0
SAMPLES = 5
ENOUGH = 10
LONGEST = timedelta(seconds=SAMPLES * SAMPLE_S)


class Command(LookingCommand):
    help = (
        "Show senders, campaigns, paused transports, slowed limits, doubt, retries, webhooks and "
        "the latest failures; with --address everything that one address got or did not get, and "
        "why."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs")
        parser.add_argument("--address", metavar="X", help="the story of this address")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["address"] is not None:
            told = story(options["address"], most=None if options["json"] else MOST)
            lines = story_text.story_lines(told, database_time())
            self._show(asdict(told), lines, as_json=options["json"])
            return
        seen = look()
        self._show(asdict(seen), status_text.status_lines(seen), as_json=options["json"])

    def _show(self, data: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
        if as_json:
            lines = [json.dumps(data, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False)]
        self.show(lines)


def look() -> facts.Status:
    """The status; with rates, from later looks, where a worker lives and something is sent that
    nothing holds back. One message within a second says little of a campaign that sends one in
    three, so it takes up to ``SAMPLES`` looks."""
    seen = facts.status()
    moving = {c.id: c for c in seen.campaigns if _may_move(c, seen)}
    if not moving or not any(w.state == "alive" for w in seen.workers):
        return seen
    begun = monotonic()
    later: dict[int, facts.CampaignFact] = {}
    for _ in range(SAMPLES):
        sleep(SAMPLE_S)
        later = {fact.id: fact for fact in facts.campaigns(seen.now)}
        if all(_is_enough(fact, later.get(pk)) for pk, fact in moving.items()):
            break
    passed = monotonic() - begun
    return replace(
        seen,
        campaigns=[
            replace(c, rate=facts.rate(c, later[c.id], passed))
            if c.id in moving and c.id in later
            else c
            for c in seen.campaigns
        ],
    )


def _may_move(campaign: facts.CampaignFact, seen: facts.Status) -> bool:
    if campaign.status != "sending" or not campaign.open:
        return False
    only_retries = campaign.open == campaign.retry and not campaign.building
    if only_retries and campaign.next_retry and campaign.next_retry > seen.now + LONGEST:
        return False
    shut = campaign.pace is not None and campaign.pace.nothing_before is not None
    return not shut and pause_of(seen.pauses, campaign.account, campaign.transport) is None


def _is_enough(before: facts.CampaignFact, after: facts.CampaignFact | None) -> bool:
    """Also when it is over, or when its rate can't be told."""
    if after is None or not after.open or before.audience != after.audience:
        return True
    return (after.done or 0) - (before.done or 0) >= ENOUGH
