"""The second page of an import: how the file is read, and what each of its columns means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from ..models import AttributeDefinition, ImportJob
from ..models.attributes import KEY, RESERVED, refuse_reserved
from ..tabular import Options
from ..tabular.columns import attribute_name, label_of
from ..tabular.encodings import shown
from ..tabular.options import EXACTLY
from .seen import fingerprint, sealed, unsealed

Kind = AttributeDefinition.Kind
NEW = "new:"
#: Kinds that an import can give a new attribute. Choices have to be named before.
NEW_KINDS = (Kind.TEXT, Kind.NUMBER, Kind.DATE, Kind.BOOLEAN)
SYSTEM = (
    ("email", "Email address"),
    ("status", "Status"),
    ("locale", "Language (fr, pt-BR)"),
    ("timezone", "Time zone"),
    ("consent_source", "Source of the consent"),
    ("suppressed", "Reason of suppression"),
)
#: Columns whose new attribute can be given another key: a request has at most a thousand fields
#: (``DATA_UPLOAD_MAX_NUMBER_FIELDS``), and a file up to five hundred columns.
KEYS_OFFERED = 400

ENCODINGS = (
    "utf-8", "utf-16", "cp1252", "iso8859-1", "iso8859-15", "mac_roman", "cp850", "cp1250",
    "iso8859-2", "cp1251", "koi8-r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr",
)  # fmt: skip
#: What makes another table of a file, with other columns.
TABLE = ("encoding", "delimiter", "sheet", "header")
DELIMITERS = ((",", "Comma"), (";", "Semicolon"), ("\t", "Tab"), ("|", "Vertical bar"))


class ReadingForm(forms.Form):
    """How the file is read. Only the controls that a file of its format has."""

    encoding = forms.ChoiceField(label="Encoding")
    delimiter = forms.ChoiceField(label="Between cells")
    sheet = forms.ChoiceField(label="Sheet")
    header = forms.TypedChoiceField(
        label="First row",
        choices=[("yes", "Names of the columns"), ("no", "Already a person")],
        coerce=lambda value: value == "yes",
    )
    decimal = forms.ChoiceField(
        label="Decimal sign", choices=[(".", "Point (1.5)"), (",", "Comma (1,5)")]
    )
    date_order = forms.ChoiceField(
        label="Days",
        choices=[
            ("ymd", "Like 2026-11-30 only"),
            ("dmy", "30/11/2026: day, month, year"),
            ("mdy", "11/30/2026: month, day, year"),
        ],
    )

    def __init__(self, data: Any, *, options: Options, sheets: Sequence[str]) -> None:
        super().__init__(
            data,
            initial={
                "encoding": options.encoding,
                "delimiter": options.delimiter,
                "sheet": options.sheet,
                "header": "yes" if options.header else "no",
                "decimal": options.decimal,
                "date_order": options.date_order,
            },
        )
        if options.format == "xlsx":
            del self.fields["encoding"], self.fields["delimiter"]
            self._offer("sheet", [(name, name) for name in sheets], options.sheet)
        else:
            del self.fields["sheet"]
            self._offer("encoding", [(name, shown(name)) for name in ENCODINGS], options.encoding)
            self._offer("delimiter", list(DELIMITERS), options.delimiter)

    def _offer(self, name: str, choices: list[tuple[str, str]], found: str) -> None:
        if found and found not in dict(choices):
            choices.insert(0, (found, shown(found) if name == "encoding" else found))
        self.fields[name].choices = choices  # type: ignore[attr-defined]


@dataclass(slots=True)
class Column:
    """A column of the file, as the page shows it and as it was answered."""

    place: int
    name: str
    samples: list[str]
    #: The value of its select: a target, or ``new:<kind>``.
    choice: str
    #: The key of the new attribute; blank: none can be made of its name.
    key: str
    #: ``(group, [(value, label)])``.
    choices: list[tuple[str, list[tuple[str, str]]]]
    error: str = ""

    @property
    def number(self) -> int:
        return self.place + 1

    @property
    def offers_key(self) -> bool:
        return self.place < KEYS_OFFERED


@dataclass
class MappingForm:
    """Options of a draft as staff changed them.

    ``is_valid`` says whether every column's answer can be; that the columns go together is for
    ``Plan.understand``. ``options`` and ``new`` (kinds by keys) are what was answered. ``seen`` is
    what the page shows of the draft, for ``data`` to bring back.
    """

    job: ImportJob
    definitions: Sequence[AttributeDefinition]
    data: Mapping[str, Any] | None = None
    reading: ReadingForm = field(init=False)
    columns: list[Column] = field(init=False)
    options: Options = field(init=False)
    new: dict[str, str] = field(init=False)
    seen: str = field(init=False)

    def __post_init__(self) -> None:
        stored = Options.from_json(self.job.options)
        preview = self.job.preview
        self.reading = ReadingForm(self.data, options=stored, sheets=preview.get("sheets", []))
        targets = stored.mapping or preview.get("targets", [])
        kinds = {**dict(enumerate(preview.get("kinds", [])))}
        named = preview.get("new", {})
        self._defined = {definition.key: definition for definition in self.definitions}
        self.columns = [
            self._column(place, name, target, kinds.get(place, Kind.TEXT.value), named)
            for place, (name, target) in enumerate(
                zip(preview.get("header", []), targets, strict=False)
            )
        ]
        self._stored = self._answers(stored=True)
        self.seen = sealed({name: fingerprint(of) for name, of in self._stored.items()})
        if self.data is not None:
            for column in self.columns:
                column.choice = str(self.data.get(f"target-{column.place}", ""))
                column.key = str(self.data.get(f"key-{column.place}", column.key)).strip()
        self._understand(stored)

    def is_valid(self) -> bool:
        return (self.data is None or self.reading.is_valid()) and self.columns_are_right

    @property
    def columns_are_right(self) -> bool:
        return not any(column.error for column in self.columns)

    def all(self) -> list[AttributeDefinition]:
        """The definitions, those to be made among them."""
        made = [
            AttributeDefinition(account_id=self.job.account_id, key=key, kind=kind)
            for key, kind in self.new.items()
        ]
        return [*self.definitions, *made]

    @property
    def labels(self) -> dict[str, str]:
        """What people read of the new attributes: their columns' names, by their keys."""
        if not self.options.header:
            return {}
        return {
            column.key: label_of(column.name, column.key)
            for column in self.columns
            if column.choice.startswith(NEW) and column.key in self.new
        }

    @property
    def is_other_table(self) -> bool:
        """Was it answered that the file is to be read otherwise than the page shows it?"""
        changed = set(TABLE) & set(self.reading.changed_data)
        return self.data is not None and self.reading.is_valid() and bool(changed)

    @property
    def header(self) -> bool | None:
        """Whether the first row holds names, as answered. ``None``: not answered."""
        return self.reading.cleaned_data.get("header") if self.reading.is_valid() else None

    # --- meanwhile ---------------------------------------------------------------------------

    def changed_meanwhile(self, posted: str) -> list[str]:
        """Names of answers that are stored otherwise than the page (``posted``: its ``seen``) had
        them, and not as they are given now: storing these would undo somebody else's."""
        seen, given = unsealed(posted), self._answers()
        return [
            name
            for name, stored in self._stored.items()
            if seen.get(name) != fingerprint(stored) and given[name] != stored
        ]

    def is_other_table_meanwhile(self, posted: str) -> bool:
        """Were the page's columns others than those of the draft now?"""
        seen = unsealed(posted)
        names = [name for name in TABLE if name in self._stored]
        return any(seen.get(name) != fingerprint(self._stored[name]) for name in names)

    def is_as_stored(self) -> bool:
        return self._answers() == self._stored

    def label(self, name: str) -> str:
        """What the page calls an answer that ``changed_meanwhile`` names."""
        if name in self.reading.fields:
            return str(self.reading[name].label)
        column = self.columns[int(name)]
        return column.name.strip()[:60] or f"column {column.number}"

    def _answers(self, *, stored: bool = False) -> dict[str, list[str]]:
        """By the names of controls, and by the places of columns: the target, and the kind of an
        attribute, whether it is defined by now or not. ``stored``: the columns are as yet."""
        controls = [self.reading[name] for name in self.reading.fields]
        found = {one.name: [str(one.initial if stored else one.value())] for one in controls}
        for column in self.columns:
            target, kind = column.choice, ""
            if target.startswith(NEW):
                target, kind = f"{EXACTLY}{column.key}", target.removeprefix(NEW)
            elif target.startswith(EXACTLY) and target.removeprefix(EXACTLY) in self._defined:
                kind = self._defined[target.removeprefix(EXACTLY)].kind
            found[str(column.place)] = [target, kind]
        return found

    # --- columns -----------------------------------------------------------------------------

    def _column(
        self, place: int, name: str, target: str, kind: str, named: Mapping[str, str]
    ) -> Column:
        rows = self.job.preview.get("rows", [])
        samples = list(dict.fromkeys(row[place] for row in rows if row[place].strip()))[:3]
        key = attribute_name(name)[:100]
        choices = [
            ("", [("", "Pass over")]),
            ("The person", list(SYSTEM)),
            (
                "Attributes",
                [
                    (f"{EXACTLY}{known.key}", f"{known} ({known.get_kind_display()})")
                    for known in self.definitions
                ],
            ),
            ("A new attribute", [(f"{NEW}{kind}", f"New: {kind.label}") for kind in NEW_KINDS]),
        ]
        choice = target
        wanted = target.removeprefix(EXACTLY)
        if target.startswith(EXACTLY) and wanted not in self._defined:
            if KEY.match(wanted) and wanted.lower() not in RESERVED:
                key = wanted
                choice = f"{NEW}{named.get(wanted, kind)}"
            else:
                # Spelt exactly, as an export spells what is no name for a merge field.
                choices[2][1].append((target, wanted))
        return Column(place, name, samples, choice, key, [c for c in choices if c[1]])

    def _understand(self, stored: Options) -> None:
        self.new = {}
        mapping: list[str] = []
        for column in self.columns:
            offered = {value for _, group in column.choices for value, _ in group}
            if column.choice not in offered:
                column.error = "Choose one of these."
                mapping.append("")
            elif column.choice.startswith(NEW):
                self._check_key(column)
                mapping.append(f"{EXACTLY}{column.key}" if not column.error else "")
                if not column.error:
                    self.new[column.key] = column.choice.removeprefix(NEW)
            else:
                mapping.append(column.choice)
        self.options = replace(stored, mapping=tuple(mapping))
        if self.data is not None and self.reading.is_valid():
            self.options = replace(self.options, **self.reading.cleaned_data)

    def _check_key(self, column: Column) -> None:
        key = column.key
        try:
            refuse_reserved(key)
        except ValidationError as error:
            column.error = error.messages[0]
            return
        if not KEY.match(key):
            column.error = (
                "Name it: letters, digits and _, beginning with a letter."
                if not key
                else f"\u201c{key[:40]}\u201d can't be a key: use letters, digits and _, "
                f"beginning with a letter."
            )
        elif key in self._defined:
            column.error = f"{key} is there already: choose it under Attributes."
        elif key in self.new:
            column.error = f"{key} is the new attribute of another column, too."
