"""Facts for checks of preflight, made of a draft."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from campaigns.audience import Audience
from campaigns.content import compile_content
from campaigns.preflight.facts import Facts
from campaigns.preflight.findings import Finding
from campaigns.preflight.material import prepare

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
LETTER = "<p>Hello, this is a letter as they are written every day.</p>"
_SOURCES = ("subject", "preheader", "body", "text_body")


def draft(**changes: Any) -> Any:
    account = SimpleNamespace(
        name="Example",
        slug="example",
        from_email="news@example.org",
        from_name="",
        reply_to="",
        postal_address="1 Example Street\n12345 Exampleton",
    )
    given = {
        "subject": "Spring is here",
        "preheader": "",
        "from_email": "",
        "from_name": "",
        "reply_to": "",
        "body_format": "html",
        "layout": None,
        "body": LETTER,
        "text_body": "",
        "account": account,
        "account_id": 1,
    }
    return SimpleNamespace(**{**given, **changes})


def facts(person: Mapping[str, Any] | None = None, known: Any = None, **changes: Any) -> Facts:
    """Of a draft with these ``changes``, as ``person`` gets it; ``known`` are further facts."""
    written = draft(**changes)
    return Facts(
        **{
            "now": NOW,
            "start": NOW,
            "sources": {name: getattr(written, name) for name in _SOURCES},
            "material": prepare(compile_content(written), person),
            "audience": Audience(addressed=100),
            "account_name": "Example",
            "postal_address": written.account.postal_address,
            "account_from": written.account.from_email,
            **(known or {}),
        }
    )


def codes(findings: tuple[Finding, ...]) -> dict[str, str]:
    """``{code: level}``."""
    return {finding.code: finding.level for finding in findings}
