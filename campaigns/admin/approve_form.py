"""The form of an approval: its moment, which page was seen, and that its warnings were
(``seen_warnings`` says when a warning is the one that was seen)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms

from subscribers.models import Account
from subscribers.timezones import zone_named

from ..digest import digest
from ..forms import ZonedDateTimeField
from ..models import Campaign
from ..preflight import Finding, Report
from .seen_warnings import all_seen, carried

#: An audience that grew or shrank by more than this part, and by more than a few people, is not
#: the one that the approver saw.
CHANGED_PART = 0.1
CHANGED_PEOPLE = 10

UNSEEN = "Not approved yet: there are warnings. Look at them, tick the box, and approve again."
OTHERS = (
    "Not approved yet: the warnings are not those that this page showed. Look at them, tick the "
    "box, and approve again."
)


class ApproveForm(forms.Form):
    """When it goes out, and which page was seen: an edit after it makes the approval void."""

    NOW, AT = "now", "at"

    seen_version = forms.IntegerField(widget=forms.HiddenInput)
    seen_digest = forms.CharField(widget=forms.HiddenInput)
    seen_people = forms.IntegerField(widget=forms.HiddenInput)
    seen_warnings = forms.CharField(widget=forms.HiddenInput, required=False)
    start = forms.ChoiceField(
        label="Start",
        choices=((NOW, "At once"), (AT, "At this time:")),
        widget=forms.RadioSelect,
        error_messages={"required": "Choose when it starts."},
    )
    scheduled_for = ZonedDateTimeField(label="Time", required=False)
    acknowledged = forms.BooleanField(label="I have seen the warnings", required=False)

    def __init__(self, *args: Any, account: Account, now: datetime, **kwargs: Any) -> None:
        """``now`` by the database's clock, which is what starts it."""
        super().__init__(*args, **kwargs)
        self.now = now
        when = self.fields["scheduled_for"]
        assert isinstance(when, ZonedDateTimeField)
        when.zone = zone = zone_named(account.timezone)
        when.help_text = f"Time zone {zone.key}."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("start") == self.AT and "scheduled_for" in cleaned:
            when = cleaned["scheduled_for"]
            if when is None:
                self.add_error("scheduled_for", "Say when.")
            elif when <= self.now:
                self.add_error("scheduled_for", "This is in the past.")
        return cleaned

    @property
    def is_incomplete(self) -> bool:
        """Does it not say which page was seen? A browser always does."""
        return any(self.errors.get(name) for name in ("seen_version", "seen_digest", "seen_people"))

    def moment(self) -> datetime | None:
        """The moment that was chosen; ``None`` for "at once", or where it is no moment."""
        chosen = getattr(self, "cleaned_data", {})
        if chosen.get("start") != self.AT:
            return None
        when: datetime | None = chosen.get("scheduled_for")
        return when

    def saw(self, campaign: Campaign) -> bool:
        """Is the campaign, as it is now, the one that was shown?"""
        seen = self.cleaned_data
        return bool(
            seen["seen_version"] == campaign.version and seen["seen_digest"] == digest(campaign)
        )

    def objection(self, report: Report) -> str:
        """Why this report is not what the approver agreed to, "": it is. Asked of what the page's
        own look finds, and of what is found behind the campaign's gate."""
        people = report.audience.reached if report.audience else 0
        seen: int = self.cleaned_data["seen_people"]
        if is_another_audience(seen, people):
            return (
                f"Not approved: the audience is another since this page was shown. It was {seen}, "
                f"it is {people} now. Look at it again."
            )
        if not report.warnings:
            return ""
        if not self.cleaned_data["acknowledged"]:
            return UNSEEN
        return "" if all_seen(report.warnings, self._shown()) else OTHERS

    def show(self, campaign: Campaign, report: Report) -> None:
        """Say of a page that is shown (again) what it shows; what was typed stays. The tick is
        taken off where there are warnings that it was not put to."""
        hidden = shown(campaign, report)
        if not self.is_bound:
            self.initial.update(hidden)
            return
        self.errors  # noqa: B018 (what was posted is judged before it is overwritten)
        fresh = all_seen(report.warnings, self._shown())
        data: dict[str, Any] = {name: self.data.get(name) for name in self.data}
        data.update({self.add_prefix(name): value for name, value in hidden.items()})
        if not fresh:
            data.pop(self.add_prefix("acknowledged"), None)
        self.data = data

    def _shown(self) -> str:
        return str(getattr(self, "cleaned_data", {}).get("seen_warnings", ""))


def shown(campaign: Campaign, report: Report) -> dict[str, Any]:
    """What the hidden fields say of a page about ``campaign`` as it is now."""
    return {
        "seen_version": campaign.version,
        "seen_digest": digest(campaign),
        "seen_people": report.audience.reached if report.audience else 0,
        "seen_warnings": carried(report.warnings),
    }


def codes(findings: Iterable[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings})


def is_another_audience(seen: int, now: int) -> bool:
    """Is an audience of ``now`` people not what somebody agreed to who saw ``seen``? Pure."""
    change = abs(now - seen)
    return change > CHANGED_PEOPLE and change > CHANGED_PART * seen
