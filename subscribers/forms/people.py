"""Admin forms of this app: every entrance stores an address in its one written form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import (
    AdminBigIntegerFieldWidget,
    AdminEmailInputWidget,
    AdminIntegerFieldWidget,
    AdminTextInputWidget,
)
from django.core.exceptions import ValidationError
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from ..addresses import AddressError, lower, normalize
from ..conf import conf
from ..locales import validate_locale
from ..models import Account, Membership, Subscriber
from ..suppression import is_suppressed
from ..timezones import timezone_names

Status = Subscriber.Status
#: What staff may turn a status into. Unsubscribing is an action of its own, and only a new
#: confirmed double opt-in lifts it.
STATUS_CHOICES: dict[str | None, tuple[str, ...]] = {
    None: (Status.PENDING, Status.CONFIRMED),
    Status.PENDING: (Status.PENDING, Status.CONFIRMED),
    Status.CONFIRMED: (Status.CONFIRMED,),
    Status.UNSUBSCRIBED: (Status.UNSUBSCRIBED,),
}


class AddressField(forms.CharField):
    """An address as people type and paste it; cleaned to the form in which it is stored."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", 400)
        kwargs.setdefault("widget", AdminEmailInputWidget())
        super().__init__(**kwargs)

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if not text:
            return text
        try:
            return normalize(text)
        except AddressError as error:
            raise ValidationError(str(error)) from error


