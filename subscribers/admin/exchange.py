"""Import and export on the subscribers' list: buttons, the upload, the download.

Names and permissions are those that ``django-import-export`` uses, so that a host finds them
where it looks; its code is not used, because it holds every row of a file in memory.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from ..audit import record
from ..downloads import csv_download
from ..exporting import count_people, export_chunks
from ..forms.imports import ExportForm, UploadForm
from ..importing.drafts import begin
from ..models import Account, Segment
from ..scoping import as_id, visible
from ..tabular.records import ImportRefused
from .parts import FilePages, staff_name

#: Accounts that a page offers to choose from.
OFFERED = 500


class Exchange(FilePages):
    """For the subscribers' admin: ``import/`` and ``export/``."""

    change_list_template = "admin/sendonce_subscribers/subscriber_change_list.html"
    import_template = "admin/sendonce_subscribers/import_upload.html"
    export_template = "admin/sendonce_subscribers/export.html"
    choose_account_template = "admin/sendonce_subscribers/choose_account.html"

    # --- import ------------------------------------------------------------------------------

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_import_permission(request):
            raise PermissionDenied
        account = self._exchange_account(request)
        if account is None:
            return self._exchange_choose_account(
                request, "Import", "Whose people does the file hold?"
            )
        may_add = request.user.has_perm(f"{self.opts.app_label}.add_segment")
        if request.method != "POST":
            chosen = {"segment": as_id(request.GET.get("segment")), "existing": "update"}
            form = UploadForm(account=account, may_add_segment=may_add, initial=chosen)
            return self._exchange_page(
                request, self.import_template, "Import people", account, form
            )
        form = UploadForm(request.POST, request.FILES, account=account, may_add_segment=may_add)
        if form.is_valid():
            given = form.cleaned_data
            try:
                job = begin(
                    account,
                    given["segment"] or given["new_segment"],
                    given["file"].chunks(),
                    file_name=given["file"].name,
                    choices={
                        "confirmed": given["consent"] == form.GIVEN,
                        "consent_source": given["consent_source"].strip(),
                        "existing": given["existing"],
                        "atomic": given["atomic"],
                    },
                    request=request,
                )
            except ImportRefused as error:
                form.add_error("file", str(error))
            else:
                url = f"admin:{self.opts.app_label}_importjob_mapping"
                return HttpResponseRedirect(
                    reverse(url, args=[job.pk], current_app=self.admin_site.name)
                )
        return self._exchange_page(request, self.import_template, "Import people", account, form)

    # --- export ------------------------------------------------------------------------------

    def export_view(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        if not self.has_export_permission(request):
            raise PermissionDenied
        account = self._exchange_account(request)
        if account is None:
            return self._exchange_choose_account(request, "Export", "Whose people do you want?")
        if request.method != "POST":
            chosen = {"segment": as_id(request.GET.get("segment"))}
            form = ExportForm(account=account, initial=chosen)
            return self._exchange_page(
                request, self.export_template, "Export people", account, form
            )
        form = ExportForm(request.POST, account=account)
        if not form.is_valid():
            return self._exchange_page(
                request, self.export_template, "Export people", account, form
            )
        return self._exchange_download(request, account, form)

    def _exchange_download(
        self, request: HttpRequest, account: Account, form: ExportForm
    ) -> StreamingHttpResponse:
        segment: Segment | None = form.cleaned_data["segment"]
        chosen = {
            "account": account,
            "segment": segment,
            "status": form.cleaned_data["status"],
            "suppressed": form.only_suppressed(),
        }
        # Before the first byte leaves: a download that breaks off was one all the same.
        with transaction.atomic():
            record(
                account,
                "subscriber.export",
                subject=segment.name if segment else "everybody",
                detail={
                    "people": count_people(**chosen),
                    "segment": segment.pk if segment else None,
                    "status": chosen["status"],
                    "suppressed": chosen["suppressed"],
                },
                request=request,
            )
        name = f"{account.slug}-{segment.slug}" if segment else account.slug
        return csv_download(export_chunks(**chosen), f"{name}-{timezone.now():%Y-%m-%d}")

    # --- pages -------------------------------------------------------------------------------

    def _exchange_accounts(self, request: HttpRequest) -> Any:
        return visible(Account.objects.order_by("name"), request, "pk")

    def _exchange_account(self, request: HttpRequest) -> Account | None:
        """The one that was chosen, or the only one; ``None``: it has to be chosen.

        Raises ``PermissionDenied`` for one that this user may not see.
        """
        given = (request.POST if request.method == "POST" else request.GET).get("account")
        accounts = self._exchange_accounts(request)
        if given:
            found: Account | None = accounts.filter(pk=as_id(given)).first()
            if found is None:
                raise PermissionDenied
            return found
        only = list(accounts[:2])
        return only[0] if len(only) == 1 else None

    def _exchange_choose_account(
        self, request: HttpRequest, title: str, question: str
    ) -> HttpResponse:
        return self._exchange_render(
            request,
            self.choose_account_template,
            {
                "title": title,
                "question": question,
                "accounts": self._exchange_accounts(request)[:OFFERED],
            },
        )

    def _exchange_page(
        self, request: HttpRequest, template: str, title: str, account: Account, form: Form
    ) -> HttpResponse:
        context = {
            "title": title,
            "subtitle": account.name,
            "account": account,
            "form": form,
            "by": staff_name(request),
        }
        return self._exchange_render(request, template, context)

    def _exchange_render(self, request: HttpRequest, template: str, context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "media": self.media,
                **context,
            },
        )
