"""From frozen content and one person's data to one person's message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .sandbox import Compiled, SandboxError, compile_template

_BREAKS = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")


class RenderError(ValueError):
    """This person's message can't be rendered; everybody else's can."""


class Renderable(Protocol):
    """What ``Content`` and ``CompiledContent`` have in common: merge template sources."""

    @property
    def subject(self) -> str: ...

    @property
    def html(self) -> str: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Rendered:
    """One person's message. ``html`` is empty for a text-only one."""

    subject: str
    html: str
    text: str


def build_context(
    *,
    email: str,
    attributes: Mapping[str, Any] | None,
    account_fields: Mapping[str, Any],
    unsubscribe_url: str,
    preferences_url: str,
    web_url: str,
) -> dict[str, Any]:
    """What a person's templates see: their attributes at top level, and the system's fields,
    which beat attributes of the same name. Plain data, fit for a JSON column."""
    return {
        **(attributes or {}),
        "email": email,
        "unsubscribe_url": unsubscribe_url,
        "preferences_url": preferences_url,
        "web_url": web_url,
        "account": dict(account_fields),
    }


class Renderer:
    """The templates of one content, compiled once; renders from any thread. ``html`` is None
    for a text-only message.

    Raises ``RenderError`` when the content itself doesn't compile.
    """

    def __init__(self, content: Renderable) -> None:
        self.subject = _compiled(content.subject, "subject", html=False)
        self.html = _compiled(content.html, "html", html=True) if content.html else None
        self.text = _compiled(content.text, "text", html=False)

    def render(self, context: Mapping[str, Any]) -> Rendered:
        """One person's message; missing fields are empty. Raises ``RenderError``."""
        try:
            return Rendered(
                subject=one_line(self.subject.render(context)),
                html=self.html.render(context) if self.html else "",
                text=self.text.render(context),
            )
        except SandboxError as error:
            raise RenderError(str(error)) from error


def render(content: Renderable, context: Mapping[str, Any]) -> Rendered:
    """Render once; for many people keep a ``Renderer``. Raises ``RenderError``."""
    return Renderer(content).render(context)


def one_line(text: str) -> str:
    """Line ends and control characters as single spaces, none at the ends: a header's text."""
    return _BREAKS.sub(" ", text).strip()


def _compiled(source: str, name: str, *, html: bool) -> Compiled:
    try:
        return compile_template(source, html=html)
    except SandboxError as error:
        raise RenderError(f"{name}: {error}") from error
