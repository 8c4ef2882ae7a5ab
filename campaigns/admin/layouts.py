"""The admin of layouts: an edit says which approvals it took back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from subscribers.admin import StyledMedia
from subscribers.audit import record
from subscribers.scoping import AccountFilter, ScopedAdmin

from ..layout_edits import EDITABLE_FIELDS, Edited, approved_with, delete_layout, edit_layout
from ..library_forms import LayoutForm
from ..models import Campaign, Layout
from ..previewing import example_of
from .account_choice import AccountFirst
from .frames import FramePreview
from .moments import in_zone
from .refusing import RefusingAdmin

#: Campaigns that a message or the page names.
NAMED = 10


@admin.register(Layout)
class LayoutAdmin(StyledMedia, RefusingAdmin, AccountFirst, FramePreview, ScopedAdmin):
    """Edits are compare-and-set on the version that was read, and take approvals back."""

    form = LayoutForm
    change_form_template = "admin/sendonce_campaigns/layout/change_form.html"
    question = "Whose layout is it? Campaigns of that account can have it."
    list_display = ("name", "body_format", "account", "edited")
    list_select_related = ("account",)
    list_filter = ("body_format", AccountFilter)
    sortable_by = ("name",)
    search_fields = ("name__istartswith",)
    search_help_text = "The beginning of a name."
    # One by one: each page says which campaigns have it.
    actions = None
    fields = ("account", "name", "body_format", "body")
    preview_draft = staticmethod(example_of)

    class Media:
        css = {"all": ("sendonce_campaigns/compose.css",)}

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        may = obj is not None and self.has_change_permission(request, obj)
        return (*self.fields, "seen_version") if may else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("account",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            obj is not None
            and super().has_delete_permission(request, obj)
            and not obj.campaigns.exists()
        )

    @admin.display(description="edited")
    def edited(self, obj: Layout) -> str:
        return in_zone(obj.changed, obj.account)

    # --- editing -----------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with transaction.atomic():
            if not change:
                obj.edited_by = request.user
                obj.save()
                self._record(request, obj, "layout.add")
            elif form.has_changed():
                given = form.cleaned_data
                edited = edit_layout(
                    obj,
                    version=given["seen_version"],
                    values={name: given[name] for name in EDITABLE_FIELDS if name in given},
                    by=request.user,
                )
                self._record(request, obj, "layout.edit")
                self._tell(request, obj, edited)

    def _tell(self, request: HttpRequest, layout: Layout, edited: Edited) -> None:
        for campaign in edited.withdrawn:
            self.log_change(request, campaign, "Approval withdrawn: its layout was edited.")
            record(
                layout.account,
                "campaign.withdraw",
                subject=str(campaign),
                reason=campaign.status_reason,
                detail={"campaign": campaign.pk, "layout": layout.pk},
                request=request,
            )
        if edited.withdrawn:
            have = "has" if len(edited.withdrawn) == 1 else "have"
            self.message_user(
                request,
                f"This edit took approvals back: {_named(edited.withdrawn)} {have} to be "
                "approved anew.",
                messages.WARNING,
            )
        if edited.started:
            self.message_user(
                request,
                f"Sending had begun, as it was approved: {_named(edited.started)}.",
                messages.WARNING,
            )

    def _record(self, request: HttpRequest, layout: Layout, verb: str) -> None:
        told = {"layout": layout.pk, "version": layout.version}
        record(layout.account, verb, subject=str(layout), detail=told, request=request)

    # --- deleting ----------------------------------------------------------------------------

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            self._record(request, obj, "layout.delete")
            delete_layout(obj)

    # --- the page ----------------------------------------------------------------------------

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            used = Campaign.objects.filter(layout=obj.pk).order_by("-pk")
            context["used_by"] = [
                (campaign, self._campaign_url(request, campaign)) for campaign in used[:NAMED]
            ]
            context["more"] = max(0, used.count() - NAMED)
            listed = self._page_of_campaigns(request, "changelist")
            context["more_url"] = f"{listed}?layout__id__exact={obj.pk}" if listed else ""
            approved = approved_with(obj)
            context["approved"] = approved[:NAMED]
            context["more_approved"] = max(0, len(approved) - NAMED)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _campaign_url(self, request: HttpRequest, campaign: Campaign) -> str:
        return self._page_of_campaigns(request, "change", campaign.pk)

    def _page_of_campaigns(self, request: HttpRequest, page: str, *args: Any) -> str:
        if not request.user.has_perm("sendonce_campaigns.view_campaign"):
            return ""
        name = f"admin:sendonce_campaigns_campaign_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)


def _named(campaigns: list[Campaign]) -> str:
    names = [f"“{campaign}”" for campaign in campaigns[:NAMED]]
    more = len(campaigns) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
