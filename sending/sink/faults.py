"""Which recipient meets which fault. Pure, and the same in every run with the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """What happens to a recipient; also the prefix of a local part that asks for it
    (``drop-1@example.org``)."""

    NONE = "ok"
    GREYLIST = "greylist"
    REFUSE = "refuse"
    FULL = "full"
    DEFER = "defer"
    POLICY = "policy"
    CONTENT = "content"
    DROP = "drop"
    DROPBODY = "dropbody"
    GARBAGE = "garbage"
    SILENT = "silent"
    SLOW = "slow"


#: What happens, in a phrase.
MEANING = {
    Fault.NONE: "accepted",
    Fault.GREYLIST: "451 at RCPT, until --greylist-seconds after the first attempt",
    Fault.REFUSE: "550 5.1.1 at RCPT: no such mailbox",
    Fault.FULL: "452 4.2.2 at RCPT, always: the mailbox is full",
    Fault.DEFER: "451 4.3.0 after the final dot, always",
    Fault.POLICY: "550 5.7.1 after the final dot: refused by policy",
    Fault.CONTENT: "554 5.6.0 after the final dot: refused for its content",
    Fault.DROP: "accepted, but the connection is dropped without a reply (first attempt)",
    Fault.DROPBODY: "not accepted: dropped before the final dot (first attempt)",
    Fault.GARBAGE: "accepted, but the answer is no SMTP reply (first attempt)",
    Fault.SILENT: "accepted, but never answered",
    Fault.SLOW: "accepted, but answered only after --slow-seconds",
}


_PREFIXES = {fault.value: fault for fault in Fault}


@dataclass(frozen=True)
class Faults:
    """``percent`` of all recipients per fault, chosen by a hash of the address and the seed."""

    percent: Mapping[Fault, float] = field(default_factory=dict)
    seed: str = ""

    def __post_init__(self) -> None:
        if any(share < 0 for share in self.percent.values()) or sum(self.percent.values()) > 100:
            raise ValueError("fault percentages must not be negative nor exceed 100 together")

    def of(self, recipient: str) -> Fault:
        """The fault of this address; a prefix in its local part wins over the percentages."""
        address = recipient.lower()
        prefix, dash, _ = address.partition("@")[0].partition("-")
        if dash and prefix in _PREFIXES:
            return _PREFIXES[prefix]
        if not self.percent:
            return Fault.NONE
        digest = hashlib.blake2b(f"{self.seed}:{address}".encode(), digest_size=8).digest()
        point = int.from_bytes(digest, "big") / 2**64 * 100
        for fault in Fault:
            point -= self.percent.get(fault, 0.0)
            if point < 0:
                return fault
        return Fault.NONE