class WaitsField(forms.CharField):
    """Seconds separated by commas, as a list of whole numbers; each of them 1 second to a day."""

    shortest, longest, most = 1, 86_400, 20

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else ", ".join(map(str, value))

    def clean(self, value: Any) -> Any:
        return self._parsed(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return list(initial or ()) != self.clean(data)
        except ValidationError:
            return True

    def _parsed(self, text: str) -> list[int]:
        words = [word.strip() for word in text.split(",")] if text else []
        if len(words) > self.most:
            raise ValidationError(f"At most {self.most} waits, not {len(words)}.")
        return [self._wait(word) for word in words]

    def _wait(self, word: str) -> int:
        if not word:
            raise ValidationError("A wait is missing between two commas.")
        # Nine digits at most: longer ones are out of range, and may be longer than int() takes.
        if not re.fullmatch("[0-9]{1,9}", word):
            shown = word if len(word) <= 20 else f"{word[:17]}..."
            raise ValidationError(f"\u201c{shown}\u201d is no whole number of seconds.")
        if not self.shortest <= int(word) <= self.longest:
            raise ValidationError(
                f"{int(word)} is out of range: a wait is {self.shortest} to {self.longest} seconds "
                f"(a day)."
            )
        return int(word)


class DomainsField(forms.CharField):
    """Domain names separated by commas, as a list: in the form that addresses are stored in, each
    once. An ``@`` before one is taken for what it means."""

    most = 50

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else ", ".join(value)

    def clean(self, value: Any) -> Any:
        words = re.split(r"[\s,;]+", super().clean(value))
        domains = list(dict.fromkeys(self._domain(word) for word in words if word))
        if len(domains) > self.most:
            raise ValidationError(f"At most {self.most} domains, not {len(domains)}.")
        return domains

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return list(initial or ()) != self.clean(data)
        except ValidationError:
            return True

    def _domain(self, word: str) -> str:
        name = word.removeprefix("@").lower().rstrip(".")
        try:
            return normalize(f"a@{name}").rpartition("@")[2].lower()
        except AddressError:
            shown = word if len(word) <= 60 else f"{word[:57]}..."
            raise ValidationError(f"\u201c{shown}\u201d is no domain name.") from None


class LongSelect(forms.Select):
    """As Django's, of choices without groups: that one renders a template for each."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        chosen = self.format_value(value)
        options = format_html_join(
            "\n",
            '<option value="{}"{}>{}</option>',
            (
                (key, mark_safe(" selected") if str(key) in chosen else "", label)
                for key, label in self.choices
            ),
        )
        attributes = flatatt(self.build_attrs({**self.attrs, "name": name}, attrs))
        return format_html("<select{}>\n{}\n</select>", attributes, options)


class AccountForm(forms.ModelForm):
    other_domains = DomainsField(
        required=False,
        label="Other domains",
        max_length=10_000,
        widget=AdminTextInputWidget(attrs={"placeholder": "news.example.org"}),
        help_text=Account._meta.get_field("other_domains").help_text,
    )
    retry_waits = WaitsField(
        required=False,
        label="Waits (seconds)",
        widget=AdminTextInputWidget(attrs={"placeholder": "30, 120, 480, 1800, 3600"}),
        help_text=Account._meta.get_field("retry_waits").help_text,
    )

    class Meta:
        model = Account
        fields = "__all__"  # noqa: DJ007 (the admin's fieldsets choose)
        widgets = {
            "max_per_hour": AdminBigIntegerFieldWidget(),
            "max_bounce_rate": AdminIntegerFieldWidget(attrs={"step": "0.01"}),
            "max_complaint_rate": AdminIntegerFieldWidget(attrs={"step": "0.01"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer("timezone", timezone_names())
        self._offer("transport", sorted(conf.TRANSPORTS), unknown="not configured")

    def _offer(self, name: str, known: Sequence[str], unknown: str = "") -> None:
        """A choice of what there is, and of what is stored although it is no more."""
        if name in self.fields:
            stored = getattr(self.instance, name)
            choices = [(n, n) for n in known]
            if stored not in known:
                choices.insert(0, (stored, f"{stored} ({unknown})" if unknown else stored))
            self.fields[name].widget = LongSelect(choices=choices)

    def clean_transport(self) -> str:
        alias: str = self.cleaned_data["transport"]
        # One that is stored and configured no more may stay: other fields can still be changed.
        if alias not in conf.TRANSPORTS and alias != self.initial.get("transport"):
            raise ValidationError(f"There is no transport \u201c{alias}\u201d in the settings.")
        return alias


class SubscriberForm(forms.ModelForm):
    email = AddressField(label="Email")

    class Meta:
        model = Subscriber
        fields = "__all__"  # noqa: DJ007 (the admin's fieldsets choose)
        help_texts = {"locale": "Such as fr or pt-BR.", "timezone": "Such as Europe/Paris."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "status" in self.fields:
            allowed = STATUS_CHOICES[self.instance.status if self.instance.pk else None]
            self.fields["status"].choices = [  # type: ignore[attr-defined]
                choice for choice in Status.choices if choice[0] in allowed
            ]

    def clean_locale(self) -> str:
        locale: str = self.cleaned_data["locale"]
        # One that the host's own code stored may stay: other fields can still be changed.
        if locale and locale != self.initial.get("locale"):
            validate_locale(locale)
        return locale

    def clean_attributes(self) -> dict[str, Any]:
        attributes = self.cleaned_data["attributes"]
        if attributes in (None, "", []):
            return {}
        if not isinstance(attributes, dict):
            raise ValidationError('Attributes are an object: {"first_name": "Ann"}.')
        return attributes

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        account = self.instance.account if self.instance.pk else cleaned.get("account")
        email = cleaned.get("email")
        if account and email:
            self._check_address(account, email)
        if (
            cleaned.get("status") == Status.CONFIRMED
            and "status" in self.changed_data
            and not cleaned.get("consent_source", "").strip()
        ):
            self.add_error("consent_source", "Say where the consent came from, to confirm it.")
        return cleaned

    def _check_address(self, account: Account, email: str) -> None:
        same = Subscriber.objects.filter(account=account, email_lower=lower(email))
        if same.exclude(pk=self.instance.pk).exists():
            self.add_error("email", "This account has a subscriber with this address already.")
        elif (not self.instance.pk or "email" in self.changed_data) and is_suppressed(
            account, email
        ):
            self.add_error("email", "This address is suppressed: it must not get mail.")

    def _get_validation_exclusions(self) -> set[str]:
        # The address was validated by the rule of every entrance, which is wider than Django's
        # (RFC 6531 local parts), and looked up by ``_check_address``.
        return {*super()._get_validation_exclusions(), "email"}  # type: ignore[misc]


class MembershipForm(forms.ModelForm):
    class Meta:
        model = Membership
        fields = ("segment", "subscriber")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        segment, subscriber = cleaned.get("segment"), cleaned.get("subscriber")
        if segment and subscriber and segment.account_id != subscriber.account_id:
            self.add_error("segment", "The segment and the subscriber are of different accounts.")
        return cleaned
