"""What all connections of the sink share: how it behaves, its record, who was seen before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .faults import Fault, Faults
from .kept import Folder
from .record import Recorder, read_record


@dataclass(frozen=True)
class Options:
    """How the sink behaves. Times in seconds; ``auth`` is (user, password), ``keep`` a folder
    for the messages themselves.

    ``delay`` is a slow server's: each reply takes it, one after the other. ``latency`` is a long
    line's: what came together is answered together, so much later, and meanwhile more may come.
    """

    host: str = "127.0.0.1"
    port: int = 2525
    record: str | None = None
    keep: str | None = None
    faults: Faults = field(default_factory=Faults)
    greylist_seconds: float = 5.0
    slow_seconds: float = 2.0
    delay: float = 0.0
    latency: float = 0.0
    chunking: bool = False
    max_messages_per_connection: int = 0
    auth: tuple[str, str] | None = None
    hostname: str = "sink.example.org"


class Sink:
    """What all connections share: the record, the attempts per address, the greylist."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.recorder = Recorder(options.record)
        self.folder = Folder(options.keep) if options.keep else None
        self.attempts: Counter[str] = Counter()
        self.first_seen: dict[str, float] = {}
        for entry in read_record(options.record) if options.record else []:
            recipient = str(entry.get("recipient", "")).lower()
            self.attempts[recipient] += 1
            self.first_seen.setdefault(recipient, float(entry.get("time", 0)))

    def fault_of(self, recipient: str) -> Fault:
        """The fault that this attempt meets: some strike only once."""
        fault = self.options.faults.of(recipient)
        key = recipient.lower()
        if fault is Fault.GREYLIST:
            first = self.first_seen.setdefault(key, time.time())
            if time.time() - first >= self.options.greylist_seconds and self.attempts[key]:
                return Fault.NONE
        once = (Fault.DROP, Fault.DROPBODY, Fault.GARBAGE)
        return Fault.NONE if fault in once and self.attempts[key] else fault

    def note(
        self,
        event: str,
        recipient: str,
        *,
        accepted: bool = False,
        then: Callable[[], None] | None = None,
        **more: Any,
    ) -> None:
        """Record an event and count the attempt; ``then`` runs when it is on the disk."""
        key = recipient.lower()
        self.attempts[key] += 1
        entry = {
            "event": event,
            "accepted": accepted,
            "recipient": recipient,
            "attempt": self.attempts[key],
            "time": time.time(),
            **more,
        }
        self.recorder.add(entry, then)
