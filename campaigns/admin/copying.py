"""A new draft made from a campaign: a button on its page, and an action for several."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path

from subscribers.audit import record

from ..copying import copy
from ..errors import CampaignError
from ..models import Campaign
from .verb_words import Verb
from .verbs import VerbAdmin

COPY = Verb("copy", "Copy", "Copied", "copy", tuple(Campaign.Status.values))
#: Campaigns that one action copies.
MOST = 50


class CopyPages(VerbAdmin):
    """The verb that copies a campaign. Whoever may add campaigns and see this one may."""

    actions: Any = (*VerbAdmin.actions, "copy_selected")

    def get_urls(self) -> list[Any]:
        view = self._protected(self.copy_view)
        return [
            path(f"<path:object_id>/{COPY.name}/", view, name=self._url_name(COPY)),
            *super().get_urls(),
        ]

    def has_copy_permission(self, request: HttpRequest, obj: Campaign | None = None) -> bool:
        return self.has_add_permission(request) and self.has_view_or_change_permission(request, obj)

    def more_actions(self, request: HttpRequest, campaign: Campaign) -> list[tuple[str, str, str]]:
        """What the page offers beside the verbs: label, URL and method."""
        if not self.has_copy_permission(request, campaign):
            return []
        return [(COPY.label, self._url(COPY, campaign), "post")]

    def copy_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        campaign = self._found(request, object_id, COPY)
        if not isinstance(campaign, Campaign):
            return campaign
        made = self._copy(request, campaign)
        return self._to_change_page(made or campaign)

    @admin.action(permissions=["copy"], description="Copy into new drafts")
    def copy_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        found = list(queryset.select_related(None)[: MOST + 1])
        if len(found) > MOST:
            self.message_user(
                request, f"Nothing was copied: {MOST} at most, please.", messages.ERROR
            )
            return None
        copies = [self._copy(request, campaign) for campaign in found]
        made = [campaign for campaign in copies if campaign is not None]
        if len(found) == 1 and made:
            return self._to_change_page(made[0])
        return None

    def _copy(self, request: HttpRequest, campaign: Campaign) -> Campaign | None:
        try:
            with transaction.atomic():
                made = copy(campaign, by=request.user)
                self.log_addition(request, made, f"Copied from “{campaign}”.")
                record(
                    made.account,
                    "campaign.copy",
                    subject=str(made),
                    detail={"campaign": made.pk, "from": campaign.pk},
                    request=request,
                )
        except CampaignError as error:
            self.message_user(request, f"{campaign}: {error}.", messages.ERROR)
            return None
        self.message_user(request, f"{campaign}: copied into this draft.", messages.SUCCESS)
        return made
