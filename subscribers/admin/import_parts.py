"""What the pages of an import share: who may, which import, how a page is made."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse

from ..admin_urls import url_if_any
from ..importing import jobs
from ..models import ImportJob


class ImportPages(admin.ModelAdmin):
    """For ``ImportJobAdmin`` and its parts."""

    def has_import_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.import_subscriber")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_import_permission(request) or super().has_view_permission(request, obj)

    def found(self, request: HttpRequest, object_id: int, *, to_view: bool = False) -> Any:
        """The import, if this user may work on it, or at least see it.

        Raises ``PermissionDenied``, for one that does not exist as for another account's.
        """
        job = self.get_object(request, str(object_id))
        may = self.has_view_permission if to_view else self.has_import_permission
        if job is None or not may(request):
            raise PermissionDenied
        return job

    def work(
        self, request: HttpRequest, job: ImportJob, budget: float, runner: UUID | None = None
    ) -> None:
        """Work on it within this request for about ``budget`` seconds; what is left waits for
        whoever comes next. ``runner``: as whom it has been taken."""
        try:
            jobs.run(job.pk, budget=budget, runner=runner)
        except (OperationalError, InterfaceError):
            self.message_user(
                request,
                "The connection to the database was lost. Nothing of the import is lost: it goes "
                "on where it stopped.",
                messages.WARNING,
            )

    def page(
        self, request: HttpRequest, job: ImportJob, template: str, title: str, context: Any
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "title": title,
                "subtitle": job.file_name,
                "opts": self.opts,
                "original": job,
                "job": job,
                "media": self.media,
                **context,
            },
        )

    def url_of(self, job: ImportJob, page: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[job.pk], current_app=self.admin_site.name)

    def url_named(self, name: str, *args: Any) -> str:
        """A page of this app's admin; blank where a host has not registered it."""
        return url_if_any(self.admin_site.name, f"{self.opts.app_label}_{name}", *args)
