"""The form that a campaign is written in."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.text import capfirst

from subscribers.models import Account
from subscribers.scoping import as_id
from subscribers.timezones import zone_named

from .content import TEXTS, ContentError, problems
from .models import Campaign, Layout


class MomentInput(forms.DateTimeInput):
    """The browser's own picker. It keeps seconds where there are some: a form saved untouched
    must change nothing."""

    input_type = "datetime-local"

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        if len(str(context["widget"]["value"] or "")) > len("2030-12-31T23:59"):
            context["widget"]["attrs"]["step"] = "1"
        return context


class ZonedDateTimeField(forms.DateTimeField):
    """A moment, typed and shown in ``zone``: the account's, not the server's or the browser's.

    A time that a clock change skips or repeats is refused.
    """

    def __init__(self, *, zone: ZoneInfo | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("widget", MomentInput())
        super().__init__(**kwargs)
        self.zone = zone or ZoneInfo("UTC")

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, datetime) or timezone.is_naive(value):
            return value
        local = value.astimezone(self.zone).replace(tzinfo=None)
        return local.isoformat(timespec="seconds" if local.second else "minutes")

    def to_python(self, value: Any) -> datetime | None:
        with timezone.override(self.zone):
            return super().to_python(value)


class SourceField(forms.CharField):
    """A body as it was written. Browsers post line ends as CR LF whatever they were given: that
    alone is no change, or saving an untouched form would take an approval back."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["strip"] = False
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n").replace("\r", "\n") if isinstance(text, str) else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.to_python(initial), data)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(value: str) -> str:
    """For a name, which lists, subjects of notices and logs show. Raises ``ValidationError``."""
    if _CONTROL.search(value):
        raise ValidationError("A name can't contain line ends or control characters.")
    return value


def told(problem: ContentError) -> str:
    """What is wrong, beginning with the place in its field; a layout's place is in the layout."""
    if problem.line is None:
        return problem.message
    where = f"line {problem.line}, column {problem.column}: {problem.message}"
    return f"In its {where}" if problem.field == "layout" else capfirst(where)


class CampaignForm(forms.ModelForm):
    """A campaign of one account: its segments, its time zone, its sender where blank.

    ``seen_version`` is the version the editor started from; an edit that came between is an
    error of the form, with what was typed still in it.
    """

    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    scheduled_for = ZonedDateTimeField(required=False)
    finish_by = ZonedDateTimeField(required=False)

    class Meta:
        model = Campaign
        fields = "__all__"  # noqa: DJ007 (the admin's fieldsets choose)
        field_classes = {"body": SourceField, "text_body": SourceField}
        # Of the moments as they are shown to whoever may not edit.
        help_texts = {
            f"{field.name}_shown": field.help_text
            for field in Campaign._meta.fields
            if field.name in ("scheduled_for", "finish_by")
        }
        widgets = {
            "body": forms.Textarea(
                attrs={"rows": 20, "class": "sendonce-source", "spellcheck": "true"}
            ),
            "text_body": forms.Textarea(
                attrs={"rows": 8, "class": "sendonce-source", "spellcheck": "true"}
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = self._find_account()
        if self.instance.pk and "seen_version" in self.fields:
            self.initial["seen_version"] = self.instance.version
        if self.account is None:
            return
        if "account" in self.fields:
            choice: Any = self.fields["account"]
            choice.queryset = choice.queryset.filter(pk=self.account.pk)
            choice.empty_label = None
        for name in ("segments", "exclude_segments"):
            if name in self.fields:
                choice = self.fields[name]
                choice.queryset = choice.queryset.filter(account=self.account).order_by("name")
        if "layout" in self.fields:
            choice = self.fields["layout"]
            choice.queryset = choice.queryset.filter(account=self.account).order_by("name")
            choice.label_from_instance = _layout_label
            choice.empty_label = "None"
        for name in ("scheduled_for", "finish_by"):
            when = self.fields.get(name)
            if isinstance(when, ZonedDateTimeField):
                when.zone = zone = zone_named(self.account.timezone)
                stored: Any = Campaign._meta.get_field(name)
                when.help_text = f"Time zone {zone.key}. {stored.help_text}"

    def _find_account(self) -> Account | None:
        if self.instance.pk:
            return self.instance.account
        given = self.data.get(self.add_prefix("account")) or self.initial.get("account")
        choice: Any = self.fields.get("account")
        found = as_id(getattr(given, "pk", given))
        if choice is None or found is None:
            return None
        account: Account | None = choice.queryset.filter(pk=found).first()
        return account

    def clean_name(self) -> str:
        return one_line(self.cleaned_data["name"])

    def clean_finish_by(self) -> datetime | None:
        when: datetime | None = self.cleaned_data["finish_by"]
        if when and "finish_by" in self.changed_data and when <= timezone.now():
            raise ValidationError("This is in the past.")
        return when

    def clean_scheduled_for(self) -> datetime | None:
        when: datetime | None = self.cleaned_data["scheduled_for"]
        if when and "scheduled_for" in self.changed_data and when <= timezone.now():
            raise ValidationError("This is in the past. Leave it blank to send at once.")
        return when

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk and cleaned.get("seen_version") != _version(self.instance):
            raise ValidationError(
                "Not saved: the campaign was edited meanwhile. What you typed is still here; "
                "open the campaign in another tab and carry your changes over.",
                code="conflict",
            )
        begins, ends = cleaned.get("scheduled_for"), cleaned.get("finish_by")
        changed = {"scheduled_for", "finish_by"} & {*self.changed_data}
        if begins and ends and ends <= begins and changed:
            self.add_error("finish_by", "This is not after it begins.")
        # A layout that was refused is not "none": its blocks would be errors of the body.
        if (
            self.account is not None
            and all(name in cleaned for name in TEXTS)
            and "layout" not in self.errors
        ):
            texts = {name: cleaned[name] for name in TEXTS}
            self._check_content(self.account, texts, cleaned.get("layout"))
        return cleaned

    def _check_content(
        self, account: Account, texts: dict[str, str], layout: Layout | None
    ) -> None:
        for problem in problems(Campaign(account=account, layout=layout, **texts)):
            field = problem.field if problem.field in self.fields else None
            self.add_error(field, told(problem))


def _layout_label(layout: Layout) -> str:
    return f"{layout.name}, {Layout.BodyFormat(layout.body_format).label}"


def _version(campaign: Campaign) -> int | None:
    found = Campaign.objects.filter(pk=campaign.pk).values_list("version", flat=True).first()
    return found
