"""Admin forms for what an account knows of its people: the definitions, and one person's values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from typing import Any, ClassVar

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from ..attributes.fit import IS, count_misfits
from ..attributes.values import ValueRefused, check_value, parse_number
from ..models import AttributeDefinition
from .people import SubscriberForm

Kind = AttributeDefinition.Kind
PREFIX = "attribute_"
#: Characters of a text that a field of one line shows.
LINE = 200


# --- definitions ---------------------------------------------------------------------------------


class LinesField(forms.CharField):
    """A list of texts, one per line; blank lines and repetitions are passed over."""

    most, longest = 500, 200

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", AdminTextareaWidget(attrs={"rows": 6}))
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else "\n".join(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or ()) != _lines(data or "")

    def clean(self, value: Any) -> Any:
        lines = _lines(super().clean(value))
        if len(lines) > self.most:
            raise ValidationError(f"At most {self.most} choices, not {len(lines)}.")
        long = next((line for line in lines if len(line) > self.longest), None)
        if long is not None:
            raise ValidationError(
                f"\u201c{long[:30]}\u2026\u201d is longer than {self.longest} characters."
            )
        return lines


class AttributeDefinitionForm(forms.ModelForm):
    choices = LinesField(required=False, help_text="For one of several: one choice per line.")

    class Meta:
        model = AttributeDefinition
        fields = ("account", "key", "label", "kind", "choices")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        kind, choices = cleaned.get("kind"), cleaned.get("choices")
        if kind is None or choices is None:
            return cleaned
        if kind == Kind.CHOICE and not choices:
            self.add_error("choices", "One of several needs choices.")
            return cleaned
        if kind != Kind.CHOICE and choices:
            self.add_error("choices", "Only one of several has choices.")
            return cleaned
        if not self.errors and {"kind", "choices", "key", "account"} & set(self.changed_data):
            self._check_stored(kind, choices)
        return cleaned

    def _check_stored(self, kind: str, choices: list[str]) -> None:
        """A kind that stored values are not of would make them wrong without anybody's doing."""
        account = self.instance.account if self.instance.pk else self.cleaned_data["account"]
        key = self.instance.key if self.instance.pk else self.cleaned_data["key"]
        wrong = count_misfits(account, key, kind, choices)
        if wrong:
            only_choices = self.instance.pk and kind == self.instance.kind == Kind.CHOICE
            self.add_error(
                "choices" if only_choices else "kind",
                f"{wrong:,} {'person has' if wrong == 1 else 'people have'} a value that is not "
                f"{IS[Kind(kind)]}. "
                f"Change these values first, by an import for example.",
            )


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (line.strip() for line in text.splitlines()))))


# --- one person's values -------------------------------------------------------------------------


class TextField(forms.CharField):
    """A text; its line ends are kept as they are stored, not as browsers send them."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text


class NumberField(forms.CharField):
    """A number as a file writes it, with a decimal point; cleaned to ``int`` or ``float``."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", AdminTextInputWidget(attrs={"inputmode": "decimal"}))
        super().__init__(**kwargs)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_number(text)
        except ValueRefused as error:
            raise ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(initial != self.clean(data))
        except ValidationError:
            return True


def typed_form(
    form: type[Any], definitions: Iterable[AttributeDefinition]
) -> type[TypedAttributesForm]:
    """``form`` with a field for each definition; what is not defined stays in ``attributes``."""
    known = {f"{PREFIX}{definition.pk}": definition for definition in definitions}
    declared = {name: _field(definition) for name, definition in known.items()}
    return type(form.__name__, (TypedAttributesForm, form), {**declared, "definitions": known})


