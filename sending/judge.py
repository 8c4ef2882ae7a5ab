"""What an answer means to a lane: its class, and what else is known of the relay just now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .health import is_error
from .outcomes import Answer, Outcome, Stage, Verdict, classify
from .queue import Claimed

if TYPE_CHECKING:
    from .shared import Shared

#: A relay that took a message within so many seconds works.
RELAY_WORKS = 60.0
#: Stages at which nothing of a message was attempted yet.
BEFORE_RCPT = frozenset(
    {Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH, Stage.MAIL}
)


class Judge:
    """One for each lane; what they know is the process's."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def verdict(self, alias: str, row: Claimed, said: Answer) -> Verdict:
        """What the answer means. "Relay down" about one recipient (503, 530 or 535 at RCPT) of a
        relay that takes others, or the second time about the same one, is that recipient's
        trouble: it is retried a few times and then failed, or one address would pause everybody
        for ever."""
        verdict = classify(said.stage, said.code, said.enhanced, said.text)
        if verdict.outcome is Outcome.SENT:
            return verdict
        if self._is_failed_probe(alias, verdict, said):
            # The relay is out of order still: that spends no attempt of whom it was tried with.
            verdict = Verdict(Outcome.RELAY_DOWN, verdict.reason, known=verdict.known)
        elif verdict.outcome != Outcome.RELAY_DOWN or said.stage in BEFORE_RCPT:
            return verdict
        if said.stage is Stage.HTTP and said.code in (401, 402, 403):
            return verdict  # a key that is refused, or an empty purse, is nobody's address
        suspect = self.shared.suspects.get(alias)
        self.shared.suspects[alias] = row.id
        if suspect == row.id or self.shared.last_success.recent(alias, RELAY_WORKS):
            return Verdict(Outcome.RETRY, verdict.reason, known=verdict.known)
        return verdict

    def _is_failed_probe(self, alias: str, verdict: Verdict, said: Answer) -> bool:
        return (
            verdict.outcome == Outcome.RETRY
            and is_error(verdict, said)
            and self.shared.pauses.knows(alias, None)
        )
