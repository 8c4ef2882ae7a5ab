"""``manage.py run_imports``: run the imports that wait, until none is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand

from subscribers.command_line import terminable
from subscribers.importing import jobs, report
from subscribers.importing.pruning import prune
from subscribers.models import ImportJob

from .import_subscribers import describe


class Command(BaseCommand):
    help = (
        "Run the imports that were uploaded and that wait, and go on with those whose process "
        "died, until none is left. Run it as often as you like, beside others too. SIGTERM and "
        "ctrl-c end it after what is being written; the rest waits for the next run."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with terminable() as stopping:
                self._run_all(stopping)
                stopped = stopping()
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self.stderr.write("Stopped. What was under way goes on with the next run.")

    def _run_all(self, stopping: Callable[[], bool]) -> None:
        prune()
        while not stopping() and (job_id := jobs.next_queued()) is not None:
            if not jobs.run(job_id, stopping=stopping):
                continue
            job = ImportJob.objects.get(pk=job_id)
            name = f"import {job.pk} ({job.file_name}): "
            if job.status == ImportJob.Status.DONE:
                self.stdout.write(name + describe(report(job))[0])
            else:
                self.stdout.write(f"{name}{job.get_status_display()}. {job.error}".rstrip())
