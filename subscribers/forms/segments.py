"""Forms by which people come into a segment and out of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from ..models import Segment
from ..segments.members import PASTED, Pasted, read_pasted

#: Segments that a page offers to choose from.
OFFERED = 500


class PeopleForm(forms.Form):
    """Whom: a pasted list, or everybody in another segment of the same account."""

    addresses = forms.CharField(
        required=False,
        label="Addresses",
        widget=AdminTextareaWidget(attrs={"rows": 10, "class": "sendonce-source"}),
        help_text=f"One address a line, or commas or semicolons between them; {PASTED:,} at most.",
    )
    source = forms.ModelChoiceField(
        Segment.objects.none(),
        required=False,
        label="Or everybody in",
        empty_label="(no segment)",
        help_text="Those who are in it now.",
    )

    def __init__(self, *args: Any, segment: Segment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.segment = segment
        self.pasted = Pasted()
        others = Segment.objects.filter(account=segment.account_id).exclude(pk=segment.pk)
        self.fields["source"].queryset = others.order_by("name", "pk")  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        addresses, source = cleaned.get("addresses", ""), cleaned.get("source")
        if self.errors:
            return cleaned
        if bool(addresses) == bool(source):
            raise ValidationError(
                "Either paste addresses or choose a segment, not both."
                if source
                else "Paste addresses, or choose a segment."
            )
        if addresses:
            try:
                self.pasted = read_pasted(self.segment, addresses)
            except ValueError as error:
                self.add_error("addresses", str(error))
        return cleaned

    def origin(self) -> str:
        """Where the people were taken from, in words."""
        source: Segment | None = self.cleaned_data["source"]
        return f"the segment {source.name}" if source else "a pasted list"


class ChooseSegmentForm(forms.Form):
    """The segment to which an action applies."""

    segment = forms.ModelChoiceField(Segment.objects.none(), label="Segment")

    def __init__(self, *args: Any, segments: QuerySet[Segment], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["segment"]
        field.queryset = segments.select_related("account").order_by("account__name", "name", "pk")
        accounts = {segment.account_id for segment in field.queryset[:OFFERED]}
        if len(accounts) > 1:
            field.label_from_instance = lambda segment: f"{segment.name} ({segment.account.name})"
