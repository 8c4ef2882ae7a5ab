"""Withdraw, pause, resume and cancel, as pages and actions of the admin; what all verbs share.

Each is a POST that checks the permission on the object again, calls one verb of
``campaigns.lifecycle``, logs who did it and says what came of it. What the verb refuses is a
message with the state found, never an error page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.views.decorators.csrf import csrf_protect

from subscribers.admin.confirming import confirmation
from subscribers.audit import record

from .. import lifecycle
from ..errors import CampaignError
from ..models import Campaign

Status = Campaign.Status


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb as staff see it. ``asks``: a page stands before it, so its button is a link."""

    name: str
    label: str
    done: str
    permission: str
    states: tuple[str, ...]
    asks: bool = False


APPROVE = Verb("approve", "Approve", "Approved", "approve", (Status.DRAFT,), asks=True)
WITHDRAW = Verb(
    "withdraw", "Withdraw approval", "Approval withdrawn", "approve", (Status.APPROVED,)
)
PAUSE = Verb("pause", "Pause", "Paused", "control", (Status.SENDING,))
RESUME = Verb("resume", "Resume", "Resumed", "control", (Status.PAUSED,))
CANCEL = Verb(
    "cancel",
    "Cancel campaign",
    "Canceled",
    "control",
    (Status.APPROVED, Status.SENDING, Status.PAUSED),
    asks=True,
)
VERBS = (APPROVE, WITHDRAW, PAUSE, RESUME, CANCEL)


def offered(status: str, permissions: set[str]) -> list[Verb]:
    """The verbs that a campaign in ``status`` allows to somebody with ``permissions``. Pure."""
    return [verb for verb in VERBS if status in verb.states and verb.permission in permissions]


