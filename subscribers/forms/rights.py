"""Forms of the page about one person's data."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from ..addresses import canonical, lower
from ..models import Account


class PersonForm(forms.Form):
    """Whose data. Any text can be looked up: what is no address today may be stored from before."""

    account = forms.ModelChoiceField(Account.objects.none(), label="Account")
    email = forms.CharField(max_length=400, label="Address", widget=AdminTextInputWidget())

    def __init__(self, *args: Any, accounts: QuerySet[Account], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen: Any = self.fields["account"]
        chosen.queryset = accounts

    def clean_email(self) -> str:
        email: str = canonical(self.cleaned_data["email"])
        if not email:
            raise ValidationError("There is no address in this.")
        return email


class ErasureForm(forms.Form):
    """What stands between a click and an erasure: the address typed again, and a reason."""

    typed = forms.CharField(
        max_length=400,
        label="Type the address",
        widget=AdminTextInputWidget({"autocomplete": "off"}),
    )
    words = forms.CharField(
        label="Reason",
        max_length=2000,
        widget=AdminTextareaWidget(attrs={"rows": 3}),
        help_text="Goes on record, with your name: \u201casked by letter of 3 May\u201d.",
    )

    def __init__(self, *args: Any, email: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.email = email

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if lower(canonical(typed)) != lower(canonical(self.email)):
            raise ValidationError(f"This is not {self.email}.")
        return typed
