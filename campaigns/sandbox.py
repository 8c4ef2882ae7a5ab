"""Merge templates: Django's template language with nearly everything taken out.

People who write campaigns are not people who may run code, and one attribute of one person
must not stop a lane. So: ``{% if %}`` and a few filters (``sandbox_tags``), no loaders, names
that only look things up in plain data (no attribute, no method, no call), and bounds on the
size of source, nesting, value and output, and on the work of filters and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, NoReturn, cast

from django.template import Engine, Origin, Template, TemplateSyntaxError
from django.template.base import (
    DebugLexer,
    FilterExpression,
    Node,
    NodeList,
    Parser,
    TextNode,
    Token,
    Variable,
    VariableDoesNotExist,
    VariableNode,
)
from django.template.defaulttags import IfNode
from django.utils.functional import Promise
from django.utils.html import conditional_escape

from .sandbox_tags import DEFAULT_WORK, WORK, text_of, work_on

MAX_SOURCE = 1_000_000
MAX_OUTPUT = 2_000_000
#: Units of about a quarter of a microsecond; see ``sandbox_tags.WORK``.
MAX_WORK = 1_000_000
MAX_VALUE = 50_000
MAX_TAGS = 5_000
MAX_NESTING = 20
MAX_FILTERS = 8
MAX_WORDS_OF_IF = 40
MAX_TAG_LENGTH = 1_000

_SCALARS = frozenset((str, int, float, bool, type(None), date, datetime))
_SILENCERS = frozenset(("default", "default_if_none", "yesno"))
_TAGS = "{% if %}, {% elif %}, {% else %} and {% endif %}"


class SandboxError(ValueError):
    """A template that can't be compiled, or that went over its bounds with somebody's data.

    ``line`` and ``column`` count from 1 and are ``None`` when the error has no place.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        return f"line {self.line}, column {self.column}: {self.message}"


class _Data:
    """What nodes see as their context: data, the escaping, what may still be written and done."""

    __slots__ = ("autoescape", "left", "refusal", "template", "values", "work")

    def __init__(self, values: Mapping[str, Any], template: Template, autoescape: bool) -> None:
        self.values = values
        self.template = template
        self.autoescape = autoescape
        self.left = MAX_OUTPUT
        self.work = MAX_WORK
        self.refusal: SandboxError | None = None

    def refuse(self, message: str) -> NoReturn:
        """Refuse this message, and remember it: the operators of ``{% if %}`` take every
        exception for "false", and the wrong branch is worse than no message."""
        self.refusal = self.refusal or SandboxError(message)
        raise self.refusal

    def charge(self, work: int) -> None:
        """Raise ``SandboxError`` when that was more than what is left."""
        self.work -= work
        if self.work < 0:
            self.refuse("The template does too much work on long values.")


class _Name(Variable):
    """A literal, or a path of keys and list positions through plain data."""

    __slots__ = ()

    def __init__(self, var: str) -> None:
        super().__init__(var)
        if self.lookups and not all(self.lookups):
            raise TemplateSyntaxError(f"Not a field's name: {var!r}.")

    def resolve(self, context: Any) -> Any:
        """Raise ``VariableDoesNotExist`` for a missing field, ``SandboxError`` for an object."""
        if self.lookups is None:
            return self.literal
        current: Any = context.values
        for bit in self.lookups:
            try:
                current = current[int(bit)] if type(current) is list else _key(current, bit)
            except (KeyError, IndexError, ValueError, TypeError):
                raise VariableDoesNotExist("No field %s.", (self.var,)) from None
        if type(current) is str:
            if len(current) > MAX_VALUE:
                context.refuse(f"The value of {self.var} is longer than {MAX_VALUE} characters.")
        elif type(current) is list:
            context.charge(len(current))
            if len(current) > MAX_VALUE or any(type(item) not in _SCALARS for item in current):
                context.refuse(f"The list {self.var} is too long or not a plain one.")
        elif type(current) not in _SCALARS and not isinstance(current, dict):
            context.refuse(f"The value of {self.var} is not plain data.")
        return current