class AttributesField(forms.JSONField):
    """JSON as PostgreSQL takes it: neither NUL nor half of a pair of surrogates."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"rows": 6, "class": "sendonce-source"}
        widget = forms.Textarea(attrs=attrs)
        super().__init__(required=False, initial=dict, widget=widget, **kwargs)

    def clean(self, value: Any) -> Any:
        cleaned = super().clean(value)
        if not _is_storable(cleaned):
            raise ValidationError("It holds a character that can't be stored.")
        return cleaned

    def bound_data(self, data: Any, initial: Any) -> Any:
        # Shown again as it was typed: half a pair is no text that a page could hold.
        shown = super().bound_data(data, initial)
        return shown if _is_storable(shown) else forms.fields.InvalidJSONInput(data)


def _is_storable(value: Any) -> bool:
    try:
        return b"\\u0000" not in json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False


class TypedAttributesForm(SubscriberForm):
    """See ``typed_form``."""

    attributes = AttributesField()

    #: By the name of the field.
    definitions: ClassVar[dict[str, AttributeDefinition]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance.attributes if isinstance(self.instance.attributes, dict) else {}
        self._stored: dict[str, Any] = dict(stored)
        rest = dict(stored)
        for name, definition in self.definitions.items():
            value = stored.get(definition.key)
            if definition.key in stored and _problem(definition, value) is None:
                del rest[definition.key]
                is_day = definition.kind == Kind.DATE and isinstance(value, str)
                self.initial[name] = date.fromisoformat(str(value)) if is_day else value
                if isinstance(value, str) and ("\n" in value or len(value) > LINE):
                    self.fields[name].widget = AdminTextareaWidget(attrs={"rows": 4})
        if "attributes" in self.fields and self.definitions:
            self.initial["attributes"] = rest
            self.fields["attributes"].label = "Other attributes"
            self.fields["attributes"].help_text = "Those without a definition, as a JSON object."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        other = cleaned.get("attributes")
        if not isinstance(other, dict):
            return cleaned
        if self.instance.pk:
            cleaned["attributes"] = self._together(cleaned, other)
        elif cleaned.get("account"):
            for definition in AttributeDefinition.objects.filter(
                account=cleaned["account"], key__in=list(other)
            ):
                self._check(definition, other[definition.key])
        return cleaned

    def _together(self, cleaned: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        """What the fields and the rest say; a field that is filled in wins."""
        attributes = dict(other)
        for name, definition in self.definitions.items():
            if name in self.errors:
                continue
            key = definition.key
            value = _as_json(cleaned.get(name))
            if value is not None:
                unchanged = name not in self.changed_data and key in self._stored
                attributes[key] = self._stored[key] if unchanged else value
            elif key in other and other[key] != self._stored.get(key):
                self._check(definition, other[key])
        return attributes

    def _check(self, definition: AttributeDefinition, value: Any) -> None:
        problem = _problem(definition, value)
        if problem is not None:
            self.add_error("attributes", f"{definition.key}: {problem}")


def _problem(definition: AttributeDefinition, value: Any) -> str | None:
    if value is None:
        return None
    try:
        check_value(definition, value)
    except ValueRefused as error:
        return str(error)
    return None


def _field(definition: AttributeDefinition) -> forms.Field:
    shared: dict[str, Any] = {
        "required": False,
        "label": capfirst(definition.label or definition.key.replace("_", " ")),
        "help_text": f"{{{{ {definition.key} }}}} in a campaign.",
    }
    match definition.kind:
        case Kind.NUMBER:
            return NumberField(**shared)
        case Kind.DATE:
            # The browser's own calendar, which sends ISO 8601 in every language.
            attrs = {"type": "date", "class": "sendonce-day"}
            widget = forms.DateInput(format="%Y-%m-%d", attrs=attrs)
            return forms.DateField(**shared, input_formats=["%Y-%m-%d"], widget=widget)
        case Kind.BOOLEAN:
            return forms.NullBooleanField(**shared)
        case Kind.CHOICE:
            choices = [("", "---------"), *((choice, choice) for choice in definition.choices)]
            return forms.ChoiceField(**shared, choices=choices)
    return TextField(**shared, max_length=100_000, widget=AdminTextInputWidget())


def _as_json(value: Any) -> Any:
    """A field's value as it is stored; ``None``: there is none."""
    return value.isoformat() if isinstance(value, date) else None if value == "" else value
