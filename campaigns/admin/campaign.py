"""The admin of campaigns: the list, and composing one."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.text import capfirst

from subscribers.admin import StyledMedia
from subscribers.models import Account
from subscribers.scoping import AccountFilter, ScopedAdmin, as_id, visible

from .. import hooks
from ..deleting import delete, is_deletable
from ..editing import EDITABLE_FIELDS, EDITABLE_STATUSES, edit
from ..errors import CampaignError, Conflict, WrongState
from ..forms import CampaignForm
from ..models import Campaign
from .approving import ApprovePages
from .copying import CopyPages
from .previews import PreviewPages
from .verbs import VerbAdmin, offered

Status = Campaign.Status
WHAT_HAPPENS_NEXT = {
    Status.DRAFT: "Nothing is sent before somebody approves it.",
    Status.APPROVED: "A sender starts it when its time has come; an edit takes the approval back.",
    Status.SENDING: "It is being sent and can't be edited any more.",
    Status.PAUSED: "Nothing is handed over until it is resumed.",
    Status.SENT: "Nothing of it is open any more.",
    Status.CANCELED: "What was not sent is not sent.",
}


@admin.register(Campaign)
class CampaignAdmin(StyledMedia, ApprovePages, PreviewPages, CopyPages, VerbAdmin, ScopedAdmin):
    """Edits are compare-and-set on the version that was read; the status moves by verbs alone."""

    form = CampaignForm
    change_form_template = "admin/sendonce_campaigns/campaign/change_form.html"
    choose_account_template = "admin/sendonce_campaigns/campaign/choose_account.html"
    list_display = ("name", "status", "when", "audience", "account", "created_by")
    list_select_related = ("account", "created_by")
    list_filter = ("status", AccountFilter)
    sortable_by = ("name", "status")
    search_fields = ("name__istartswith", "subject__istartswith")
    search_help_text = "The beginning of a name or a subject."
    message_fields = ("subject", "preheader", "body_format", "body", "text_body")
    sender_fields = ("from_name", "from_email", "reply_to")
    fieldsets = (
        (None, {"fields": ("account", "name")}),
        ("What", {"fields": message_fields}),
        (
            "Sender",
            {
                "fields": sender_fields,
                "classes": ("collapse",),
                "description": "Blank fields are the account's.",
            },
        ),
        ("Who", {"fields": ("segments", "exclude_segments")}),
        ("When", {"fields": ("scheduled_for",)}),
    )

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
        return f"{word} {_local(moment, obj.account)}" if moment else "-"

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
            return given
        (title, first), *rest = given
        return ((title, {**first, "fields": (*first["fields"], "seen_version")}), *rest)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        kwargs["widget"] = CheckboxSelectMultiple(attrs={"class": "sendonce-choices"})
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        # Its buttons open another tenant's form as readily, and a list of boxes has no use of it.
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The account comes first: it says which segments there are, and the time zone."""
        if request.method == "GET" and self.has_add_permission(request):
            accounts = visible(Account.objects.order_by("name"), request, "pk")
            chosen = as_id(request.GET.get("account"))
            if chosen is None or not accounts.filter(pk=chosen).exists():
                return self._choose_account(request, list(accounts[:500]))
        return super().add_view(request, form_url, extra_context)

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
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Conflict:
            # Somebody saved between this form's check and its write; the check finds it now.
            return super().changeform_view(request, object_id, form_url, extra_context)
        except WrongState as error:
            self.message_user(request, f"Not saved: {error}.", messages.ERROR)
            return self._reload(object_id)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.created_by = request.user
            obj.save()
        elif form.has_changed():
            given = form.cleaned_data
            if edit(
                obj,
                version=given["seen_version"],
                values={name: given[name] for name in EDITABLE_FIELDS if name in given},
                segments=given.get("segments"),
                exclude_segments=given.get("exclude_segments"),
                by=request.user,
            ):
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

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except CampaignError as error:
            self.message_user(request, f"{capfirst(str(error))}.", messages.ERROR)
            return self._reload(object_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete(obj)

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
            context.update(self._panel(request, rows.get(pk=obj.pk)))
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _panel(self, request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
        permissions = self.permissions_on(request, campaign)
        return {
            "campaign": campaign,
            "zone": ZoneInfo(campaign.account.timezone),
            "next": WHAT_HAPPENS_NEXT[Status(campaign.status)],
            "verbs": [
                (verb, self._url(verb, campaign)) for verb in offered(campaign.status, permissions)
            ],
            "approvals": campaign.approvals.all()[:20],
            "ledger": self._ledger(request, campaign),
            "brakes": hooks.brakes(campaign.pk) if campaign.started_at else [],
            "waits": hooks.waits(campaign.pk),
        }

    def _ledger(self, request: HttpRequest, campaign: Campaign) -> dict[str, Any] | None:
        """The ledger's counts for the page, ``None`` before there is anything to count."""
        if campaign.started_at is None:
            return None
        counts = dict(hooks.counts(campaign.pk))
        if not counts:
            return None
        audience = counts.pop("audience")
        listed = self._sends_url(request)
        return {
            "counts": [
                (
                    name.replace("_", " "),
                    number,
                    f"{listed}?campaign={campaign.pk}&status__exact={name}"
                    if listed and number
                    else "",
                )
                for name, number in counts.items()
            ],
            "audience": audience,
            "rows": sum(counts.values()),
            "difference": audience - sum(counts.values()),
            "built": campaign.built_at is not None,
        }

    def _sends_url(self, request: HttpRequest) -> str:
        """The list of sends, where this site's admin has one and the user may see it."""
        if not request.user.has_perm("sendonce_sending.view_send"):
            return ""
        try:
            return reverse(
                "admin:sendonce_sending_send_changelist", current_app=self.admin_site.name
            )
        except NoReverseMatch:
            return ""

    def _choose_account(self, request: HttpRequest, accounts: list[Account]) -> HttpResponse:
        if len(accounts) == 1:
            query = request.GET.copy()
            query["account"] = str(accounts[0].pk)
            return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            self.choose_account_template,
            {
                **self.admin_site.each_context(request),
                "title": "Add campaign",
                "opts": self.opts,
                "accounts": accounts,
                "media": self.media,
            },
        )

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
        self.message_user(request, f"Not saved: {error}.", messages.ERROR)
        return self._reload(object_id)

    def _reload(self, object_id: str | None) -> HttpResponseRedirect:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        args = [quote(unquote(object_id or ""))]
        return HttpResponseRedirect(reverse(name, args=args, current_app=self.admin_site.name))


def _local(moment: Any, account: Account) -> str:
    local = timezone.localtime(moment, ZoneInfo(account.timezone))
    return f"{local.day} {local:%b %Y %H:%M} {local.tzname()}"
