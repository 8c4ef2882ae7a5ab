"""The admin of images: uploading one, and what to write into a body to show it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat

from subscribers.admin import NothingOverwritten, StyledMedia
from subscribers.audit import record
from subscribers.scoping import AccountFilter, ScopedAdmin
from subscribers.timezones import zone_named

from ..images import NotStored, can_read, public_path, public_url, remove, snippets, storing
from ..library_forms import ImageForm, NewImageForm
from ..models import Image
from .account_choice import AccountFirst
from .moments import in_zone
from .refusing import RefusingAdmin

_NOT_STORED = "_sendonce_not_stored"


@admin.register(Image)
class ImageAdmin(StyledMedia, RefusingAdmin, NothingOverwritten, AccountFirst, ScopedAdmin):
    """A picture's file is for good: mail that was sent shows it. Its name and words may change."""

    form = ImageForm
    add_form = NewImageForm
    change_form_template = "admin/sendonce_campaigns/image/change_form.html"
    delete_confirmation_template = "admin/sendonce_campaigns/image/delete.html"
    question = "Whose picture is it? Campaigns of that account are offered it."
    list_display = ("name", "dimensions", "weight", "account", "uploaded")
    list_select_related = ("account",)
    list_filter = (AccountFilter,)
    sortable_by = ("name",)
    search_fields = ("name__istartswith",)
    search_help_text = "The beginning of a name."
    # One by one: each page says that mail shows it.
    actions = None

    class Media:
        css = {"all": ("sendonce_campaigns/compose.css",)}

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("account", "picture", "name", "alt")
        return ("account", "name", "alt", "dimensions", "weight", "content_type", "created")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fixed = ("account", "dimensions", "weight", "content_type", "created")
        return fixed if obj else ()

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kwargs.setdefault("form", self.form if obj is not None else self.add_form)
        form = super().get_form(request, obj, change, **kwargs)
        form.not_stored = getattr(request, _NOT_STORED, "")
        return form

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except NotStored as error:
            # Once more, and now the form says it beside its field, with what was typed.
            setattr(request, _NOT_STORED, str(error))
            return super().changeform_view(request, object_id, form_url, extra_context)

    @admin.display(description="pixels")
    def dimensions(self, obj: Image) -> str:
        return f"{obj.width} x {obj.height}"

    @admin.display(description="size")
    def weight(self, obj: Image) -> str:
        return filesizeformat(obj.size)

    @admin.display(description="uploaded")
    def uploaded(self, obj: Image) -> str:
        return in_zone(obj.created, obj.account)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            with transaction.atomic():
                obj.save(update_fields=["name", "alt"])
                self._record(request, obj, "image.edit")
        else:
            obj.created_by = request.user
            with storing(obj, form.cleaned_data["picture"]):
                self._record(request, obj, "image.upload")

    def _record(self, request: HttpRequest, obj: Image, verb: str) -> None:
        told = {"image": obj.pk, "sha256": obj.sha256, "size": obj.size}
        record(obj.account, verb, subject=str(obj), detail=told, request=request)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            told = {"image": obj.pk, "sha256": obj.sha256}
            record(obj.account, "image.delete", subject=str(obj), detail=told, request=request)
            remove(obj)

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is None:
            context["can_read"] = can_read()
        else:
            zone = zone_named(obj.account.timezone)
            context.update(
                public_url=public_url(obj),
                public_path=public_path(obj),
                snippets=snippets(obj),
                zone=zone,
            )
        return super().render_change_form(request, context, add, change, form_url, obj)
