"""The form of an approval: its moment, and which page was seen."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone

from subscribers.models import Account

from ..forms import ZonedDateTimeField


class ApproveForm(forms.Form):
    """When it goes out, and which page was seen: an edit after it makes the approval void."""

    NOW, AT = "now", "at"

    seen_version = forms.IntegerField(widget=forms.HiddenInput)
    seen_digest = forms.CharField(widget=forms.HiddenInput)
    start = forms.ChoiceField(
        label="Start", choices=((NOW, "at once"), (AT, "at this time:")), widget=forms.RadioSelect
    )
    scheduled_for = ZonedDateTimeField(label="Time", required=False)

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        when = self.fields["scheduled_for"]
        assert isinstance(when, ZonedDateTimeField)
        when.zone = ZoneInfo(account.timezone)
        when.help_text = f"Time zone {account.timezone}."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("start") == self.AT and "scheduled_for" in cleaned:
            when = cleaned["scheduled_for"]
            if when is None:
                self.add_error("scheduled_for", "Say when.")
            elif when <= timezone.now():
                self.add_error("scheduled_for", "This is in the past.")
        return cleaned

    def moment(self) -> datetime | None:
        """The moment that was chosen; ``None`` for "at once"."""
        at = self.cleaned_data["start"] == self.AT
        when: datetime | None = self.cleaned_data["scheduled_for"] if at else None
        return when
