"""What preflight says: findings, the checks that made them, and the report of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..audience import Audience
from ..content import CompiledContent
from ..forecasts import Duration

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend (``error``: keeps from approval) or to know (``warning``).

    ``title`` is one sentence without its full stop. ``field`` is the campaign's field to mend,
    "" where there is none; ``line`` and ``column`` count from 1 in it. ``count`` is of people,
    where it is about so many.
    """

    code: str
    level: Level
    title: str
    detail: str = ""
    field: str = ""
    count: int | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist: what was looked at, and what was found. ``code`` is its own;
    its findings have codes that begin with it. ``ran`` False: there was nothing to look at, such
    as links of a content that does not compile."""

    code: str
    title: str
    findings: tuple[Finding, ...] = ()
    ran: bool = True

    @property
    def level(self) -> Literal["error", "warning", "passed", "skipped"]:
        """The worst of its findings."""
        if any(finding.level == "error" for finding in self.findings):
            return "error"
        if self.findings:
            return "warning"
        return "passed" if self.ran else "skipped"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that preflight looked at. ``compiled`` is None where the content does not
    compile, ``audience`` where nobody was counted, ``duration`` where nothing sends."""

    checks: tuple[Check, ...]
    audience: Audience | None = None
    compiled: CompiledContent | None = None
    duration: Duration | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level == "warning")

    @property
    def ok(self) -> bool:
        """Whether nothing keeps the campaign from being approved."""
        return not self.errors
