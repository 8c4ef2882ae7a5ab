"""Withdraw, pause, resume and cancel, as pages and actions of the admin; what all verbs share.

Each is a POST that checks the permission on the object again, calls one verb of
``campaigns.lifecycle``, records who did it in the transaction of its effect and says what came
of it. What the verb refuses is a message with the state found, never an error page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_protect

from subscribers.admin.confirming import confirmation
from subscribers.admin_urls import url_if_any
from subscribers.audit import record

from .. import hooks, lifecycle
from ..errors import CampaignError
from ..models import Campaign
from .canceling import keeps, split
from .verb_words import (
    APPROVE,
    CANCEL,
    PAUSE,
    RESUME,
    VERBS,
    WITHDRAW,
    Verb,
    is_done_before,
    offered,
    refusal,
    summary,
)

__all__ = [
    "APPROVE",
    "CANCEL",
    "PAUSE",
    "RESUME",
    "VERBS",
    "WITHDRAW",
    "Verb",
    "VerbAdmin",
    "offered",
]

Status = Campaign.Status
log = logging.getLogger("sendonce.campaigns")

#: Open rows that are canceled while somebody waits for the page: some seconds.
ROWS_AT_ONCE = 100_000


class VerbAdmin(admin.ModelAdmin):
    """The verbs' views and actions, for ``CampaignAdmin``."""

    cancel_template = "admin/sendonce_campaigns/campaign/cancel.html"
    actions = ("pause_selected", "resume_selected", "cancel_selected")

    class Media:
        css: ClassVar = {
            "all": ("sendonce_subscribers/admin.css", "sendonce_campaigns/approve.css")
        }

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
        return {name for name in ("approve", "control") if self._allows(request, name, obj)}

    def _allows(self, request: HttpRequest, name: str, obj: Campaign | None) -> bool:
        """By the method that a host may have overridden, where there is one."""
        asked = getattr(self, f"has_{name}_permission", None)
        return bool(asked(request, obj) if asked else self._may(request, name, obj))

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
            return self._page(
                request, campaign, self.cancel_template, "Cancel campaign", keeps(campaign)
            )
        if self._decide(
            request, campaign, CANCEL, lambda: lifecycle.close(campaign, by=request.user)
        ):
            self._cancel_rows(request, campaign)
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
        for campaign in self._decide_each(
            request, queryset, CANCEL, lambda c: lifecycle.close(c, by=request.user)
        ):
            self._cancel_rows(request, campaign)
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
        if not self._allows(request, verb.permission, campaign):
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
        return self._back(request, campaign)

    def _decide_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        verb: Verb,
        act: Callable[[Campaign], Any],
    ) -> list[Campaign]:
        """Each by itself, told in one message; returns those on which it took effect."""
        done: list[Campaign] = []
        refused: list[tuple[str, str]] = []
        for campaign in queryset.select_related("account"):
            if not self._allows(request, verb.permission, campaign):
                refused.append((str(campaign), "you may not"))
                continue
            error = self._attempt(request, campaign, verb, lambda campaign=campaign: act(campaign))  # type: ignore[misc]
            if error is None:
                done.append(campaign)
            else:
                refused.append((str(campaign), refusal(verb, error)))
        level = messages.SUCCESS if not refused else messages.WARNING if done else messages.ERROR
        self.message_user(request, summary(verb, list(map(str, done)), refused), level)
        return done

    def _decide(
        self, request: HttpRequest, campaign: Campaign, verb: Verb, act: Callable[[], Any]
    ) -> bool:
        """Did the verb take effect? Says and logs so; or says why not."""
        error = self._attempt(request, campaign, verb, act)
        if error is not None:
            self._say_refused(request, campaign, verb, error)
            return False
        self.message_user(request, f"{campaign}: {verb.done.lower()}.", messages.SUCCESS)
        return True

    def _attempt(
        self,
        request: HttpRequest,
        campaign: Campaign,
        verb: Verb,
        act: Callable[[], Any],
        detail: Callable[[], dict[str, Any]] = dict,
    ) -> CampaignError | None:
        """Do it and record it, in one transaction; what refused it, and then nothing is changed.

        ``detail`` is asked after the act, and recorded with it.
        """
        try:
            with transaction.atomic():
                act()
                self._log(request, campaign, verb, detail())
        except CampaignError as error:
            return error
        return None

    def _say_refused(
        self, request: HttpRequest, campaign: Campaign, verb: Verb, error: CampaignError
    ) -> None:
        level = messages.INFO if is_done_before(verb, error) else messages.ERROR
        self.message_user(request, f"{campaign}: {refusal(verb, error)}.", level)

    def _log(
        self,
        request: HttpRequest,
        campaign: Campaign,
        verb: Verb,
        detail: dict[str, Any] | None = None,
    ) -> None:
        self.log_change(request, campaign, f"{verb.done}.")
        act = f"campaign.{verb.name}"
        told = {"campaign": campaign.pk, **(detail or {})}
        record(campaign.account, act, subject=str(campaign), detail=told, request=request)

    def _cancel_rows(self, request: HttpRequest, campaign: Campaign) -> None:
        """After the decision has committed: in one transaction with it, its rows would hold the
        campaign's gate closed, and every row locked, meanwhile. Nothing is sent of them anyway:
        many, and those that the database refuses now, are left to a sender."""
        try:
            few = split(hooks.counts(campaign.pk))["stopped"] <= ROWS_AT_ONCE
            if few:
                hooks.cancel_rows(campaign.pk)
        except DatabaseError:
            log.exception("campaign %s is canceled, its open rows not yet", campaign.pk)
            few = False
        if not few:
            self.message_user(
                request,
                f"{campaign}: nothing more of it leaves. Some of its recipients still show as "
                "open; a sender marks them as canceled.",
                messages.INFO,
            )

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

    def _named_url(self, name: str, campaign: Campaign) -> str:
        """The URL of one of the campaign's pages, "" where this site's admin has it not."""
        return self._reversed(f"{self.opts.app_label}_{self.opts.model_name}_{name}", campaign.pk)

    def _reversed(self, name: str, *args: Any) -> str:
        return url_if_any(self.admin_site.name, name, *args)

    def _back(self, request: HttpRequest, campaign: Campaign) -> HttpResponseRedirect:
        """To the page of this site that the button was on, by its ``next``; else the campaign's."""
        url = request.POST.get("next", "")
        safe = url_has_allowed_host_and_scheme(
            url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
        )
        return HttpResponseRedirect(url) if safe else self._to_change_page(campaign)

    def _to_change_page(self, campaign: Campaign) -> HttpResponseRedirect:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        url = reverse(name, args=[quote(campaign.pk)], current_app=self.admin_site.name)
        return HttpResponseRedirect(url)
