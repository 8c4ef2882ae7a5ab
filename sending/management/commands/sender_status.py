"""``manage.py sender_status``: how the sending is doing, and one address's story."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from sending import status as facts
from sending import status_text, story_text
from sending.story import MOST, story

#: Seconds between the two looks that a rate is taken from.
SAMPLE_S = 1.0


class Command(BaseCommand):
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
            lines = story_text.story_lines(told, facts.database_time())
            self._show(asdict(told), lines, as_json=options["json"])
            return
        seen = look()
        self._show(asdict(seen), status_text.status_lines(seen), as_json=options["json"])

    def _show(self, data: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
        if as_json:
            lines = [json.dumps(data, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False)]
        for line in lines:
            self.stdout.write(line)


def look() -> facts.Status:
    """The status; with rates, from a second look, where a worker lives and something is sent."""
    seen = facts.status()
    running = any(c.status == "sending" and c.open for c in seen.campaigns)
    if not running or not any(w.state == "alive" for w in seen.workers):
        return seen
    begun = time.monotonic()
    time.sleep(SAMPLE_S)
    later = {fact.id: fact for fact in facts.campaigns(seen.now)}
    passed = time.monotonic() - begun
    return replace(
        seen,
        campaigns=[
            replace(c, rate=facts.rate(c, later[c.id], passed))
            if c.status == "sending" and c.id in later
            else c
            for c in seen.campaigns
        ],
    )
