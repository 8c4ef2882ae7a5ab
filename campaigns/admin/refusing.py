"""What a form of the admin could not do, told on the page that it was about."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import capfirst

from subscribers.read_committed import read_committed

from ..errors import CampaignError, Conflict


class RefusingAdmin(admin.ModelAdmin):
    """A ``CampaignError`` of an edit or a deletion, which has changed nothing, is a message."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        try:
            try:
                return super().changeform_view(request, object_id, form_url, extra_context)
            except Conflict:
                # Somebody saved between the form's check and its write; the check finds it now.
                return super().changeform_view(request, object_id, form_url, extra_context)
        except CampaignError as error:
            return self._refused(request, object_id, f"Not saved: {error}.")

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        try:
            # Behind its lock it asks who needs what it deletes.
            with read_committed():
                return super().delete_view(request, object_id, extra_context)
        except CampaignError as error:
            return self._refused(request, object_id, f"{capfirst(str(error))}.")

    def _refused(
        self, request: HttpRequest, object_id: str | None, words: str
    ) -> HttpResponseRedirect:
        self.message_user(request, words, messages.ERROR)
        if object_id is None:
            return HttpResponseRedirect(request.get_full_path())
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        args = [quote(unquote(object_id))]
        return HttpResponseRedirect(reverse(name, args=args, current_app=self.admin_site.name))
