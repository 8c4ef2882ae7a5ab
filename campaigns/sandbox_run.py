"""What a merge template does with one person's data: look fields up, filter, choose, print.

Nothing here finds anything but plain data, and everything is bounded: the length of a value, the
work of filters and comparisons, and what is printed. Compiling is ``sandbox``.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import groupby
from typing import Any, NoReturn, cast

from django.template import TemplateSyntaxError
from django.template.base import (
    FilterExpression,
    NodeList,
    Parser,
    TextNode,
    Variable,
    VariableDoesNotExist,
    VariableNode,
)
from django.template.defaulttags import IfNode
from django.utils.functional import Promise
from django.utils.html import conditional_escape

from .sandbox_tags import DEFAULT_WORK, WORK, text_of, work_on

MAX_OUTPUT = 2_000_000
#: Units of about a quarter of a microsecond; see ``sandbox_tags.WORK``.
MAX_WORK = 1_000_000
MAX_VALUE = 50_000
MAX_FILTERS = 8
MAX_TAG_LENGTH = 1_000

_SCALARS = frozenset((str, int, float, bool, type(None), date, datetime))
_SILENCERS = frozenset(("default", "default_if_none", "yesno"))


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


class Data:
    """What tags see as their context: data, the escaping, what may still be written and done."""

    __slots__ = ("autoescape", "left", "refusal", "values", "work")

    def __init__(
        self,
        values: Mapping[str, Any],
        autoescape: bool,
        left: int = MAX_OUTPUT,
        work: int = MAX_WORK,
    ) -> None:
        self.values = values
        self.autoescape = autoescape
        self.left = left
        self.work = work
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


class Name(Variable):
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
                # Only dicts and lists: any other type's __getitem__ could be somebody's code.
                if isinstance(current, dict):
                    current = current[bit]
                elif type(current) is list:
                    current = current[int(bit)]
                else:
                    raise TypeError
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


class Expression(FilterExpression):
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
            self.var = _LITERALS[token] if token in _LITERALS else Name(self.var.var)
            self.is_var = isinstance(self.var, Name)
        self.filters = [
            (
                function,
                [(True, Name(arg.var)) if is_var else (is_var, arg) for is_var, arg in args],
            )
            for function, args in self.filters
        ]
        self.steps = [_step(function, args) for function, args in self.filters]
        #: The fields read, the first being the one printed.
        self.names: list[str] = [
            str(name.var)
            for name in [self.var, *(arg for _, args in self.filters for is_var, arg in args)]
            if isinstance(name, Name) and name.lookups is not None
        ]
        self.silenced = any(function.__name__ in _SILENCERS for function, _ in self.filters)

    def resolve(self, context: Any, ignore_failures: bool = False) -> Any:
        value = _value(self.var, context) if self.is_var else self.var
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


def _value(name: Name, context: Data) -> Any:
    try:
        return name.resolve(context)
    except VariableDoesNotExist:
        return None


class MergeNode(VariableNode):
    """Prints an expression within what is left of the output."""

    filter_expression: Expression

    def render(self, context: Any) -> str:
        value = self.filter_expression.resolve(context)
        text = value if type(value) is str else text_of(value)
        if context.autoescape:
            # The same for plain text, without asking what else it could be.
            text = html.escape(text) if type(text) is str else conditional_escape(text)
        context.left -= len(text)
        if context.left < 0:
            context.refuse(f"The message would be longer than {MAX_OUTPUT} characters.")
        return text


class Choice:
    """An ``{% if %}``: conditions (``None``: always), and the steps of each."""

    __slots__ = ("branches",)

    def __init__(self, node: IfNode) -> None:
        self.branches = [(condition, steps(nodes)) for condition, nodes in branches(node)]

    def chosen(self, data: Data) -> Steps:
        """The steps of the first branch whose condition holds."""
        for condition, then in self.branches:
            try:
                if condition is None or condition.eval(data):
                    return then
            except VariableDoesNotExist:
                continue
        return ()


Steps = tuple[str | MergeNode | Choice, ...]


def steps(nodes: NodeList) -> Steps:
    """A list of nodes without Django's machinery: texts, fields and choices, in order."""
    found: list[str | MergeNode | Choice] = []
    for node in nodes:
        if isinstance(node, TextNode):
            found.append(str(node.s))
        elif isinstance(node, IfNode):
            found.append(Choice(node))
        else:
            assert isinstance(node, MergeNode)
            found.append(node)
    return _joined(found)


def _joined(found: Iterable[str | MergeNode | Choice]) -> Steps:
    """No text beside another: a comment may have stood between them."""
    joined: list[str | MergeNode | Choice] = []
    for is_text, group in groupby(found, lambda step: isinstance(step, str)):
        together = list(group)
        joined += ["".join(cast(list[str], together))] if is_text else together
    return tuple(joined)


def run(program: Steps, data: Data, out: list[str]) -> None:
    """Append what the steps print for one person: the texts of the template as they stand in
    it, each by itself, and what its tags print. Raises ``SandboxError``, and whatever filters
    raise."""
    for step in program:
        if type(step) is str:
            out.append(step)
        elif type(step) is MergeNode:
            out.append(step.render(data))
        else:
            assert isinstance(step, Choice)
            run(step.chosen(data), data, out)


def settle(program: Steps, data: Data) -> Steps:
    """The same steps, those that read nothing beyond ``data`` printed; that is charged to it.
    Raises as ``run`` does."""
    known = set(data.values)
    found: list[str | MergeNode | Choice] = []
    for step in program:
        if {name.partition(".")[0] for name in reads((step,))} <= known:
            printed: list[str] = []
            run((step,), data, printed)
            found.append("".join(printed))
        else:
            found.append(step)
    return _joined(found)


def texts(program: Steps) -> Iterator[str]:
    """Every text of the template, those in branches included."""
    for step in program:
        if isinstance(step, str):
            yield step
        elif isinstance(step, Choice):
            for _, then in step.branches:
                yield from texts(then)


def reads(program: Steps) -> set[str]:
    """Every field that the steps read, as written."""
    found: set[str] = set()
    for step in program:
        if isinstance(step, MergeNode):
            found.update(step.filter_expression.names)
        elif isinstance(step, Choice):
            for condition, then in step.branches:
                found |= asked(condition) | reads(then)
    return found


def branches(node: IfNode) -> list[tuple[Any, NodeList]]:
    """Conditions and nodes of an ``{% if %}``; the condition of ``{% else %}`` is ``None``."""
    return list(node.conditions_nodelists)


def asked(condition: Any) -> set[str]:
    """The fields a condition reads."""
    if condition is None:
        return set()
    if isinstance(condition.value, Expression):
        return set(condition.value.names)
    return asked(condition.first) | asked(condition.second)
