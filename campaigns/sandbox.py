"""Merge templates: Django's template language with nearly everything taken out.

People who write campaigns are not people who may run code, and one attribute of one person
must not stop a lane. So: ``{% if %}`` and a few filters (``sandbox_tags``), no loaders, names
that only look things up in plain data (no attribute, no method, no call), and bounds on the
size of source, nesting, value and output, and on the work of filters and comparisons.

Here templates are compiled; ``sandbox_run`` is what they do with data. There is one way to
render: a preview, a web version and a message that is made of encoded pieces
(``sending.compiled``) all run the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.template import Engine, Origin, Template, TemplateSyntaxError
from django.template.base import (
    DebugLexer,
    Node,
    NodeList,
    Parser,
    TextNode,
    Token,
    VariableNode,
)
from django.template.defaulttags import IfNode

from .sandbox_run import (
    MAX_OUTPUT,
    MAX_VALUE,
    MAX_WORK,
    Data,
    Expression,
    MergeNode,
    SandboxError,
    Steps,
    asked,
    branches,
    reads,
    run,
    settle,
    steps,
    texts,
)

__all__ = [
    "MAX_OUTPUT",
    "MAX_SOURCE",
    "MAX_VALUE",
    "MAX_WORK",
    "Compiled",
    "SandboxError",
    "compile_template",
    "fields",
    "place",
    "tags",
]

MAX_SOURCE = 1_000_000
MAX_TAGS = 5_000
MAX_NESTING = 20
MAX_WORDS_OF_IF = 40
#: A ``{#`` without an end is text: ``@media print{#menu{...}}``.
MAX_OPEN_COMMENTS = 100
_OPENS = re.compile(r"\{[{%#]")
_CLOSES = {"{{": "}}", "{%": "%}", "{#": "#}"}

_TAGS = "{% if %}, {% elif %}, {% else %} and {% endif %}"


class _Parser(Parser):
    def __init__(self, source: str, tokens: list[Token], engine: Engine, origin: Origin) -> None:
        super().__init__(tokens, engine.template_libraries, engine.template_builtins, origin)
        self.source = source

    def compile_filter(self, token: str) -> Expression:
        return Expression(token, self)

    def find_filter(self, filter_name: str) -> Any:
        if filter_name not in self.filters:
            known = ", ".join(sorted(self.filters))
            raise TemplateSyntaxError(
                f"There is no filter {filter_name!r} here; there are {known}."
            )
        return self.filters[filter_name]

    def invalid_block_tag(self, token: Token, command: str, parse_until: Any = None) -> None:
        if command in ("elif", "else", "endif"):
            raise self.error(token, f"{{% {command} %}} without its {{% if %}}.")
        raise self.error(token, f"There is no tag {{% {command} %}} here; there are {_TAGS}.")

    def unclosed_block_tag(self, parse_until: Any) -> None:
        command, token = self.command_stack.pop()
        raise self.error(token, f"{{% {command} %}} has no {{% endif %}}.")

    def parse(self, parse_until: Any = None) -> NodeList:
        if len(self.command_stack) > MAX_NESTING:
            _, token = self.command_stack[-1]
            raise self.error(token, f"More than {MAX_NESTING} tags inside each other.")
        return super().parse(parse_until)

    def next_token(self) -> Token:
        token = super().next_token()
        if token.token_type.name == "BLOCK" and len(token.contents.split()) > MAX_WORDS_OF_IF:
            raise self.error(token, f"More than {MAX_WORDS_OF_IF} words in one tag.")
        return token

    def extend_nodelist(self, nodelist: NodeList, node: Node, token: Token) -> None:
        if isinstance(node, TextNode):
            for mark in ("{{", "{%"):
                if mark in node.s:
                    start = (token.position or (0, 0))[0] + node.s.index(mark)
                    raise SandboxError(
                        f"{mark} is not closed on its line.", *place(self.source, start)
                    )
        elif isinstance(node, VariableNode):
            node = MergeNode(node.filter_expression)
        super().extend_nodelist(nodelist, node, token)


class _MergeTemplate(Template):
    def compile_nodelist(self) -> NodeList:
        # The debug lexer costs a little once and knows where each tag stands.
        tokens = _tokens(self.source)
        if sum(token.token_type.name != "TEXT" for token in tokens) > MAX_TAGS:
            raise SandboxError(f"More than {MAX_TAGS} tags.")
        parser = _Parser(self.source, tokens, self.engine, self.origin)
        nodelist = parser.parse()
        self.extra_data: dict[str, Any] = {}
        return nodelist


class SandboxEngine(Engine):
    """An engine with one library, no loaders and no context processors."""

    default_builtins: ClassVar[list[str]] = ["campaigns.sandbox_tags"]

    def __init__(self, *, autoescape: bool) -> None:
        super().__init__(loaders=[], autoescape=autoescape)

    def from_string(self, template_code: str) -> _MergeTemplate:
        return _MergeTemplate(template_code, engine=self)


@dataclass(frozen=True)
class Compiled:
    """A template ready to be rendered by any thread, any number of times.

    ``fields``: every field it reads, as written (``account.postal_address``).
    ``bare``: those it prints without a default and outside an ``{% if %}`` that asks for them.
    ``always``: those it prints for everybody.
    """

    steps: Steps
    html: bool
    fields: frozenset[str]
    bare: frozenset[str]
    always: frozenset[str]
    #: What is left of the bounds for one person.
    left: int = MAX_OUTPUT
    work: int = MAX_WORK

    def render(self, context: Mapping[str, Any]) -> str:
        """The text for one person. A missing field is empty.

        Raises ``SandboxError`` for values that are not plain data or are too long, and for too
        much work on them.
        """
        return "".join(self.pieces(context))

    def pieces(self, context: Mapping[str, Any]) -> list[str]:
        """What ``render`` joins: some of ``texts``, and what the tags print between them.
        Raises as ``render`` does."""
        data = Data(context, self.html, self.left, self.work)
        found: list[str] = []
        try:
            run(self.steps, data, found)
            if data.refusal is not None:
                raise data.refusal
            return found
        except SandboxError:
            raise
        except (RecursionError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SandboxError(f"{type(error).__name__}: {error}") from error

    @property
    def texts(self) -> frozenset[str]:
        """The texts between the tags, those inside ``{% if %}`` included."""
        return frozenset(texts(self.steps))

    def given(self, known: Mapping[str, Any]) -> Compiled:
        """The same template for people who all have these fields: what depends on nothing else
        is printed now, and is taken off every message's bounds as if it were printed for it."""
        data = Data(known, self.html, self.left, self.work)
        try:
            settled = settle(self.steps, data)
        except Exception:
            return self  # refused for each message, with the reason
        if data.refusal is not None:
            return self
        return replace(self, steps=settled, left=data.left, work=data.work)


