"""Imports in the admin: their list, and each one's progress, result and rejected rows.

Whoever may import subscribers sees the imports of their accounts and works on them; the
permission to view imports alone shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models.functions import Now
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import path

from ..downloads import csv_download
from ..importing import jobs, rejects
from ..importing.report import in_words
from ..importing.standing import outcome, standing
from ..models import ImportJob
from ..scoping import AccountFilter, ReadOnly, ScopedAdmin
from .mapping import MappingPage
from .parts import StyledMedia
from .shown import moment, zone_of

Status = ImportJob.Status
#: Rejected rows that the page shows; the download has all.
SHOWN_REJECTS = 50
#: Seconds that "Go on here" works within its request: below the time-outs of web servers.
GO_ON = 20.0


@admin.register(ImportJob)
class ImportJobAdmin(StyledMedia, MappingPage, ReadOnly, ScopedAdmin):
    list_display = ("file_name", "state", "people", "segment", "account", "who", "when")
    list_select_related = ("account", "segment")
    list_filter = ("status", AccountFilter)
    sortable_by = ()
    search_fields = ("file_name__istartswith",)
    search_help_text = "The beginning of a file's name."
    change_list_template = "admin/sendonce_subscribers/import_change_list.html"
    progress_template = "admin/sendonce_subscribers/import_progress.html"
    state_template = "admin/sendonce_subscribers/import_state.html"
    cancel_template = "admin/sendonce_subscribers/import_cancel.html"

    # --- the list ----------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> Any:
        # By the database's clock a lease runs out.
        return super().get_queryset(request).annotate(database_now=Now()).defer("preview")

    @admin.display(description="status")
    def state(self, obj: Any) -> str:
        return standing(obj, jobs.step(obj), obj.database_now).title

    @admin.display(description="people")
    def people(self, obj: ImportJob) -> str:
        found = jobs.report(obj)
        parts = (
            (found.imported, "new"),
            (found.updated, "updated"),
            (found.rejected, "not taken"),
        )
        return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "-"

    @admin.display(description="by")
    def who(self, obj: ImportJob) -> str:
        return obj.by_name or "-"

    @admin.display(description="when")
    def when(self, obj: ImportJob) -> str:
        return moment(obj.created, zone_of(obj, self.account_lookup))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {"upload_url": self._upload_url(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    # --- one import --------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        views: dict[str, Callable[..., Any]] = {
            "mapping": self.mapping_view,
            "state": self.state_view,
            "go_on": self.go_on_view,
            "cancel": self.cancel_view,
            "rejects": self.rejects_view,
        }
        names = f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path(
                f"<int:object_id>/{name.replace('_', '-')}/",
                self.admin_site.admin_view(view),
                name=f"{names}_{name}",
            )
            for name, view in views.items()
        ] + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        job = self.get_object(request, object_id)
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request, job):
            raise PermissionDenied  # an import is never edited
        if job is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
                request, self.opts, object_id
            )
        if job.status == Status.DRAFT and self.has_import_permission(request):
            return HttpResponseRedirect(self.url_of(job, "mapping"))
        context = self._state(request, job)
        title = "Progress of an import" if context["standing"].is_open else "Result of an import"
        return self.page(request, job, self.progress_template, title, context)

    def state_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """The part of the page that changes, for the script that follows it."""
        job = self.found(request, object_id, to_view=True)
        request.current_app = self.admin_site.name
        answer = TemplateResponse(request, self.state_template, self._state(request, job))
        answer["Cache-Control"] = "no-store"
        return answer

    def go_on_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        job = self.found(request, object_id)
        if job.status == Status.QUEUED:
            self.work(request, job, GO_ON)
        return HttpResponseRedirect(self.url_of(job, "change"))

    def cancel_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        job = self.found(request, object_id)
        if request.method == "POST":
            who = request.user
            if jobs.cancel(job.pk, by=who, by_name=who.get_username(), request=request):
                self.message_user(request, "The import is canceled.", messages.SUCCESS)
            else:
                self.message_user(
                    request, "It had ended already: nothing was canceled.", messages.WARNING
                )
            return HttpResponseRedirect(self.url_of(job, "change"))
        is_open = job.status in (Status.DRAFT, Status.QUEUED)
        context = {"is_open": is_open, "so_far": in_words(job)}
        return self.page(request, job, self.cancel_template, "Cancel the import", context)

    def rejects_view(self, request: HttpRequest, object_id: int) -> HttpResponseBase:
        job = self.found(request, object_id, to_view=True)
        return csv_download(rejects.lines(job), f"{job.file_name.rsplit('.', 1)[0]}-rejects")

    def _state(self, request: HttpRequest, job: Any) -> dict[str, Any]:
        has_file = job.staged_at is not None or job.chunks.exists()
        found = standing(job, jobs.step(job), job.database_now, has_file=has_file)
        report = jobs.report(job)
        shown = [] if found.is_open else list(job.rejects.order_by("line")[:SHOWN_REJECTS])
        return {
            "opts": self.opts,
            "job": job,
            "standing": found,
            "report": report,
            "outcome": outcome(report),
            "rejects": shown,
            "more_rejects": report.rejected - len(shown) if shown else 0,
            "may_work": self.has_import_permission(request),
            "people_url": self._people_url(request, job),
            "upload_url": self._upload_url(request),
        }

    def _people_url(self, request: HttpRequest, job: ImportJob) -> str:
        """The people of its segment, where this user may see them."""
        allowed = request.user.has_perm(f"{self.opts.app_label}.view_subscriber")
        url = self.url_named("subscriber_changelist") if allowed and job.segment_id else ""
        return f"{url}?segment={job.segment_id}" if url else ""

    def _upload_url(self, request: HttpRequest) -> str:
        return self.url_named("subscriber_import") if self.has_import_permission(request) else ""
