"""An import: the file, how it is read, how far it has come, and what it could not take."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from .accounts import Account
from .fields import lower_c
from .people import Segment


class ImportJob(models.Model):
    """One import of one file. Its status changes only through ``subscribers.importing``.

    ``queued`` is also what a running one is: whoever holds ``runner`` until ``lease_until`` works
    on it, and a dead one's work is taken on where its last committed chunk ended.
    """

    class Status(models.TextChoices):
        DRAFT = "draft", "to be mapped"
        QUEUED = "queued", "waiting or running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        CANCELED = "canceled", "canceled"

    account = models.ForeignKey(Account, models.CASCADE, related_name="imports")
    segment = models.ForeignKey(Segment, models.SET_NULL, null=True, related_name="imports")
    file_name = models.CharField(max_length=255)
    file_size = models.BigIntegerField(default=0, help_text="Bytes; 0: not known.")
    file_digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the file.")
    #: How it is read (``subscribers.tabular.Options`` as JSON): format, encoding,
    #: delimiter, sheet, mapping of columns, what becomes of known people, consent.
    options = models.JSONField(default=dict)
    #: The header and the first rows, for the mapping page.
    preview = models.JSONField(default=dict, blank=True)

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.DRAFT)
    error = models.TextField(blank=True)
    #: Lines of the file that are staged, and bytes read: committed with each batch of them.
    staged_line = models.BigIntegerField(default=0)
    bytes_read = models.BigIntegerField(default=0)
    staged_at = models.DateTimeField(null=True, blank=True)
    #: The last address (``email_lower``) that was applied; people are applied in its order.
    cursor = models.CharField(max_length=320, blank=True)
    #: The report so far: rows, imported, updated, ...; see ``ImportReport``.
    counts = models.JSONField(default=dict, blank=True)
    runner = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    by_name = models.CharField(max_length=200, help_text="As it was then; survives the user.")
    created = models.DateTimeField(db_default=Now())
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "import"
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=["draft", "queued", "done", "failed", "canceled"]),
                name="sendonce_import_status",
            ),
        ]
        indexes: ClassVar = [
            # Workers ask which are to be run.
            models.Index(fields=["id"], condition=Q(status="queued"), name="sendonce_import_queue"),
        ]

    def __str__(self) -> str:
        return f"import of {self.file_name}"


class ImportChunk(models.Model):
    """A piece of an uploaded file: in the database, so that any machine can run the import. Gone
    when the import has ended."""

    job = models.ForeignKey(ImportJob, models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "number"], name="sendonce_importchunk_once")
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.job_id}"


class ImportRow(models.Model):
    """A good row of a file, staged. The table is unlogged (a migration sets it so): after a crash
    of the server it is empty, which an import notices (line 0, staged first, is gone) and stages
    again. Addresses compare byte by byte, in the order in which everything locks them."""

    pk = models.CompositePrimaryKey("job_id", "line")
    job = models.ForeignKey(
        ImportJob, models.CASCADE, related_name="rows", db_index=False, db_constraint=False
    )
    line = models.BigIntegerField()
    email = models.CharField(max_length=320)
    email_lower = models.GeneratedField(
        expression=lower_c("email"),
        output_field=models.CharField(max_length=320, db_collation="C"),
        db_persist=True,
    )
    status = models.CharField(max_length=20)
    attributes = models.JSONField()
    locale = models.CharField(max_length=20)
    timezone = models.CharField(max_length=64)
    consent_source = models.CharField(max_length=200)
    suppressed = models.CharField(max_length=20)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["job", "email_lower", "-line"], name="sendonce_importrow_walk")
        ]

    def __str__(self) -> str:
        return f"line {self.line}"


class ImportReject(models.Model):
    """A row that an import could not take. ``cells`` as they were in the file; none for a person
    who was erased: the record must not bring back what was to be forgotten."""

    job = models.ForeignKey(ImportJob, models.CASCADE, related_name="rejects")
    line = models.BigIntegerField()
    reason = models.TextField()
    cells = models.JSONField(default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["job", "line"]
        indexes: ClassVar = [
            models.Index(fields=["job", "line"], name="sendonce_importreject_walk")
        ]

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"