class VerbAdmin(admin.ModelAdmin):
    """The verbs' views and actions, for ``CampaignAdmin``."""

    cancel_template = "admin/sendonce_campaigns/campaign/cancel.html"
    actions = ("pause_selected", "resume_selected", "cancel_selected")

    def get_urls(self) -> list[Any]:
        views: dict[Verb, Callable[..., Any]] = {
            WITHDRAW: self.withdraw_view,
            PAUSE: self.pause_view,
            RESUME: self.resume_view,
            CANCEL: self.cancel_view,
        }
        return [
            path(f"<path:object_id>/{verb.name}/", self._protected(view), name=self._url_name(verb))
            for verb, view in views.items()
        ] + super().get_urls()

    # --- who may -----------------------------------------------------------------------------

    def has_approve_permission(self, request: HttpRequest, obj: Campaign | None = None) -> bool:
        """May approve and withdraw: a permission apart from changing, and seeing it at least."""
        return self._may(request, "approve", obj)

    def has_control_permission(self, request: HttpRequest, obj: Campaign | None = None) -> bool:
        """May pause, resume and cancel."""
        return self._may(request, "control", obj)

    def permissions_on(self, request: HttpRequest, obj: Campaign) -> set[str]:
        return {name for name in ("approve", "control") if self._may(request, name, obj)}

    def _may(self, request: HttpRequest, name: str, obj: Campaign | None) -> bool:
        allowed = request.user.has_perm(f"{self.opts.app_label}.{name}_campaign")
        return allowed and self.has_view_or_change_permission(request, obj)

    # --- views -------------------------------------------------------------------------------

    def withdraw_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._post_only(
            request, object_id, WITHDRAW, lambda c: lifecycle.withdraw(c, by=request.user)
        )

    def pause_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._post_only(
            request, object_id, PAUSE, lambda c: lifecycle.pause(c, by=request.user)
        )

    def resume_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._post_only(
            request, object_id, RESUME, lambda c: lifecycle.resume(c, by=request.user)
        )

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        campaign = self._found(request, object_id, CANCEL)
        if not isinstance(campaign, Campaign):
            return campaign
        if request.method != "POST":
            return self._page(request, campaign, self.cancel_template, "Cancel campaign", {})
        self._decide(request, campaign, CANCEL, lambda: lifecycle.cancel(campaign, by=request.user))
        return self._to_change_page(campaign)

    # --- actions -----------------------------------------------------------------------------

    @admin.action(permissions=["control"], description="Pause")
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._decide_each(request, queryset, PAUSE, lambda c: lifecycle.pause(c, by=request.user))

    @admin.action(permissions=["control"], description="Resume")
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._decide_each(request, queryset, RESUME, lambda c: lifecycle.resume(c, by=request.user))

    @admin.action(permissions=["control"], description="Cancel, for good")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        page = confirmation(
            self,
            request,
            queryset,
            title="Cancel campaigns",
            warning="A canceled campaign can't be resumed. What was not sent is not sent.",
            button="Cancel them",
        )
        if page is not None:
            return page
        self._decide_each(request, queryset, CANCEL, lambda c: lifecycle.cancel(c, by=request.user))
        return None

    # --- how ---------------------------------------------------------------------------------

    def _protected(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        def wrapper(request: HttpRequest, object_id: str) -> HttpResponse:
            return self.admin_site.admin_view(csrf_protect(view))(request, object_id)

        return update_wrapper(wrapper, view)

    def _found(self, request: HttpRequest, object_id: str, verb: Verb) -> Campaign | HttpResponse:
        """The campaign if this user may see it and do this; else the answer to give."""
        if request.method not in ("GET", "HEAD", "POST") or (
            request.method != "POST" and not verb.asks
        ):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"] if verb.asks else ["POST"])
        campaign = self.get_object(request, unquote(object_id))
        if not self._may(request, verb.permission, campaign):
            raise PermissionDenied
        if campaign is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
                request, self.opts, object_id
            )
        return campaign

    def _post_only(
        self, request: HttpRequest, object_id: str, verb: Verb, act: Callable[[Campaign], Any]
    ) -> HttpResponse:
        campaign = self._found(request, object_id, verb)
        if not isinstance(campaign, Campaign):
            return campaign
        self._decide(request, campaign, verb, lambda: act(campaign))
        return self._to_change_page(campaign)

    def _decide_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        verb: Verb,
        act: Callable[[Campaign], Any],
    ) -> None:
        for campaign in queryset:
            self._decide(request, campaign, verb, lambda campaign=campaign: act(campaign))  # type: ignore[misc]

    def _decide(
        self, request: HttpRequest, campaign: Campaign, verb: Verb, act: Callable[[], Any]
    ) -> bool:
        """Did the verb take effect? Says and logs so; or says why not."""
        try:
            if verb is CANCEL:
                # Its rows are canceled in many short transactions after the status: one around
                # all would hold the campaign's gate closed, and every row locked, meanwhile.
                act()
                with transaction.atomic():
                    self._log(request, campaign, verb)
            else:
                with transaction.atomic():
                    act()
                    self._log(request, campaign, verb)
        except CampaignError as error:
            self.message_user(request, f"{campaign}: {error}.", messages.ERROR)
            return False
        self.message_user(request, f"{campaign}: {verb.done.lower()}.", messages.SUCCESS)
        return True

    def _log(self, request: HttpRequest, campaign: Campaign, verb: Verb) -> None:
        self.log_change(request, campaign, f"{verb.done}.")
        act = f"campaign.{verb.name}"
        told = {"campaign": campaign.pk}
        record(campaign.account, act, subject=str(campaign), detail=told, request=request)

    # --- pages -------------------------------------------------------------------------------

    def _page(
        self,
        request: HttpRequest,
        campaign: Campaign,
        template: str,
        title: str,
        context: dict[str, Any],
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "title": title,
                "subtitle": str(campaign),
                "opts": self.opts,
                "original": campaign,
                "media": self.media,
                **context,
            },
        )

    def _url_name(self, verb: Verb) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{verb.name}"

    def _url(self, verb: Verb, campaign: Campaign) -> str:
        name = f"admin:{self._url_name(verb)}"
        return reverse(name, args=[quote(campaign.pk)], current_app=self.admin_site.name)

    def _to_change_page(self, campaign: Campaign) -> HttpResponseRedirect:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        url = reverse(name, args=[quote(campaign.pk)], current_app=self.admin_site.name)
        return HttpResponseRedirect(url)
