"""Admin forms of the first page of an import, and of an export."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminRadioSelect, AdminTextInputWidget
from django.core.exceptions import ValidationError

from ..models import Account, Segment, Subscriber

NEW_SEGMENT = "A new one, named below"


class UploadForm(forms.Form):
    """Which file, into which segment, and whether its people have agreed to get mail."""

    GIVEN, UNKNOWN = "given", "unknown"
    CONSENT = (
        (
            GIVEN,
            "They have agreed to get this mail, and I can show it. New people become confirmed, "
            "and get campaigns from now on.",
        ),
        (
            UNKNOWN,
            "I can't show that. New people stay pending, and get no campaign before they have "
            "confirmed. No mail asks them to: they confirm by signing up at a form, or you import "
            "them again with their consent.",
        ),
    )
    EXISTING = (
        ("update", "The file completes and corrects what is known. Empty cells change nothing."),
        ("keep", "What is known stays as it is. They join the segment all the same."),
    )

    file = forms.FileField(
        label="File",
        help_text="CSV, in any encoding and with any delimiter, or Excel (.xlsx).",
        widget=forms.FileInput(
            attrs={"accept": ".csv,.tsv,.tab,.txt,.xlsx,text/csv,text/tab-separated-values"}
        ),
    )
    segment = forms.ModelChoiceField(
        Segment.objects.none(), required=False, label="Segment", empty_label=NEW_SEGMENT
    )
    new_segment = forms.CharField(
        required=False, max_length=200, label="New segment", widget=AdminTextInputWidget()
    )
    consent = forms.ChoiceField(label="Consent", choices=CONSENT, widget=AdminRadioSelect())
    consent_source = forms.CharField(
        required=False,
        max_length=200,
        label="Source of the consent",
        widget=AdminTextInputWidget(),
        help_text="Where and when they agreed, as you would show it to somebody who asks: "
        "\u201csign-up sheet at the fair in May 2026\u201d. Kept with each of them.",
    )
    existing = forms.ChoiceField(
        label="Known people", choices=EXISTING, initial="update", widget=AdminRadioSelect()
    )
    atomic = forms.BooleanField(
        required=False,
        label="All or nothing",
        help_text="One transaction for the whole file: if it stops halfway, nothing of it is "
        "stored. Otherwise it goes on where it stopped.",
    )

    def __init__(self, *args: Any, account: Account, may_add_segment: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        segments: Any = self.fields["segment"]
        segments.queryset = Segment.objects.filter(account=account).order_by("name")
        self.account = account
        if not may_add_segment:
            del self.fields["new_segment"]
            segments.required, segments.empty_label = True, "---------"

    def clean_new_segment(self) -> str:
        name: str = self.cleaned_data["new_segment"].strip()
        if name and Segment.objects.filter(account=self.account, name__iexact=name).exists():
            raise ValidationError("There is a segment of this name: choose it above.")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "new_segment" in self.fields and not {"segment", "new_segment"} & set(self.errors):
            segment, name = cleaned.get("segment"), cleaned.get("new_segment")
            if segment and name:
                self.add_error("new_segment", "Choose a segment or name a new one, not both.")
            elif not segment and not name:
                self.add_error("segment", "Choose a segment, or name a new one.")
        given = cleaned.get("consent") == self.GIVEN and "consent_source" not in self.errors
        if given and not cleaned["consent_source"].strip():
            self.add_error("consent_source", "Say where the consent came from.")
        return cleaned


class ExportForm(forms.Form):
    """Which of an account's people are exported."""

    EVERYBODY, NOT_SUPPRESSED, SUPPRESSED = "", "no", "yes"

    segment = forms.ModelChoiceField(
        Segment.objects.none(), required=False, label="Segment", empty_label="Everybody"
    )
    status = forms.ChoiceField(
        required=False, label="Status", choices=[("", "Any status"), *Subscriber.Status.choices]
    )
    suppressed = forms.ChoiceField(
        required=False,
        label="Suppressed addresses",
        choices=[
            (EVERYBODY, "With them: they are marked in a column"),
            (NOT_SUPPRESSED, "Without them"),
            (SUPPRESSED, "Only them"),
        ],
    )

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        segments: Any = self.fields["segment"]
        segments.queryset = Segment.objects.filter(account=account).order_by("name")

    def only_suppressed(self) -> bool | None:
        """``None``: both."""
        return {self.NOT_SUPPRESSED: False, self.SUPPRESSED: True}.get(
            self.cleaned_data["suppressed"]
        )
