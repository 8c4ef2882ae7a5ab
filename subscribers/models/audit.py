"""Who did what to whom: the record of acts that people answer for."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Collate, Now

from .accounts import Account
from .fields import lower_c


class AuditEvent(models.Model):
    """One act. Append-only; written by ``subscribers.audit.record``.

    ``subject`` names what it was done to, often an address; an erasure blanks it and keeps the
    keyed hash. ``detail`` is plain data: numbers, names, never a secret.
    """

    account = models.ForeignKey(
        Account, models.SET_NULL, null=True, blank=True, related_name="audit_events"
    )
    at = models.DateTimeField(db_default=Now())
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    by_name = models.CharField(max_length=200, help_text="As it was then; survives the user.")
    verb = models.CharField(max_length=60, help_text="As in suppression.release.")
    subject = models.CharField(max_length=320, blank=True)
    subject_lower = models.GeneratedField(
        expression=lower_c("subject"),
        output_field=models.CharField(max_length=320),
        db_persist=True,
    )
    subject_hash = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True, help_text="In the words of whoever did it.")
    detail = models.JSONField(default=dict, blank=True)
    from_address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["account", "-id"], name="sendonce_audit_account"),
            models.Index(fields=["subject_lower"], name="sendonce_audit_subject"),
            # What was done on one day.
            models.Index(fields=["at"], name="sendonce_audit_at"),
            # A search by the beginning of a subject, in that order, whatever the database's locale
            # is; and by somebody who was erased.
            models.Index(
                Collate("subject_lower", "C"), F("id").desc(), name="sendonce_audit_search"
            ),
            models.Index(
                fields=["subject_hash"],
                condition=~Q(subject_hash=""),
                name="sendonce_audit_erased",
            ),
            # One kind of act: of everybody, for superusers, and of one account.
            models.Index(fields=["verb", "-id"], name="sendonce_audit_verb"),
            models.Index(fields=["account", "verb", "-id"], name="sendonce_audit_account_verb"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} by {self.by_name}"
