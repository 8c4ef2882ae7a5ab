"""The admin's form of a sign-up form."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError

from .. import hooks
from ..joining.mail import URL_FIELD
from ..joining.origins import as_origin
from ..models import Account, AttributeDefinition, SignupForm
from .attributes import LinesField

#: Characters of what people read; the page stays small with it.
LONGEST_WORDS = 3000
_URL = re.compile(r"\{\{\s*confirm_url\s*(?:\|[^}]*)?\}\}")


class SignupFormForm(forms.ModelForm):
    """Of one account: its segments, and the attributes that it has declared."""

    intro = forms.CharField(
        required=False, max_length=LONGEST_WORDS, widget=AdminTextareaWidget(attrs={"rows": 4})
    )
    consent_text = forms.CharField(
        max_length=LONGEST_WORDS, widget=AdminTextareaWidget(attrs={"rows": 4})
    )
    allowed_origins = LinesField(
        required=False,
        label="Allowed sites",
        help_text="Sites that may show the form in a frame, and whose scripts may post to it: one "
        "per line, as in https://www.example.org.",
    )

    class Meta:
        model = SignupForm
        # The admin chooses; declared here, its URL fields would be made without their scheme.
        fields = ("account", "name", "slug")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("intro", "consent_text"):
            if name in self.fields:
                stored: Any = SignupForm._meta.get_field(name)
                self.fields[name].help_text = stored.help_text
        if "fields" in self.fields:
            self.fields["fields"].help_text = self._which_attributes()

    def clean_segments(self) -> Any:
        chosen = self.cleaned_data["segments"]
        account = self._account()
        if account is not None and any(one.account_id != account.pk for one in chosen):
            raise ValidationError("These segments are another account's.")
        return chosen

    def clean_fields(self) -> list[str]:
        keys: list[str] = self.cleaned_data["fields"]
        account = self._account()
        if account is None:
            return keys
        known = set(
            AttributeDefinition.objects.filter(account=account, key__in=keys).values_list(
                "key", flat=True
            )
        )
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ValidationError(
                f"The account has no attribute \u201c{unknown[0][:40]}\u201d. Define it first."
            )
        return keys

    def clean_allowed_origins(self) -> list[str]:
        found = []
        for line in self.cleaned_data["allowed_origins"]:
            origin = as_origin(line)
            if origin is None:
                raise ValidationError(
                    f"\u201c{line[:60]}\u201d is no site such as https://www.example.org."
                )
            found.append(origin)
        return list(dict.fromkeys(found))

    def clean_thanks_url(self) -> str:
        return self._web_page("thanks_url")

    def clean_welcome_url(self) -> str:
        return self._web_page("welcome_url")

    def clean_subject(self) -> str:
        return self._template("subject")

    def clean_body(self) -> str:
        body = self._template("body")
        if body and not _URL.search(body):
            raise ValidationError(f"Without {URL_FIELD} nobody could confirm.")
        return body

    def _web_page(self, name: str) -> str:
        url: str = self.cleaned_data[name]
        if url and not url.lower().startswith(("https://", "http://")):
            raise ValidationError("This is no web page: it must begin with https:// or http://.")
        return url

    def _template(self, name: str) -> str:
        text: str = self.cleaned_data[name]
        problem = hooks.check_template(text, False) if text else ""
        if problem:
            raise ValidationError(problem)
        return text

    def _account(self) -> Account | None:
        if self.instance.pk:
            return self.instance.account
        return self.cleaned_data.get("account")

    def _which_attributes(self) -> str:
        asked = "Keys of the attributes that it asks for, one per line, in order."
        account_id = self.instance.account_id or self.initial.get("account")
        if not account_id:
            return asked
        declared = AttributeDefinition.objects.filter(account=account_id).order_by("key")
        keys = list(declared.values_list("key", flat=True)[:100])
        return f"{asked} There are: {', '.join(keys)}." if keys else f"{asked} None is defined yet."
