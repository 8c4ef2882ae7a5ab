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
    GREYLIST = "greylist"  # 451 at RCPT until some seconds after the first attempt
    REFUSE = "refuse"  # 550 5.1.1 at RCPT
    FULL = "full"  # 452 4.2.2 at RCPT, always
    DEFER = "defer"  # 451 4.3.0 after the dot, always
    POLICY = "policy"  # 550 5.7.1 after the dot
    CONTENT = "content"  # 554 5.6.0 after the dot
    DROP = "drop"  # accepted, then the connection is dropped without a reply (first attempt)
    DROPBODY = "dropbody"  # dropped before the final dot (first attempt)
    GARBAGE = "garbage"  # accepted, answered with something that is no reply (first attempt)
    SILENT = "silent"  # accepted and never answered
    SLOW = "slow"  # accepted, answered late


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