_LITERALS: dict[str, Any] = {"True": True, "False": False, "None": None}


def _key(current: Any, bit: str) -> Any:
    # Only dicts: any other type's __getitem__ could be somebody's code.
    if not isinstance(current, dict):
        raise TypeError
    return current[bit]


class _Expression(FilterExpression):
    """``field|filter:arg``, resolved without Django's attribute lookups and calls."""

    __slots__ = ("names", "silenced", "steps")

    def __init__(self, token: str, parser: Parser) -> None:
        if len(token) > MAX_TAG_LENGTH:
            raise TemplateSyntaxError("This tag is too long.")
        super().__init__(token, parser)
        if len(self.filters) > MAX_FILTERS:
            raise TemplateSyntaxError(f"More than {MAX_FILTERS} filters in one tag.")
        literals = [arg for _, args in self.filters for is_var, arg in args if not is_var]
        if any(isinstance(literal, Promise) for literal in [self.var, *literals]):
            # _("") would print the header of the host's catalogue.
            raise TemplateSyntaxError("Translated strings are not available.")
        if self.is_var:
            self.var = _LITERALS[token] if token in _LITERALS else _Name(self.var.var)
            self.is_var = isinstance(self.var, _Name)
        self.filters = [
            (
                function,
                [(True, _Name(arg.var)) if is_var else (is_var, arg) for is_var, arg in args],
            )
            for function, args in self.filters
        ]
        self.steps = [_step(function, args) for function, args in self.filters]
        #: The fields read, the first being the one printed.
        self.names: list[str] = [
            str(name.var)
            for name in [self.var, *(arg for _, args in self.filters for is_var, arg in args)]
            if isinstance(name, _Name) and name.lookups is not None
        ]
        self.silenced = any(function.__name__ in _SILENCERS for function, _ in self.filters)

    def resolve(self, context: Any, ignore_failures: bool = False) -> Any:
        value = self.var
        if self.is_var:
            value = _value(self.var, context)
        for function, args, work, work_of_argument in self.steps:
            work += len(value) if type(value) is str else work_on(value, context.work)
            given = args
            if work_of_argument:
                given = [_value(arg, context) if is_var else arg for is_var, arg in args]
                work += work_on(given, context.work) * work_of_argument
            context.charge(work)
            if getattr(function, "needs_autoescape", False):
                value = function(value, *given, autoescape=context.autoescape)
            else:
                value = function(value, *given)
        if ignore_failures and value is not None and type(value) is not bool:
            # How Django asks for the operands of {% if %}; comparing reads them to the end.
            context.charge(len(value) if type(value) is str else work_on(value, context.work))
        return value


def _step(function: Any, args: list[tuple[bool, Any]]) -> tuple[Any, list[Any], int, int]:
    """A filter, its arguments, its work but for the value, and its work for a unit of the
    arguments, which is 0 for literals as they are counted once and for all."""
    work, work_of_argument = WORK.get(function.__name__, DEFAULT_WORK)
    if any(is_var for is_var, _ in args):
        return function, args, work, work_of_argument
    literals = [arg for _, arg in args]
    return function, literals, work + work_on(literals, MAX_WORK) * work_of_argument, 0


def _value(name: _Name, context: _Data) -> Any:
    try:
        return name.resolve(context)
    except VariableDoesNotExist:
        return None


class _MergeNode(VariableNode):
    """Prints an expression within what is left of the output."""

    filter_expression: _Expression

    def render(self, context: Any) -> str:
        text = text_of(self.filter_expression.resolve(context))
        if context.autoescape:
            text = conditional_escape(text)
        context.left -= len(text)
        if context.left < 0:
            context.refuse(f"The message would be longer than {MAX_OUTPUT} characters.")
        return text


