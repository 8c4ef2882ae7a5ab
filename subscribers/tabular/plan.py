"""A header understood: what each row of the file says about a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError

from subscribers.addresses import normalize
from subscribers.attributes import values as attribute_values
from subscribers.attributes.values import ValueRefused
from subscribers.locales import is_locale
from subscribers.models import AttributeDefinition, Subscriber, Suppression
from subscribers.models.attributes import KEY, RESERVED
from subscribers.timezones import validate_timezone

from .columns import MAX_KEY, label_of, meanings
from .delimiters import is_address
from .guarding import unguard
from .options import EXACTLY, Options
from .records import FaultyCells, ImportRefused, RowError

Kind = AttributeDefinition.Kind

_STATUSES = tuple(Subscriber.Status.values)
_REASONS = frozenset(set(Suppression.Reason.values) - {Suppression.Reason.ERASED.value})
_strip = str.strip


class Row(NamedTuple):
    """What one row says. Blank: the file is silent about it."""

    email: str
    #: ``Subscriber.Status``.
    status: str
    #: A JSON object of the cells that are not empty.
    attributes: str
    locale: str
    timezone: str
    consent_source: str
    #: The reason why the address must not get mail, as another export said it.
    suppressed: str


#: A named tuple without the call that names its fields: for every row of a million.
_row = tuple.__new__


@dataclass
class Plan:
    """Made by ``understand``; ``read`` is called for every row."""

    #: The columns' names, without the apostrophes that guard formulas.
    header: list[str]
    #: One target a column, see ``Options.mapping``.
    targets: list[str]
    #: Keys of the attributes in the file, in the order of their columns.
    attributes: list[str] = field(default_factory=list)
    #: Those of them that the account has not defined and that can be: to be declared as texts.
    new_attributes: list[str] = field(default_factory=list)
    #: Their labels, in the same order: the columns' names; blank where that is the key.
    new_labels: list[str] = field(default_factory=list)
    #: Names of the columns that are passed over.
    ignored: list[str] = field(default_factory=list)

    @classmethod
    def understand(
        cls,
        header: Sequence[str],
        options: Options,
        definitions: Iterable[AttributeDefinition] = (),
    ) -> Plan:
        """Raises ``ImportRefused``: no e-mail column, two columns to one target, a target that
        there is not, a mapping of another number of columns."""
        defined = {definition.key: definition for definition in definitions}
        names = [unguard(name) for name in header]
        plan = cls(names, _targets(names, options, defined.values()))
        used: dict[str, int] = {}
        for place, target in enumerate(plan.targets):
            if not target:
                plan.ignored.append(names[place].strip() or f"column {place + 1}")
                continue
            if target in used:
                raise ImportRefused(_twice(names, used[target], place, target))
            used[target] = place
        if "email" not in used:
            raise ImportRefused(_no_email(names, options))
        plan._compile(used, options, defined)
        return plan

    def _compile(
        self, used: dict[str, int], options: Options, defined: dict[str, AttributeDefinition]
    ) -> None:
        self._width = len(self.header)
        self._email = used["email"]
        self._system = [
            (number, used[target], check)
            for number, (target, check) in enumerate(_SYSTEM)
            if target in used
        ]
        self._texts: list[tuple[int, str]] = []
        self._typed: list[tuple[int, str, Callable[[str], str]]] = []
        for target, place in used.items():
            if not target.startswith(EXACTLY):
                continue
            key = target[len(EXACTLY) :]
            if len(key) > MAX_KEY or "\0" in key:
                raise ImportRefused(
                    f"The name of column {place + 1} is longer than {MAX_KEY} characters."
                    if len(key) > MAX_KEY
                    else f"The name of column {place + 1} holds a NUL character."
                )
            self.attributes.append(key)
            entry = f"{encode_basestring(key)}:"
            definition = defined.get(key)
            if definition is None and KEY.match(key) and key.lower() not in RESERVED:
                self.new_attributes.append(key)
                self.new_labels.append(label_of(self.header[place], key) if options.header else "")
            if definition is None or definition.kind == Kind.TEXT:
                self._texts.append((place, entry))
            else:
                parse = _json_of(definition, options)
                self._typed.append((place, entry, parse))
        places = [place for place, _ in self._texts]
        entries = ",".join(entry.replace("%", "%%") + "%s" for _, entry in self._texts)
        #: Of the texts in a row's JSON, where none of them is blank.
        self._template = entries
        self._pick: Callable[[list[str]], tuple[str, ...]] = (
            itemgetter(*places) if len(places) > 1 else lambda cells: (cells[places[0]],)
        )

    def read(self, cells: list[str]) -> Row:
        """What this row says. Raises ``RowError`` or ``AddressError``."""
        wide = self._width
        if len(cells) != wide and (len(cells) < wide or any(cells[wide:])):
            raise RowError(f"The row has {len(cells)} cells, the header {wide}.")
        if type(cells) is FaultyCells:
            self._refuse_faults(cells)
        json = self._json(cells)
        if self._template and "\\u0000" in json and "\0" in "".join(cells):
            raise RowError("The row holds a NUL character.")
        address = cells[self._email]
        address = normalize(unguard(address) if "'" in address else address)
        if not self._system:
            return _row(Row, (address, "", json, "", "", "", ""))
        found = ["", "", "", "", ""]
        for number, place, check in self._system:
            value = unguard(cells[place]).strip()
            if value:
                found[number] = check(value)
        status, locale, timezone, consent_source, suppressed = found
        return Row(address, status, json, locale, timezone, consent_source, suppressed)

    def _json(self, cells: list[str]) -> str:
        entries = self._text_entries(cells) if self._template else []
        for place, entry, parse in self._typed:
            value = unguard(cells[place]).strip()
            if value:
                try:
                    entries.append(entry + parse(value))
                except ValueRefused as error:
                    raise RowError(f"{self._name(place)}: {error}") from None
        return f"{{{','.join(entries)}}}"

    def _text_entries(self, cells: list[str]) -> list[str]:
        values = tuple(map(_strip, self._pick(cells)))
        if all(values) and "'" not in "".join(values):
            # Most rows: all cells are filled and none is guarded.
            return [self._template % tuple(map(encode_basestring, values))]
        entries = []
        for place, entry in self._texts:
            value = unguard(cells[place]).strip()
            if value:
                entries.append(entry + encode_basestring(value))
        return entries

    def plain(self, cells: list[str]) -> list[str]:
        """The cells without the apostrophes that guard formulas."""
        return [unguard(cell) for cell in cells]

    def _refuse_faults(self, cells: FaultyCells) -> None:
        for place, reason in sorted(cells.faults.items()):
            if place < self._width and self.targets[place]:
                raise RowError(f"{self._name(place)}: {reason}")

    def _name(self, place: int) -> str:
        name = " ".join(self.header[place].split())[:40]
        return name or f"column {place + 1}"


def _targets(
    names: list[str], options: Options, definitions: Iterable[AttributeDefinition]
) -> list[str]:
    if not options.mapping:
        return meanings(names, definitions)
    if len(options.mapping) != len(names):
        raise ImportRefused(
            f"The mapping has {len(options.mapping)} columns, the file {len(names)}; "
            "it was made for another file."
        )
    return list(options.mapping)


def _twice(names: list[str], first: int, second: int, target: str) -> str:
    shown = target.removeprefix(EXACTLY)[:60]
    kind = "the attribute " if target.startswith(EXACTLY) else ""
    one, other = (f"{names[p].strip()[:40] or 'without a name'} ({p + 1})" for p in (first, second))
    return f"Two columns mean {kind}{shown}: {one} and {other}."


def _no_email(names: list[str], options: Options) -> str:
    if options.mapping:
        return "There is no e-mail column; one of the columns must hold the addresses."
    if any(is_address(name) for name in names):
        return (
            "There is no e-mail column, and the first row holds a person already: say that the "
            "file has no names (--no-header), or give it a first line of column names."
        )
    shown = ", ".join(" ".join(name.split())[:30] for name in names[:6])
    return (
        f"There is no e-mail column; the first line must hold column names, "
        f"one of them email. It holds: {shown}"
    )


def _json_of(definition: AttributeDefinition, options: Options) -> Callable[[str], str]:
    """The function from a cell that is not blank to JSON text."""
    match definition.kind:
        case Kind.NUMBER:
            return partial(_number, decimal=options.decimal)
        case Kind.DATE:
            return partial(_day, order=options.date_order)
        case Kind.BOOLEAN:
            return _boolean
    return lru_cache(maxsize=1024)(partial(_choice, choices=tuple(definition.choices)))


def _number(text: str, *, decimal: str) -> str:
    return repr(attribute_values.parse_number(text, decimal))


def _day(text: str, *, order: str) -> str:
    return f'"{attribute_values.parse_date(text, order)}"'


def _boolean(text: str) -> str:
    return "true" if attribute_values.parse_boolean(text) else "false"


def _choice(text: str, *, choices: tuple[str, ...]) -> str:
    return encode_basestring(attribute_values.parse_choice(text, choices))


def _status(value: str) -> str:
    status = value.lower()
    if status not in _STATUSES:
        known = ", ".join(_STATUSES)
        raise RowError(f"The status {value[:40]!r} is none of {known}.")
    return status


@lru_cache(maxsize=1024)
def _locale(value: str) -> str:
    if not is_locale(value):
        raise RowError(f"{value[:40]!r} is no locale; use one such as fr or pt-BR.")
    return value


def _timezone(value: str) -> str:
    if not _is_timezone(value):
        raise RowError(f"{value[:40]!r} is no time zone; use a name such as Europe/Paris.")
    return value


@lru_cache(maxsize=1024)
def _is_timezone(value: str) -> bool:
    try:
        validate_timezone(value)
    except ValidationError:
        return False
    return len(value) <= 64


def _consent_source(value: str) -> str:
    if len(value) > 200:
        raise RowError("The consent source is longer than 200 characters.")
    if "\0" in value:
        raise RowError("The row holds a NUL character.")
    return value


def _suppressed(value: str) -> str:
    reason = value.lower()
    if reason not in _REASONS:
        known = ", ".join(sorted(_REASONS))
        raise RowError(f"The reason for suppression {value[:40]!r} is none of {known}.")
    return reason


#: In the order of ``Row``.
_SYSTEM: tuple[tuple[str, Callable[[str], Any]], ...] = (
    ("status", _status),
    ("locale", _locale),
    ("timezone", _timezone),
    ("consent_source", _consent_source),
    ("suppressed", _suppressed),
)