_HTML = SandboxEngine(autoescape=True)
_TEXT = SandboxEngine(autoescape=False)


def compile_template(source: str, *, html: bool) -> Compiled:
    """Compile a merge template; ``html`` escapes what it prints.

    Raises ``SandboxError`` with line and column for anything outside the sandbox.
    """
    if len(source) > MAX_SOURCE:
        raise SandboxError(f"The template is longer than {MAX_SOURCE} characters.")
    try:
        template = (_HTML if html else _TEXT).from_string(source)
    except SandboxError:
        raise
    except RecursionError as error:
        raise SandboxError("The template is nested too deeply.") from error
    except Exception as error:
        # Django's parser answers malformed tags with many kinds of exception (IndexError,
        # StopIteration, OverflowError); all of them are the author's to mend.
        token = getattr(error, "token", None)
        position = getattr(token, "position", None)
        where = place(source, position[0]) if position else (None, None)
        raise SandboxError(_message(error), *where) from error
    program = steps(template.nodelist)
    bare: set[str] = set()
    _collect_bare(template.nodelist, frozenset(), bare)
    always = frozenset(_always(template.nodelist))
    return Compiled(program, html, frozenset(reads(program)), frozenset(bare), always)


def fields(source: str) -> set[str]:
    """The merge fields a template reads. Raises ``SandboxError`` as ``compile_template`` does."""
    return set(compile_template(source, html=False).fields)


def tags(source: str) -> Iterator[tuple[int, int]]:
    """Start and end of every ``{{ }}``, ``{% %}`` and ``{# #}`` in the source. Raises
    ``SandboxError`` for one that is not closed, as ``compile_template`` does."""
    for token in _tokens(source):
        if token.token_type.name != "TEXT" and token.position is not None:
            yield token.position


def _tokens(source: str) -> list[Token]:
    """The lexer's tokens, for sources in which it finds the end of every tag that it begins:
    from each other one it would read on to the end of the line, which takes hours."""
    at = unclosed = 0
    line_end = -1
    while found := _OPENS.search(source, at):
        start = found.start()
        if start > line_end:
            line_end = source.find("\n", start)
            line_end = len(source) if line_end < 0 else line_end
        end = source.find(_CLOSES[found[0]], start + 2, line_end)
        if end >= 0:
            at = end + 2
            continue
        at = start + 1
        unclosed += 1
        if found[0] != "{#":
            raise SandboxError(f"{found[0]} is not closed on its line.", *place(source, start))
        if unclosed > MAX_OPEN_COMMENTS:
            raise SandboxError(
                f"More than {MAX_OPEN_COMMENTS} {{# that are not closed on their lines.",
                *place(source, start),
            )
    return DebugLexer(source).tokenize()


def place(source: str, start: int) -> tuple[int, int]:
    """Line and column, from 1, of a character."""
    line_start = source.rfind("\n", 0, start) + 1
    return source.count("\n", 0, start) + 1, start - line_start + 1


def _message(error: Exception) -> str:
    text = str(error)
    if isinstance(error, TemplateSyntaxError) and text:
        return text
    return f"This tag can't be read ({text or type(error).__name__})."


def _collect_bare(nodes: NodeList, known: frozenset[str], bare: set[str]) -> None:
    for node in nodes:
        if isinstance(node, MergeNode):
            expression = node.filter_expression
            if expression.is_var and not expression.silenced:
                bare.update(set(expression.names[:1]) - known)
        elif isinstance(node, IfNode):
            seen = known
            for condition, branch in branches(node):
                seen |= asked(condition)
                _collect_bare(branch, seen, bare)


def _always(nodes: NodeList) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, MergeNode) and node.filter_expression.is_var:
            found.update(node.filter_expression.names[:1])
        elif isinstance(node, IfNode):
            ways = branches(node)
            if ways[-1][0] is None:
                found |= set.intersection(*(_always(way) for _, way in ways))
    return found
