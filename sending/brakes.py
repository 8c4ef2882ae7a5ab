"""The brake of one process: refusals that speak of us pause the campaign, with the reason.

A relay that refuses one message after another for policy, content or quota (a blocked sender, a
spent allowance) would turn a whole campaign into ``failed`` within minutes. After so many in a
row, none accepted between them, the campaign is paused and says why; staff resume it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from .answers import Answer, Outcome, Verdict, said

#: Refusals in a row, of one campaign in one process, that pause it.
LIMIT = 20


@dataclass
class Brake:
    """Counts braking verdicts in a row, by campaign; safe between threads."""

    limit: int = LIMIT
    _row: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, campaign_id: int | None, verdict: Verdict, answer: Answer) -> str | None:
        """Count one verdict; the reason to pause the campaign when it was the last straw.

        An acceptance starts the count again; what speaks of the recipient changes nothing.
        """
        if campaign_id is None:
            return None
        with self._lock:
            if verdict.outcome is Outcome.SENT:
                self._row.pop(campaign_id, None)
                return None
            if not verdict.brakes:
                return None
            count = self._row.get(campaign_id, 0) + 1
            if count < self.limit:
                self._row[campaign_id] = count
                return None
            self._row.pop(campaign_id, None)
        words = said(answer.code, answer.enhanced, answer.text)
        return f"{count} refusals in a row ({verdict.reason.replace('_', ' ')}): {words}"[:500]
