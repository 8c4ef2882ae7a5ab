"""The second page of an import: what the columns mean, tried without a trace, then started."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict

from ..audit import record
from ..forms.mapping import MappingForm
from ..forms.seen import NOT_COMPLETE, SEEN, changed_meanwhile
from ..importing import ImportReport, Step, dry, jobs, leases, sources
from ..importing.drafts import declare, first_rows, keep, misfits, read_again
from ..importing.standing import outcome
from ..models import AttributeDefinition, ImportJob
from ..read_committed import read_committed
from ..tabular import ImportRefused
from .import_parts import ImportPages

Status = ImportJob.Status
#: Definitions that a column's select offers.
OFFERED = 500
#: Seconds: what is not done after a few of them goes on without the browser.
AT_ONCE = 3.0
#: Seconds that "Try it" may take, below the time-outs of web servers.
TRY = 20.0
#: Rejected rows of a try that the page shows.
SHOWN_REJECTS = 20


class TookTooLong(Exception):
    """A try did not come to its end in time; ``rows`` were read."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(rows)


class MappingPage(ImportPages):
    mapping_template = "admin/sendonce_subscribers/import_mapping.html"

    def mapping_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        job = self.found(request, object_id)
        if job.status != Status.DRAFT:
            return self._not_a_draft(request, job)
        if request.method != "POST":
            return self._mapping_page(request, self._form(job))
        # Whoever else answers for this draft waits, so that nobody writes between look and write.
        with read_committed():
            ImportJob.objects.select_for_update(no_key=True).filter(pk=job.pk).first()
            job = self.found(request, object_id)
            if job.status != Status.DRAFT:
                return self._not_a_draft(request, job)
            form = self._form(job, request.POST)
            done = self._changed_meanwhile(request, form) or self._answered(request, form)
            # Nobody takes over a row that is locked, as whoever has waited for this one locks it.
            runner = leases.take(job.pk)
        if done is not None:
            return done
        if "import" not in request.POST:
            return self._try(request, form)
        self.work(request, job, AT_ONCE, runner)
        return HttpResponseRedirect(self.url_of(job, "change"))

    def _form(self, job: ImportJob, data: QueryDict | None = None) -> MappingForm:
        definitions = AttributeDefinition.objects.filter(account=job.account).order_by("key")
        return MappingForm(job, list(definitions[:OFFERED]), data)

    def _not_a_draft(self, request: HttpRequest, job: ImportJob) -> HttpResponse:
        """Pressed twice, it has been started, once. Another answer than the one that it was
        started with is not passed over in silence."""
        ended = job.status == Status.CANCELED
        if request.method == "POST" and (ended or not self._form(job, request.POST).is_as_stored()):
            self.message_user(
                request,
                f"This import was {'canceled' if ended else 'started'} meanwhile: what you "
                "answered on its page is not used.",
                messages.WARNING,
            )
        return HttpResponseRedirect(self.url_of(job, "change"))

    def _changed_meanwhile(self, request: HttpRequest, form: MappingForm) -> HttpResponse | None:
        """What the later of two who answer for the same file is told. ``None``: there is only
        one, or both say the same."""
        seen = request.POST.get(SEEN, "")
        changed = form.changed_meanwhile(seen)
        if not seen:
            form.reading.add_error(None, NOT_COMPLETE)
        elif not changed:
            return None
        elif form.is_other_table_meanwhile(seen):
            self.message_user(
                request,
                "Not saved: somebody has meanwhile chosen to have the file read in another way. "
                "These are its columns now: look at them, and answer again.",
                messages.WARNING,
            )
            return self._mapping_page(request, self._form(form.job))
        else:
            form.reading.add_error(None, changed_meanwhile(map(form.label, changed)))
        # What it showed goes along once more: sent again as it is, it is refused again.
        return self._mapping_page(request, form, seen=seen)

    def _answered(self, request: HttpRequest, form: MappingForm) -> HttpResponse | None:
        """Store what was answered. ``None``: it can be tried, or has been queued."""
        if not {"import", "try"} & set(request.POST):
            return self._read_again(request, form)
        if form.is_other_table:
            # What was said of the columns on the page may not hold for those of another sheet.
            self.message_user(
                request,
                "The file is read in another way now. Look at its columns again; then go on.",
                messages.WARNING,
            )
            return self._read_again(request, form)
        if not self._is_complete(form):
            return self._mapping_page(request, form)
        if "import" in request.POST:
            return self._start(request, form)
        keep(form.job, form.options, form.new)
        return None

    def _read_again(self, request: HttpRequest, form: MappingForm) -> HttpResponse:
        if not form.reading.is_valid():
            return self._mapping_page(request, form)
        try:
            same = read_again(form.job, form.options, header=form.header)
        except ImportRefused as error:
            form.reading.add_error(None, str(error))
            return self._mapping_page(request, form)
        # Other columns are shown as they are; what was said of the same ones is kept.
        data = request.POST if same else None
        return self._mapping_page(request, MappingForm(form.job, form.definitions, data))

    def _try(self, request: HttpRequest, form: MappingForm) -> HttpResponse:
        end = time.monotonic() + TRY
        found: list[tuple[int, str]] = []

        def watch(step: Step) -> None:
            if time.monotonic() > end:
                raise TookTooLong(step.rows)

        def note(copy: ImportJob) -> None:
            rows = copy.rejects.order_by("line")[:SHOWN_REJECTS]
            found.extend(rows.values_list("line", "reason"))

        report: ImportReport | None = None
        try:
            report = dry.tried(
                form.job,
                form.options,
                partial(sources.uploaded, form.job.pk),
                progress=watch,
                more=form.all(),
                before_the_end=note,
            )
        except ImportRefused as error:
            form.reading.add_error(None, str(error))
        except TookTooLong as error:
            self.message_user(
                request,
                f"The file is too large to be tried here: {TRY:.0f} seconds were not enough "
                f"({error.rows:,} rows were read). Nothing was changed. It can be tried on the "
                f"server, by import_subscribers --dry-run.",
                messages.WARNING,
            )
        return self._mapping_page(request, form, report=report, rejects=found)

    def _start(self, request: HttpRequest, form: MappingForm) -> HttpResponse | None:
        """``None``: it is queued."""
        job = form.job
        try:
            with transaction.atomic():
                declare(job.account, form.new, request, labels=form.labels)
                jobs.queue(job, form.options)
                record(
                    job.account,
                    "import.start",
                    subject=job.file_name,
                    detail={"import": job.pk, "segment": str(job.segment or "")},
                    request=request,
                )
        except ImportRefused as error:
            form.reading.add_error(None, str(error))
            return self._mapping_page(request, form)
        return None

    def _is_complete(self, form: MappingForm) -> bool:
        """Can it be tried or started? Puts what is wrong into the form."""
        wrong = misfits(form.job.account, form.new) if form.is_valid() else {}
        for column in form.columns:
            if column.choice.startswith("new:") and column.key in wrong:
                column.error = wrong[column.key]
        return form.is_valid() and not first_rows(form.job, form.options, form.all()).error

    def _mapping_page(
        self,
        request: HttpRequest,
        form: MappingForm,
        *,
        report: ImportReport | None = None,
        rejects: list[tuple[int, str]] | None = None,
        seen: str = "",
    ) -> HttpResponse:
        context: dict[str, Any] = {
            "form": form,
            "seen": seen or MappingForm(form.job, form.definitions).seen,
            "reading": form.reading,
            "notes": form.job.preview.get("notes", []),
            "first": first_rows(form.job, form.options, form.all()),
            "report": report,
            "outcome": outcome(report) if report else [],
            "rejects": rejects or [],
            "options": form.options,
            "definitions_url": self.url_named("attributedefinition_changelist"),
        }
        title = "What its columns mean"
        return self.page(request, form.job, self.mapping_template, title, context)