class _Parser(Parser):
    def __init__(self, source: str, tokens: list[Token], engine: Engine, origin: Origin) -> None:
        super().__init__(tokens, engine.template_libraries, engine.template_builtins, origin)
        self.source = source

    def compile_filter(self, token: str) -> _Expression:
        return _Expression(token, self)

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
                        f"{mark} is not closed on its line.", *_place(self.source, start)
                    )
        elif isinstance(node, VariableNode):
            node = _MergeNode(node.filter_expression)
        super().extend_nodelist(nodelist, node, token)


class _MergeTemplate(Template):
    def compile_nodelist(self) -> NodeList:
        # The debug lexer costs a little once and knows where each tag stands.
        tokens = DebugLexer(self.source).tokenize()
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

    template: _MergeTemplate
    html: bool
    fields: frozenset[str]
    bare: frozenset[str]
    always: frozenset[str]

    def render(self, context: Mapping[str, Any]) -> str:
        """The text for one person. A missing field is empty.

        Raises ``SandboxError`` for values that are not plain data or are too long, and for too
        much work on them.
        """
        data = _Data(context, self.template, self.html)
        try:
            text = str.__str__(self.template.nodelist.render(cast(Any, data)))
            if data.refusal is not None:
                raise data.refusal
            return text
        except SandboxError:
            raise
        except (RecursionError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SandboxError(f"{type(error).__name__}: {error}") from error


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
        place = _place(source, position[0]) if position else (None, None)
        raise SandboxError(_message(error), *place) from error
    fields: set[str] = set()
    bare: set[str] = set()
    _collect(template.nodelist, frozenset(), fields, bare)
    always = frozenset(_always(template.nodelist))
    return Compiled(template, html, frozenset(fields), frozenset(bare), always)


def fields(source: str) -> set[str]:
    """The merge fields a template reads. Raises ``SandboxError`` as ``compile_template`` does."""
    return set(compile_template(source, html=False).fields)


def tags(source: str) -> Iterator[tuple[int, int]]:
    """Start and end of every ``{{ }}``, ``{% %}`` and ``{# #}`` in the source."""
    for token in DebugLexer(source).tokenize():
        if token.token_type.name != "TEXT" and token.position is not None:
            yield token.position


def _place(source: str, start: int) -> tuple[int, int]:
    line_start = source.rfind("\n", 0, start) + 1
    return source.count("\n", 0, start) + 1, start - line_start + 1


def _message(error: Exception) -> str:
    text = str(error)
    if isinstance(error, TemplateSyntaxError) and text:
        return text
    return f"This tag can't be read ({text or type(error).__name__})."


def _branches(node: IfNode) -> list[tuple[Any, NodeList]]:
    return list(node.conditions_nodelists)


def _asked(condition: Any) -> set[str]:
    """The fields a condition reads."""
    if condition is None:
        return set()
    if isinstance(condition.value, _Expression):
        return set(condition.value.names)
    return _asked(condition.first) | _asked(condition.second)


def _collect(nodes: NodeList, asked: frozenset[str], fields: set[str], bare: set[str]) -> None:
    for node in nodes:
        if isinstance(node, _MergeNode):
            expression = node.filter_expression
            fields.update(expression.names)
            if expression.is_var and not expression.silenced:
                bare.update(set(expression.names[:1]) - asked)
        elif isinstance(node, IfNode):
            seen = asked
            for condition, branch in _branches(node):
                names = _asked(condition)
                fields.update(names)
                seen |= names
                _collect(branch, seen, fields, bare)


def _always(nodes: NodeList) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, _MergeNode) and node.filter_expression.is_var:
            found.update(node.filter_expression.names[:1])
        elif isinstance(node, IfNode):
            branches = _branches(node)
            if branches[-1][0] is None:
                found |= set.intersection(*(_always(branch) for _, branch in branches))
    return found
