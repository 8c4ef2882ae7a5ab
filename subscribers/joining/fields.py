"""The fields of a sign-up form, from what the account knows of its people."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation.trans_real import parse_accept_lang_header

from ..addresses import AddressError, normalize
from ..locales import LONGEST, is_locale
from ..models import AttributeDefinition, SignupForm
from .asking import knows_words

Kind = AttributeDefinition.Kind

PREFIX = "attribute-"
#: People neither see it nor come to it; programs fill whatever is called so.
TRAP = "message"
LONGEST_TEXT = 500


class MailboxField(forms.CharField):
    """An e-mail address, cleaned to the form in which it is stored."""

    default_error_messages = {
        "required": _("Please write your e-mail address."),
        "invalid": _("This is not an e-mail address that mail can be sent to. Please check it."),
    }

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        try:
            return normalize(text)
        except AddressError as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from error


class EntryForm(forms.Form):
    """What people fill in. ``entry_form`` adds the fields of a form's attributes."""

    signup: SignupForm
    definitions: dict[str, AttributeDefinition]

    email = MailboxField(
        label=_("E-mail address"),
        max_length=400,
        widget=forms.EmailInput(
            attrs={
                "autocomplete": "email",
                "autocapitalize": "none",
                "spellcheck": "false",
                "dir": "ltr",
                "maxlength": "320",
            }
        ),
    )
    consent = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    locale = forms.CharField(required=False, max_length=LONGEST, widget=forms.HiddenInput)

    def clean_consent(self) -> str:
        shown: str = self.cleaned_data["consent"]
        if shown and not knows_words(self.signup, shown):
            raise ValidationError(_("What you agree to has changed. Please read it again."))
        return shown

    def clean_locale(self) -> str:
        given: str = self.cleaned_data["locale"]
        if given and not as_locale(given):
            raise ValidationError(_("This is no language."))
        return given

    @property
    def shown_fields(self) -> list[forms.BoundField]:
        """The fields of attributes, in the form's order."""
        return [self[name] for name in self.definitions]

    @property
    def attributes(self) -> dict[str, Any]:
        """What was filled in, by key, in its JSON type. What was left blank is not there: it takes
        nothing away. A box that is not ticked says no."""
        values = {
            definition.key: _as_json(self.cleaned_data.get(name))
            for name, definition in self.definitions.items()
        }
        return {key: value for key, value in values.items() if value not in (None, "")}


def entry_form(signup: SignupForm) -> type[EntryForm]:
    """The form's own class. Keys that are declared no more are passed over."""
    declared = AttributeDefinition.objects.filter(account=signup.account_id, key__in=signup.fields)
    return form_class(signup, {definition.key: definition for definition in declared})


def form_class(signup: SignupForm, declared: dict[str, AttributeDefinition]) -> type[EntryForm]:
    """Pure part of ``entry_form``."""
    known = {f"{PREFIX}{key}": declared[key] for key in signup.fields if key in declared}
    return type(
        "EntryForm",
        (EntryForm,),
        {
            **{name: _field(definition) for name, definition in known.items()},
            "signup": signup,
            "definitions": known,
        },
    )


def as_locale(text: Any) -> str:
    """What was given as a locale, blank where it is none."""
    return text if isinstance(text, str) and is_locale(text) else ""


def language_wanted(request: HttpRequest) -> str:
    """What the browser asks for first, as a person's locale; blank where it does not say."""
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", "")[:200])
    return as_locale(next((tag for tag, weight in accepted if tag != "*"), ""))


def _field(definition: AttributeDefinition) -> forms.Field:
    shared: dict[str, Any] = {"required": False, "label": str(definition)}
    match definition.kind:
        case Kind.NUMBER:
            # More digits than a JSON number keeps exactly are refused rather than rounded.
            return forms.DecimalField(
                **shared,
                max_digits=15,
                decimal_places=6,
                widget=forms.NumberInput(attrs={"step": "any"}),
            )
        case Kind.DATE:
            return forms.DateField(
                **shared,
                input_formats=["%Y-%m-%d"],
                widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
            )
        case Kind.BOOLEAN:
            return forms.BooleanField(**shared)
        case Kind.CHOICE:
            choices = [("", _("No answer")), *((choice, choice) for choice in definition.choices)]
            return forms.ChoiceField(**shared, choices=choices)
    return forms.CharField(**shared, max_length=LONGEST_TEXT)


def _as_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else json.loads(str(value))
    return value.isoformat() if isinstance(value, date) else value
