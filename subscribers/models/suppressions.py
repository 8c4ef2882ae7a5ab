"""The addresses that must not get mail."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate

from .accounts import Account
from .fields import lower_c


class Suppression(models.Model):
    """An address that gets no mail, whatever else says so. ``account`` null: for all accounts.

    An erased person is kept as a keyed hash only (``email_hash``), never as an address; with what
    had been known against mailing them (``former_reason``), because an erasure must not make a
    complaint forgotten. An unsubscription keeps there that staff have added the address, too.
    """

    class Reason(models.TextChoices):
        UNSUBSCRIBED = "unsubscribed", "unsubscribed"
        HARD_BOUNCE = "hard_bounce", "address dead"
        COMPLAINT = "complaint", "complained"
        MANUAL = "manual", "added by staff"
        ERASED = "erased", "erased on request"

    account = models.ForeignKey(
        Account, models.CASCADE, null=True, blank=True, related_name="suppressions"
    )
    email = models.CharField(max_length=320, null=True, blank=True)  # noqa: DJ001 (null: erased)
    email_lower = models.GeneratedField(
        expression=lower_c("email"),
        output_field=models.CharField(max_length=320, null=True),
        db_persist=True,
    )
    email_hash = models.CharField(max_length=64, null=True, blank=True, editable=False)  # noqa: DJ001
    reason = models.CharField(max_length=20, choices=Reason.choices)
    former_reason = models.CharField(
        max_length=20, choices=Reason.choices, blank=True, db_default="", editable=False
    )
    evidence = models.TextField(blank=True, help_text="What showed it: a reply, a click, a note.")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [
            ("import_suppression", "Can import suppressions"),
            ("export_suppression", "Can export suppressions"),
            ("release_suppression", "Can release an address from suppression"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "email_lower"],
                condition=Q(account__isnull=False),
                name="sendonce_suppression_account",
            ),
            models.UniqueConstraint(
                fields=["email_lower"],
                condition=Q(account__isnull=True),
                name="sendonce_suppression_global",
            ),
            models.UniqueConstraint(
                fields=["account", "email_hash"],
                condition=Q(account__isnull=False),
                name="sendonce_suppression_hash",
            ),
            models.UniqueConstraint(
                fields=["email_hash"],
                condition=Q(account__isnull=True),
                name="sendonce_suppression_ghash",
            ),
            models.CheckConstraint(
                condition=(
                    Q(reason="erased", email__isnull=True, email_hash__isnull=False)
                    | (~Q(reason="erased") & Q(email__isnull=False, email_hash__isnull=True))
                ),
                name="sendonce_suppression_identity",
            ),
        ]
        indexes: ClassVar = [
            # Lists of one account and of one reason, latest first.
            models.Index(fields=["account", "-id"], name="sendonce_suppression_list"),
            models.Index(fields=["reason", "-id"], name="sendonce_suppression_reason"),
            # The list of those that expired, last expired first.
            models.Index(
                fields=["expires", "id"],
                condition=Q(expires__isnull=False),
                name="sendonce_suppression_expires",
            ),
            # Searches of all accounts: by the beginning of an address, and by an erased one.
            models.Index(Collate("email_lower", "C"), name="sendonce_suppression_search"),
            models.Index(
                fields=["email_hash"],
                condition=Q(email_hash__isnull=False),
                name="sendonce_suppression_erased",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email or 'erased person'}: {self.get_reason_display()}"
