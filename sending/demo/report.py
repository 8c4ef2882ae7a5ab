"""The verdict: the mail server's own record against the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sending.ledger import OPEN, STATUSES
from sending.plain_table import table

DOUBT_REASONS = {
    "worker_lost": "on the wire when its sender was killed",
    "connection_lost": "the server hung up after the final dot, before its answer",
    "timeout": "the answer did not come in time",
    "unreadable": "the answer could not be read",
}
NOTES = {
    "sent": "the server said so",
    "bounced": "no such mailbox; the address is suppressed",
    "failed": "refused for good",
    "suppressed": "bounced or opted out before; nothing was handed over",
    "in_doubt": "handed over, no answer: never sent again by itself",
    "canceled": "not handed over",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What the ledger says of one recipient."""

    address: str
    status: str
    reason: str = ""


@dataclass(frozen=True)
class Evidence:
    """Both sides: ``record`` is the sink's (see ``sending.sink.record``), the rest the ledger's.

    ``lost_at_most`` is what the kills may have left in doubt: kills x lanes x lot.
    """

    record: list[dict[str, Any]]
    rows: list[Row]
    audience: int
    campaign_status: str
    lost_at_most: int

    @property
    def counts(self) -> dict[str, int]:
        """Rows per status."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    @property
    def doubts(self) -> dict[str, int]:
        """Rows in doubt per reason, most first."""
        found = Counter(row.reason for row in self.rows if row.status == "in_doubt")
        return dict(found.most_common())


@dataclass(frozen=True)
class Verdict:
    """``duplicates``: messages that were accepted once too often. ``problems``: plain lines,
    one per promise that was broken; none of them is the only good end."""

    accepted: int
    duplicates: int
    problems: list[str]

    @property
    def passed(self) -> bool:
        return not self.problems


def judge(evidence: Evidence) -> Verdict:
    """Compare the record with the ledger. Pure."""
    taken = [entry for entry in evidence.record if entry.get("accepted")]
    by_address = Counter(str(entry.get("recipient", "")).lower() for entry in taken)
    by_message = Counter(str(entry["message_id"]) for entry in taken if entry.get("message_id"))
    repeated = sum(n - 1 for n in by_address.values())
    duplicates = max(repeated, sum(n - 1 for n in by_message.values()))
    return Verdict(
        accepted=len(taken),
        duplicates=duplicates,
        problems=list(_problems(evidence, by_address, duplicates)),
    )


def _problems(evidence: Evidence, by_address: Mapping[str, int], duplicates: int) -> Iterable[str]:
    status_of = {row.address.lower(): row.status for row in evidence.rows}
    twice = [address for address, n in by_address.items() if n > 1]
    if duplicates:
        yield f"{duplicates:,} too many messages accepted{_for_example(twice)}"
    counts, doubts = evidence.counts, evidence.doubts
    if sum(counts.values()) != evidence.audience:
        yield (
            f"the identity fails: {evidence.audience:,} people, "
            f"{sum(counts.values()):,} rows that account for them"
        )
    strangers = [address for address in by_address if address not in status_of]
    if strangers:
        yield f"{len(strangers):,} accepted for nobody of the audience{_for_example(strangers)}"
    denied = [
        address
        for address in by_address
        if status_of.get(address, "sent") not in ("sent", "in_doubt")
    ]
    if denied:
        yield (
            f"{len(denied):,} accepted, but neither sent nor in doubt in the ledger"
            f"{_for_example(denied)}"
        )
    missing = [a for a, status in status_of.items() if status == "sent" and a not in by_address]
    if missing:
        yield f"{len(missing):,} sent by the ledger, never accepted{_for_example(missing)}"
    left = sum(counts[status] for status in OPEN)
    if left:
        yield f"{left:,} still open when the senders had ended"
    if evidence.campaign_status != "sent":
        yield f"the campaign is {evidence.campaign_status}, not sent"
    if doubts.get("worker_lost", 0) > evidence.lost_at_most:
        yield (
            f"{doubts['worker_lost']:,} in doubt because of the kill, "
            f"{evidence.lost_at_most:,} are the most it may cost"
        )


def _for_example(addresses: list[str]) -> str:
    if not addresses:
        return ""
    return f" ({', '.join(sorted(addresses)[:3])}{', ...' if len(addresses) > 3 else ''})"


def report_lines(evidence: Evidence, verdict: Verdict) -> list[str]:
    """The closing table: the server's side, the ledger's side, and the identity."""
    counts = evidence.counts
    server = [
        ("accepted by the server", verdict.accepted, "its own fsynced record"),
        ("duplicates", verdict.duplicates, "nobody got two" if not verdict.duplicates else "!!"),
    ]
    ledger: list[tuple[str, int, str]] = []
    for status in STATUSES:
        if counts[status]:
            ledger.append((status.replace("_", " "), counts[status], NOTES.get(status, "")))
        if status == "in_doubt":
            ledger += [
                ("  of these", n, DOUBT_REASONS.get(reason, reason.replace("_", " ") or "unknown"))
                for reason, n in evidence.doubts.items()
            ]
    rows = [("people in the audience", evidence.audience, "counted from the people")]
    return [*_aligned([server, ledger, rows]), "", f"  {identity(evidence)}"]


def _aligned(parts: list[list[tuple[str, int, str]]]) -> list[str]:
    lines = table(["", "", ""], [row for part in parts for row in part], indent="  ")[1:]
    rule = "  " + "-" * (max(map(len, lines)) - 2)
    out: list[str] = []
    for part in parts:
        out += [rule, *lines[: len(part)]]
        lines = lines[len(part) :]
    return [*out, rule]


def identity(evidence: Evidence) -> str:
    """``1,000 = 962 sent + 20 bounced + 18 in doubt: every recipient is accounted for``."""
    counts = evidence.counts
    terms = [f"{n:,} {s.replace('_', ' ')}" for s, n in counts.items() if n]
    holds = sum(counts.values()) == evidence.audience
    sign = "=" if holds else "is not"
    end = "every recipient is accounted for" if holds else "SOMEBODY IS UNACCOUNTED FOR"
    return f"{evidence.audience:,} {sign} {' + '.join(terms) or '0'}: {end}"
