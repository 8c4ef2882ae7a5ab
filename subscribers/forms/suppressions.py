"""Forms of the suppression list."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminEmailInputWidget, AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.utils import timezone

from ..addresses import AddressError, lower, normalize
from ..models import Account, Subscriber, Suppression
from ..suppression import LATEST, erased_among

#: Reasons that staff can give by hand; an erasure is more than an entry in this list.
BY_HAND = (
    Suppression.Reason.MANUAL,
    Suppression.Reason.UNSUBSCRIBED,
    Suppression.Reason.COMPLAINT,
    Suppression.Reason.HARD_BOUNCE,
)


#: The list for all accounts, among the choices of whoever may write to it.
EVERYWHERE = "all"


class ListField(forms.ChoiceField):
    """Whose list; cleaned to the account, ``None`` for the one for all. ``scopes``: value and
    label. Never chosen by leaving it blank."""

    def __init__(self, *, scopes: list[tuple[str, str]], **kwargs: Any) -> None:
        choices = scopes if len(scopes) == 1 else [("", "---------"), *scopes]
        super().__init__(choices=choices, **kwargs)

    def clean(self, value: Any) -> Any:
        chosen = super().clean(value)
        if chosen == EVERYWHERE:
            return None
        account = Account.objects.filter(pk=chosen).first()
        if account is None:
            raise ValidationError("This account was deleted meanwhile.")
        return account


class SuppressionForm(forms.ModelForm):
    email = forms.CharField(max_length=400, label="Email", widget=AdminEmailInputWidget())

    class Meta:
        model = Suppression
        fields = ("account", "email", "reason", "evidence", "expires")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "reason" in self.fields:
            self.fields["reason"].choices = [  # type: ignore[attr-defined]
                (reason.value, reason.label) for reason in BY_HAND
            ]

    def clean_email(self) -> str:
        typed = self.cleaned_data["email"].strip()
        try:
            return normalize(typed)
        except AddressError as error:
            # Saved past every entrance by the host's own code: it can be suppressed all the same.
            account = self.cleaned_data.get("account")
            stored = Subscriber.objects.filter(email_lower=lower(typed.replace("\0", "")))
            # Of an account that was not valid nothing is told.
            valid = "account" in self.cleaned_data
            if valid and (stored.filter(account=account) if account else stored).exists():
                return typed
            raise ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        # An account that was not valid is not "all accounts".
        if cleaned.get("email") and "account" not in self.errors:
            account = cleaned.get("account")
            if erased_among(account, [cleaned["email"]]):
                self.add_error(
                    "email",
                    "This person was erased on request. The address is suppressed already, by a "
                    "hash of it, and is not written down again.",
                )
        expires, reason = cleaned.get("expires"), cleaned.get("reason")
        if expires and reason in (Suppression.Reason.UNSUBSCRIBED, Suppression.Reason.COMPLAINT):
            self.add_error("expires", "For this reason it can't expire.")
        elif expires and expires <= timezone.now():
            self.add_error("expires", "This is in the past.")
        elif expires and expires >= LATEST:
            self.add_error("expires", "This is too far away; leave it empty for \u201cnever\u201d.")
        return cleaned

    def validate_unique(self) -> None:
        """An address that is suppressed already is no error: the stronger reason stays."""

    def validate_constraints(self) -> None:
        """As ``validate_unique``."""


class ReasonForm(forms.Form):
    """The words that go on record with an act. ``seen``: what its page showed."""

    words = forms.CharField(
        label="Reason", max_length=2000, widget=AdminTextareaWidget(attrs={"rows": 3})
    )
    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput())

    def __init__(self, *args: Any, help_text: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["words"].help_text = help_text


class SuppressionFileForm(forms.Form):
    """A file of addresses, and whose list it goes to. ``scopes``: value and label."""

    #: Bytes; a larger file is the command's.
    LARGEST = 5_000_000

    file = forms.FileField(
        label="File",
        help_text="CSV or Excel (.xlsx), with a column \u201cemail\u201d and, if you like, "
        "\u201creason\u201d, \u201cevidence\u201d and \u201cexpires\u201d.",
        widget=forms.FileInput(
            attrs={"accept": ".csv,.tsv,.tab,.txt,.xlsx,text/csv,text/tab-separated-values"}
        ),
    )
    scope = ListField(label="Suppress for", scopes=[])
    reason = forms.ChoiceField(
        label="Reason",
        choices=[(reason.value, reason.label) for reason in BY_HAND],
        help_text="Of the rows that name none.",
    )

    def __init__(self, *args: Any, scopes: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scope: Any = self.fields["scope"]
        scope.choices = scopes if len(scopes) == 1 else [("", "---------"), *scopes]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > self.LARGEST:
            raise ValidationError(
                f"The file has {file.size // 1_000_000} MB; {self.LARGEST // 1_000_000} are the "
                "most here. The command import_suppressions takes any."
            )
        return file


class SuppressionExportForm(forms.Form):
    """Which entries are exported."""

    scope = forms.ChoiceField(label="List", required=False)
    reason = forms.ChoiceField(
        label="Reason",
        required=False,
        choices=[("", "Any reason"), *((reason.value, reason.label) for reason in BY_HAND)],
    )
    state = forms.ChoiceField(
        label="Expired entries",
        required=False,
        choices=[("live", "Without them"), ("", "With them")],
        initial="live",
    )

    def __init__(self, *args: Any, scopes: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scope: Any = self.fields["scope"]
        scope.choices = [("", "All that you may see"), *scopes] if len(scopes) != 1 else scopes
