"""The forms of what an account's campaigns share: layouts and images."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from subscribers.models import Account

from . import images
from .content import ContentError
from .forms import SourceField, one_line
from .layout_edits import layout_problems
from .models import Image, Layout


class LayoutForm(forms.ModelForm):
    """A layout of one account. ``seen_version`` is the version that the editor started from."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Layout
        fields = "__all__"  # noqa: DJ007 (the admin's fieldsets choose)
        field_classes = {"body": SourceField}
        widgets = {
            "body": forms.Textarea(
                attrs={"rows": 24, "class": "sendonce-source", "spellcheck": "false"}
            )
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "seen_version" in self.fields:
            self.initial["seen_version"] = self.instance.version
        if "body" in self.fields:
            self.fields["body"].help_text = (
                "{% block content %}{% endblock %} is where a campaign's body goes, once. Other "
                "blocks, such as {% block title %}News{% endblock %}, hold what stands there "
                "unless a body says something else."
            )

    def clean_name(self) -> str:
        return one_line(self.cleaned_data["name"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk and cleaned.get("seen_version") != _version(self.instance):
            raise ValidationError(
                "Not saved: the layout was edited meanwhile. What you typed is still here; open "
                "the layout in another tab and carry your changes over.",
                code="conflict",
            )
        account: Account | None = (
            self.instance.account if self.instance.pk else cleaned.get("account")
        )
        if account is not None and {"body", "body_format"} <= cleaned.keys():
            written = {name: cleaned[name] for name in ("body_format", "body")}
            for problem in layout_problems(Layout(account=account, **written)):
                self.add_error("body", _told(problem))
        return cleaned


def _told(problem: ContentError) -> str:
    if problem.field == "layout" and problem.line is not None:
        return f"Line {problem.line}, column {problem.column}: {problem.message}"
    if problem.field == "layout":
        return problem.message
    return f"With a body in it: {problem.message}"


def _version(layout: Layout) -> int | None:
    found = Layout.objects.filter(pk=layout.pk).values_list("version", flat=True).first()
    return found


class ImageForm(forms.ModelForm):
    """The words about a picture: its file is for good, since mail shows it."""

    class Meta:
        model = Image
        fields = ("account", "name", "alt")

    def clean_name(self) -> str:
        return one_line(self.cleaned_data["name"])

    def clean_alt(self) -> str:
        return " ".join(self.cleaned_data["alt"].split())


class NewImageForm(ImageForm):
    """A new picture. Its ``cleaned_data["picture"]`` is an ``images.Picture``. ``not_stored`` says
    why the storage did not take it."""

    not_stored = ""
    picture = forms.FileField(
        label="File",
        help_text=f"{images.LIMITS} What a camera notes in it, such as the place, is taken out.",
        widget=forms.FileInput(attrs={"accept": ",".join(images.EXTENSIONS)}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].required = False
        self.fields["name"].help_text = "As the list of images shows it. Blank: the file's."

    def clean_picture(self) -> images.Picture:
        given = self.cleaned_data["picture"]
        if self.not_stored:
            raise ValidationError(self.not_stored)
        if not images.can_read():
            raise ValidationError("Nothing can be uploaded: Pillow is not installed.")
        if given.size > images.MAX_BYTES:
            raise ValidationError(f"This file is too large. Allowed: {images.LIMITS}")
        try:
            return images.read_picture(given.read())
        except images.ImageRefused as error:
            raise ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        given = self.files.get(self.add_prefix("picture"))
        if "name" in cleaned and not cleaned["name"] and given is not None:
            # Shown, never used as a name of a file.
            shown = "".join(char for char in str(given.name) if char.isprintable())
            cleaned["name"] = shown[:200] or "picture"
        return cleaned
