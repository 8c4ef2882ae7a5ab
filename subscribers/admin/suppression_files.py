"""Import and export on the suppression list's pages."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils import timezone

from ..audit import record
from ..downloads import csv_download
from ..forms.suppressions import EVERYWHERE, SuppressionExportForm, SuppressionFileForm
from ..models import Account, Suppression
from ..scoping import account_ids, as_id, visible
from ..suppressing.export import export_chunks, exportable
from ..suppressing.files import NAMED, FileReport, import_file
from ..suppressing.standing import is_live
from ..tabular import ImportRefused
from .parts import FilePages


class SuppressionFiles(FilePages):
    """For the suppressions' admin: ``import/`` and ``export/``."""

    import_template = "admin/sendonce_subscribers/suppression_import.html"
    export_template = "admin/sendonce_subscribers/suppression_export.html"

    # --- import ------------------------------------------------------------------------------

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_import_permission(request):
            raise PermissionDenied
        scopes = self._scopes(request)
        if request.method != "POST":
            return self._page(request, self.import_template, SuppressionFileForm(scopes=scopes))
        form = SuppressionFileForm(request.POST, request.FILES, scopes=scopes)
        report: FileReport | None = None
        if form.is_valid():
            given = form.cleaned_data
            try:
                report = import_file(
                    given["file"].file,
                    account=given["scope"],
                    file_name=given["file"].name,
                    reason=given["reason"],
                    request=request,
                    dry_run="check" in request.POST,
                )
            except ImportRefused as error:
                form.add_error("file", str(error))
        return self._page(request, self.import_template, form, report=report, named=NAMED)

    # --- export ------------------------------------------------------------------------------

    def export_view(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        if not self.has_export_permission(request):
            raise PermissionDenied
        scopes = self._scopes(request)
        if request.method != "POST":
            return self._page(request, self.export_template, SuppressionExportForm(scopes=scopes))
        form = SuppressionExportForm(request.POST, scopes=scopes)
        if not form.is_valid():
            return self._page(request, self.export_template, form)
        rows, account = self._rows(request, form)
        # Before the first byte leaves: a download that breaks off was one all the same.
        with transaction.atomic():
            for one in self._exported(request, account):
                mine = rows.filter(account=one) if one is not None else rows
                record(
                    one,
                    "suppression.export",
                    subject=str(one) if one else "",
                    detail={"entries": exportable(mine).count(), **form.cleaned_data},
                    request=request,
                )
        return csv_download(export_chunks(rows), f"suppressions-{timezone.now():%Y-%m-%d}")

    def _exported(self, request: HttpRequest, account: Account | None) -> list[Account | None]:
        """On whose record it goes: what staff take of several accounts, on that of each."""
        if account is not None or account_ids(request) is None:
            return [account]
        return list(visible(Account.objects.order_by("pk"), request, "pk"))

    def _rows(
        self, request: HttpRequest, form: SuppressionExportForm
    ) -> tuple[QuerySet[Suppression], Account | None]:
        given = form.cleaned_data
        rows = visible(Suppression.objects.all(), request, "account_id")
        account = None
        if given["scope"] not in ("", EVERYWHERE):
            mine = visible(Account.objects.all(), request, "pk")
            account = get_object_or_404(mine, pk=as_id(given["scope"]))
        if account is not None:
            rows = rows.filter(account=account)
        elif given["scope"] == EVERYWHERE:
            rows = rows.filter(account__isnull=True)
        if given["reason"]:
            rows = rows.filter(reason=given["reason"])
        if given["state"] == "live":
            rows = rows.filter(is_live())
        return rows, account

    # --- how ---------------------------------------------------------------------------------

    def _scopes(self, request: HttpRequest) -> list[tuple[str, str]]:
        """The lists that this user may write to and read, as value and label."""
        accounts = visible(Account.objects.order_by("name"), request, "pk")
        found = [(str(account.pk), account.name) for account in accounts]
        if account_ids(request) is None:
            found.insert(0, (EVERYWHERE, "All accounts (the list for all)"))
        return found

    def _page(
        self, request: HttpRequest, template: str, form: Form, **context: Any
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "title": "Import suppressions"
                if template == self.import_template
                else "Export suppressions",
                "opts": self.opts,
                "form": form,
                "media": self.media,
                **context,
            },
        )
