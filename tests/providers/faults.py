"""What a provider of these tests does to a request, chosen by recipient, the same in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum


class Fault(StrEnum):
    """Also the prefix of a local part that asks for it (``reset-1@example.org``).

    Those that come after an acceptance meet the first request for a recipient only, as do
    ``busy`` and ``down``; a refusal meets all of them.
    """

    NONE = "ok"
    # Not accepted.
    BUSY = "busy"  # 429, Retry-After: 1
    DOWN = "down"  # 503
    REFUSE = "refuse"  # 4xx: the address is none
    LOGIN = "login"  # 401
    REJECT = "reject"  # the provider's own way to say: not to this recipient
    CONFLICT = "conflict"  # 409 (Resend)
    # Accepted, and then:
    ERROR = "error"  # 500
    RESET = "reset"  # the connection is reset
    CUT = "cut"  # the answer ends in its middle
    GARBAGE = "garbage"  # 200, no JSON
    EMPTY = "empty"  # 200, {}
    LATE = "late"  # no answer
    SLOW = "slow"  # it takes a while to accept it
    MOVED = "moved"  # 303 to another page
    GONE = "gone"  # 303 to a page that is not there


REFUSALS = frozenset({Fault.REFUSE, Fault.LOGIN, Fault.REJECT, Fault.CONFLICT})
NOT_ACCEPTED = REFUSALS | {Fault.BUSY, Fault.DOWN}
_BY_PREFIX = {fault.value: fault for fault in Fault}


def fault_of(recipient: str, percent: Mapping[str, float], seed: str = "") -> Fault:
    """The fault of this address: its prefix, or one chosen by a hash, ``percent`` of all."""
    prefix, dash, _ = recipient.partition("-")
    if dash and prefix in _BY_PREFIX:
        return _BY_PREFIX[prefix]
    digest = hashlib.blake2b(f"{seed}:{recipient}".encode(), digest_size=8).digest()
    point = int.from_bytes(digest, "big") / 2**64 * 100
    for name, share in percent.items():
        point -= share
        if point < 0:
            return Fault(name)
    return Fault.NONE
