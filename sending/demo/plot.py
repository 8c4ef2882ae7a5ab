"""What happens to the campaign: two senders, a kill, a restart, and the wait for the greylisted."""

from __future__ import annotations

import json
import time
from pathlib import Path

from django.db.models import Min

from campaigns.models import Campaign
from sending.ledger import balance
from sending.models import Send
from sending.plain_table import duration
from subscribers.database_clock import database_time

from . import stage
from .children import Child, ChildFailed, Children
from .screen import Moment, Screen

LANES, LOT = 2, 5
SENDERS = 2
#: The part of the messages after which a sender is killed.
KILL_AT = 0.4
#: Longer than the first retry waits (30 s, give or take a fifth).
PATIENCE_S = 45
#: Where no session lock shows the death of a sender, its rows wait for this: not a minute here.
LEASE_S = 30
#: Seconds until the demo gives up: retries, a lease that must run out, and the messages.
LONGEST_S = 150
SLOWEST_RATE = 50


class Plot:
    """``run`` plays it; ``problems`` are plain lines about what went wrong in it."""

    def __init__(
        self,
        screen: Screen,
        children: Children,
        campaign: Campaign,
        record: Path,
        sink: Child,
        port: int,
        people: int,
    ) -> None:
        self.screen = screen
        self.children = children
        self.campaign = campaign
        self.sink = sink
        self.port = port
        self.people = people
        self.tail = Tail(record)
        self.senders: list[Child] = []
        self.kills = 0
        self.problems: list[str] = []
        self._told_of_retries = False
        self._look_at = float("-inf")

    def run(self) -> None:
        begun = time.monotonic()
        for _ in range(SENDERS):
            self._start_sender()
        pids = " and ".join(str(sender.pid) for sender in self.senders)
        self.screen.step("senders", f"{SENDERS} run_sender processes, {pids}, {LANES} lanes each")
        deadline = begun + LONGEST_S + self.people / SLOWEST_RATE
        with self.screen.progress():
            while any(sender.exit_code is None for sender in self.senders):
                self._advance()
                if time.monotonic() > deadline:
                    self.problems.append("the senders did not finish in time")
                    break
                time.sleep(0.05)
            self._show(last=True)
        self._account_for_senders()
        self.screen.step("finished", f"after {duration(time.monotonic() - begun)}")

    def _start_sender(self) -> Child:
        transport = {
            stage.TRANSPORT: {
                "BACKEND": "sending.smtp.EmailBackend",
                "OPTIONS": {"host": "127.0.0.1", "port": self.port},
            }
        }
        sender = self.children.start(
            "sender",
            *("run_sender", "--drain", "--patience", str(PATIENCE_S), "--no-progress"),
            *("--lanes", str(LANES), "--lot", str(LOT), "--campaign", str(self.campaign.pk)),
            environment={
                "SENDONCE_TRANSPORTS": json.dumps(transport),
                "SENDONCE_LEASE": str(LEASE_S),
            },
        )
        self.senders.append(sender)
        return sender

    def _advance(self) -> None:
        self.tail.read()
        if self.sink.exit_code is not None:
            raise ChildFailed(f"the mail server ended: {self.sink.last_words()}")
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + 0.5
            self._show()
        if not self.kills and self._is_midway():
            self._kill_and_restart()

    def _is_midway(self) -> bool:
        audience = self.campaign.audience
        return bool(audience) and self.tail.accepted >= KILL_AT * audience

    def _kill_and_restart(self) -> None:
        victim = self.senders.pop(0)
        if victim.exit_code is not None:
            self.problems.append(f"a sender ended by itself before the kill: {victim.last_words()}")
            return
        victim.kill()
        self.kills += 1
        self.screen.step(
            "kill -9",
            f"sender {victim.pid} is dead; the mail server has taken {self.tail.accepted:,} so far",
        )
        fresh = self._start_sender()
        self.screen.step("restart", f"sender {fresh.pid} takes its place and finds what is left")

    def _show(self, *, last: bool = False) -> None:
        if not self.campaign.built_at:
            self.campaign.refresh_from_db(fields=["audience", "built_at", "status"])
        found = balance(self.campaign.pk)
        if found.audience:
            self.screen.moment(Moment(found.audience, found.counts), last=last)
        waiting = found.counts["retry"]
        busy = sum(found.counts[status] for status in ("queued", "claimed", "sending"))
        if found.built and waiting and not busy and not self._told_of_retries:
            self._told_of_retries = True
            self.screen.step(
                "retries",
                f"{waiting:,} greylisted so far; the next second try is {self._next_try()}",
            )

    def _next_try(self) -> str:
        rows = Send.objects.filter(campaign=self.campaign, status="retry")
        first = rows.aggregate(first=Min("next_attempt_at"))["first"]
        wait = (first - database_time()).total_seconds() if first else 0.0
        return f"due in {duration(wait)}" if wait >= 1 else "due"

    def _account_for_senders(self) -> None:
        if not self.kills:
            self.problems.append("nobody was killed: it was over before the middle was seen")
        for sender in self.senders:
            if sender.exit_code not in (0, None):
                self.problems.append(
                    f"sender {sender.pid} ended with exit code {sender.exit_code}: "
                    f"{sender.last_words()}"
                )


class Tail:
    """Follows the sink's record and counts what it accepted; reads every byte once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.accepted = 0
        self._position = 0
        self._torn = b""

    def read(self) -> None:
        """Take in what is new; the last line may still be half written."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            return
        self._position += len(data)
        *lines, self._torn = (self._torn + data).split(b"\n")
        self.accepted += sum(bool(json.loads(line).get("accepted")) for line in lines if line)
