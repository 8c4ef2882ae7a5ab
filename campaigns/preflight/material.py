"""The content as checks look at it: compiled templates, the page, and two renderings; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..content import CompiledContent
from ..rendering import Rendered, Renderer, RenderError, build_context
from ..sandbox import Compiled
from ..sandbox_run import Choice, Expression, MergeNode, Steps
from .markup import Page, read

#: About as long as a person's own link is; its length counts in a message's size.
_LINK = "https://www.example.org/" + "x" * 90


@dataclass(frozen=True, slots=True)
class Material:
    """``page`` None: a message of text alone. ``typical`` is the message as somebody of the
    audience would get it, ``blank`` as somebody of whom nothing is known; None where it can't be
    rendered, which ``refusal`` says of the typical one."""

    compiled: CompiledContent
    subject: Compiled
    html: Compiled | None
    text: Compiled
    page: Page | None = None
    typical: Rendered | None = None
    blank: Rendered | None = None
    refusal: str = ""

    @property
    def parts(self) -> tuple[Compiled, ...]:
        return tuple(part for part in (self.subject, self.html, self.text) if part is not None)

    @property
    def fields(self) -> frozenset[str]:
        """Every field that is read, as written."""
        return frozenset().union(*(part.fields for part in self.parts))

    @property
    def bare(self) -> frozenset[str]:
        """Those that are printed without a default and without being asked for."""
        return frozenset().union(*(part.bare for part in self.parts))

    def expressions(self) -> Iterator[Expression]:
        """Every ``{{ }}``, those in branches included."""
        for part in self.parts:
            yield from _expressions(part.steps)


def prepare(compiled: CompiledContent, person: Mapping[str, Any] | None) -> Material:
    """``person``: the attributes of somebody of the audience, and ``email``; None for nobody.

    Raises ``RenderError`` for a content that ``compile_content`` did not make.
    """
    renderer = Renderer(compiled)
    typical, refusal = _rendered(renderer, compiled, person or {})
    blank, _ = _rendered(renderer, compiled, {})
    return Material(
        compiled=compiled,
        subject=renderer.subject,
        html=renderer.html,
        text=renderer.text,
        page=read(compiled.html) if compiled.html else None,
        typical=typical,
        blank=blank,
        refusal=refusal,
    )


def says_to_all(part: Compiled, known: Mapping[str, Any], words: str) -> bool:
    """Whether a part says ``words``, in capitals or not, to everybody, whatever is known of them
    beyond ``known``."""
    return _says(part.given(known).steps, words.casefold())


def _says(program: Steps, words: str) -> bool:
    for step in program:
        if isinstance(step, str):
            if words in step.casefold():
                return True
        elif isinstance(step, Choice):
            is_complete = step.branches[-1][0] is None
            if is_complete and all(_says(then, words) for _, then in step.branches):
                return True
    return False


def _rendered(
    renderer: Renderer, compiled: CompiledContent, person: Mapping[str, Any]
) -> tuple[Rendered | None, str]:
    context = build_context(
        email=str(person.get("email") or "person@example.org"),
        attributes=person,
        account_fields=compiled.account_fields,
        unsubscribe_url=_LINK,
        preferences_url=_LINK,
        web_url=_LINK,
    )
    try:
        return renderer.render(context), ""
    except RenderError as error:
        return None, str(error)


def _expressions(program: Steps) -> Iterator[Expression]:
    for step in program:
        if isinstance(step, MergeNode):
            yield step.filter_expression
        elif isinstance(step, Choice):
            for _, then in step.branches:
                yield from _expressions(then)
