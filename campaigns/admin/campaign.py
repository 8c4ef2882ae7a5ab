"""The admin of campaigns: the list, and composing one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse

from subscribers.admin import StyledMedia
from subscribers.audit import record
from subscribers.models import Account, AttributeDefinition
from subscribers.scoping import AccountFilter, ScopedAdmin
from subscribers.templatetags.sendonce_numbers import thousands
from subscribers.timezones import zone_named

from .. import composing
from ..deleting import delete, is_deletable
from ..editing import EDITABLE_FIELDS, EDITABLE_STATUSES, edit
from ..errors import WrongState
from ..forms import CampaignForm
from ..models import Campaign, Image
from .account_choice import AccountFirst
from .approving import ApprovePages
from .copying import CopyPages
from .moments import both, in_zone
from .panel import CampaignPanel
from .previews import PreviewPages
from .refusing import RefusingAdmin
from .verbs import VerbAdmin

Status = Campaign.Status


@admin.register(Campaign)
class CampaignAdmin(
    StyledMedia,
    CampaignPanel,
    ApprovePages,
    PreviewPages,
    CopyPages,
    VerbAdmin,
    RefusingAdmin,
    AccountFirst,
    ScopedAdmin,
):
    """Edits are compare-and-set on the version that was read; the status moves by verbs alone."""

    form = CampaignForm
    change_form_template = "admin/sendonce_campaigns/campaign/change_form.html"
    question = (
        "Whose campaign is it? The account says which segments there are, who it is from, and the "
        "time zone."
    )
    list_display = ("name", "status", "when", "counted", "account", "created_by")
    list_select_related = ("account", "created_by")
    list_filter = ("status", AccountFilter)
    sortable_by = ("name", "status")
    search_fields = ("name__istartswith", "subject__istartswith")
    search_help_text = "The beginning of a name or a subject."
    message_fields = ("subject", "preheader", "body_format", "layout", "body", "text_body")
    sender_fields = ("from_name", "from_email", "reply_to")
    fieldsets = (
        (None, {"fields": ("account", "name")}),
        ("What", {"fields": message_fields}),
        ("Who", {"fields": ("segments", "exclude_segments")}),
        ("When", {"fields": ("scheduled_for", "finish_by")}),
        (
            "Sender",
            {
                "fields": sender_fields,
                "classes": ("collapse",),
                "description": "Blank fields are the account's.",
            },
        ),
    )

    class Media:
        css = {"all": ("sendonce_campaigns/compose.css",)}
        js = ("sendonce_campaigns/compose.js",)

    # --- the list ----------------------------------------------------------------------------

    @admin.display(description="when")
    def when(self, obj: Campaign) -> str:
        """The moment that says most about its status, in the account's time zone."""
        word, moment = {
            Status.DRAFT: ("planned for", obj.scheduled_for),
            Status.APPROVED: ("starts", obj.scheduled_for),
            Status.SENDING: ("since", obj.started_at),
            Status.PAUSED: ("since", obj.started_at),
            Status.SENT: ("finished", obj.finished_at),
        }.get(Status(obj.status), ("", None))
        return f"{word} {in_zone(moment, obj.account)}" if moment else "-"

    @admin.display(description="audience")
    def counted(self, obj: Campaign) -> str:
        """A draft is for somebody too: 0 would say nobody."""
        return thousands(obj.audience) if obj.started_at else "-"

    # --- editing -----------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and (
            obj is None or obj.status in EDITABLE_STATUSES
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and super().has_delete_permission(request, obj) and is_deletable(obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("account",) if obj else ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        given = super().get_fieldsets(request, obj)
        if obj is None or not self.has_change_permission(request, obj):
            return [(title, _moments_shown(of)) for title, of in given] if obj else given
        (title, first), *rest = given
        return ((title, {**first, "fields": (*first["fields"], "seen_version")}), *rest)

    @admin.display(description="scheduled for")
    def scheduled_for_shown(self, obj: Campaign) -> str:
        return _moment(obj, obj.scheduled_for)

    @admin.display(description="finish by")
    def finish_by_shown(self, obj: Campaign) -> str:
        return _moment(obj, obj.finish_by)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        kwargs["widget"] = CheckboxSelectMultiple(attrs={"class": "sendonce-choices"})
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        if request.method == "POST" and object_id is not None:
            refused = self._refuse_late_edit(request, object_id)
            if refused is not None:
                return refused
        return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.created_by = request.user
            obj.save()
            self._record(request, obj, "add")
        elif form.has_changed():
            given = form.cleaned_data
            voids = edit(
                obj,
                version=given["seen_version"],
                values={name: given[name] for name in EDITABLE_FIELDS if name in given},
                segments=given.get("segments"),
                exclude_segments=given.get("exclude_segments"),
                by=request.user,
            )
            self._record(request, obj, "edit", fields=sorted(form.changed_data))
            if voids:
                self.message_user(
                    request,
                    "This edit took the approval back: the campaign is a draft again and has to "
                    "be approved anew.",
                    messages.WARNING,
                )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        # An edit wrote the segments with the version; writing them again would be outside it.
        if not change:
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._record(request, obj, "delete")
        delete(obj)

    def _record(self, request: HttpRequest, obj: Campaign, act: str, **more: Any) -> None:
        """In the transaction of the act, which is the form's own."""
        told = {"campaign": obj.pk, **more}
        record(obj.account, f"campaign.{act}", subject=str(obj), detail=told, request=request)

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
            # As stored: a form with errors has written what was typed into the instance.
            rows = self.get_queryset(request).select_related("account", "created_by")
            stored = rows.get(pk=obj.pk)
            context.update(self.panel(request, stored))
            context["more_actions"] = self.more_actions(request, stored)
        account = getattr(context["adminform"].form, "account", None)
        if account is not None and "body" in context["adminform"].form.fields:
            context["compose"] = self._compose(request, account)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _compose(self, request: HttpRequest, account: Account) -> dict[str, Any]:
        """What stands beside the body: what may be written into it."""
        may_upload = request.user.has_perm(f"{self.opts.app_label}.add_image")
        upload = self._reversed(f"{self.opts.app_label}_image_add") if may_upload else ""
        may_see = request.user.has_perm(f"{self.opts.app_label}.view_image") or may_upload
        return {
            "fields": composing.merge_fields(account),
            "more_fields": composing.more_fields(account),
            "fields_url": self._list_of(request, AttributeDefinition, account),
            "filters": composing.FILTERS,
            "images": composing.images(account) if may_see else [],
            "more_images": composing.more_images(account) if may_see else 0,
            "images_url": self._list_of(request, Image, account),
            "may_see_images": may_see,
            "upload_url": f"{upload}?account={account.pk}" if upload else "",
        }

    def _list_of(self, request: HttpRequest, model: Any, account: Account) -> str:
        """The list of an account's rows of a model; "" where this user, or this site, has none."""
        opts = model._meta
        if not request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}"):
            return ""
        listed = self._reversed(f"{opts.app_label}_{opts.model_name}_changelist")
        return f"{listed}?account={account.pk}" if listed else ""

    def _refuse_late_edit(self, request: HttpRequest, object_id: str) -> HttpResponse | None:
        """An editor whose campaign began to be sent meanwhile is told so."""
        found = self.get_object(request, unquote(object_id))
        if (
            found is None
            or found.status in EDITABLE_STATUSES
            or not super().has_change_permission(request, found)
        ):
            return None
        error = WrongState("edit", found.status, EDITABLE_STATUSES)
        return self._refused(request, object_id, f"Not saved: {error}.")


def _moment(campaign: Campaign, moment: datetime | None) -> str:
    return both(moment, zone_named(campaign.account.timezone)) if moment else "-"


def _moments_shown(of: Any) -> Any:
    """A fieldset for reading: its moments in the account's zone, and not in the server's."""
    shown = {name: f"{name}_shown" for name in ("scheduled_for", "finish_by")}
    fields = of["fields"]
    return {**of, "fields": [shown.get(f, f) if isinstance(f, str) else f for f in fields]}
