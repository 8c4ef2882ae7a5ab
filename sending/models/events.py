"""What happened to a message, as we and its provider saw it. Append-only."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from subscribers.models import Account

from .sends import Send

#: Kinds of events that tell of something wrong with a message on its way.
TROUBLE = (
    "bounced", "failed", "in_doubt", "retry", "hard_bounce", "soft_bounce", "rejected", "deferred"
)  # fmt: skip


class DeliveryEvent(models.Model):
    """Something that happened to a send. Append-only; every non-success leaves one."""

    send = models.ForeignKey(Send, models.SET_NULL, null=True, blank=True, related_name="events")
    account = models.ForeignKey(Account, models.CASCADE, related_name="events", db_index=False)
    kind = models.CharField(max_length=40, help_text="The status reached, or the event's name.")
    #: The provider's id of the event; unique, so that a webhook told twice counts once.
    event_id = models.CharField(max_length=300, null=True, blank=True, unique=True)
    stage = models.CharField(max_length=20, blank=True)
    code = models.SmallIntegerField(null=True, blank=True)
    enhanced = models.CharField(max_length=20, blank=True)
    text = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=40, blank=True)
    #: False: no rule fitted the answer, a cautious fallback decided.
    known = models.BooleanField(default=True, db_default=True)
    attempt = models.PositiveSmallIntegerField(null=True, blank=True)
    by_name = models.CharField(max_length=200, blank=True, help_text="Who, when a person did it.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            # The unclassified answers, for whoever writes rules; few.
            models.Index(
                fields=["-id"], condition=Q(known=False), name="sendonce_event_unclassified"
            ),
            # One account's list, latest first: all that its staff see of a table that providers
            # fill with every delivery.
            models.Index(fields=["account", "-id"], name="sendonce_event_account"),
            # ... and of those the ones that tell of trouble, for the page of a campaign's progress:
            # beside a million deliveries they are not to be searched for.
            models.Index(
                fields=["account", "-id"],
                condition=Q(kind__in=TROUBLE),
                name="sendonce_event_trouble",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.reason or self.stage})"


class ProviderEvent(models.Model):
    """One tracking event as a provider's webhook told it: stored at once, applied by a worker.

    ``applied_at`` null: it waits. ``result`` says what came of it: see ``sending.tracking.inbox``.
    """

    #: ``<esp>:...``, the provider's own id or derived: what is told twice is stored once.
    event_id = models.CharField(max_length=300, unique=True)
    esp = models.CharField(max_length=40)
    #: anymail's normalised ``event_type``, with bounces told apart: ``hard_bounce``,
    #: ``soft_bounce``.
    kind = models.CharField(max_length=40)
    job_id = models.CharField(max_length=300, blank=True)
    installation = models.CharField(max_length=40, blank=True)
    message_id = models.CharField(max_length=300, blank=True)
    recipient = models.CharField(max_length=320, blank=True)
    #: When it happened, as far as the provider's word is credible; else when it was received.
    at = models.DateTimeField()
    text = models.CharField(max_length=500, blank=True)
    received = models.DateTimeField(db_default=Now())
    applied_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            # What waits to be applied, oldest first.
            models.Index(
                fields=["id"],
                condition=Q(applied_at__isnull=True),
                name="sendonce_provider_waiting",
            ),
            # Lists of one provider, and of what was not applied, latest first.
            models.Index(fields=["esp", "-id"], name="sendonce_provider_esp"),
            models.Index(
                fields=["result", "-id"],
                condition=~Q(result__in=("", "applied")),
                name="sendonce_provider_result",
            ),
            # What was told about a person, for their copy of it and their erasure.
            models.Index(
                # ``lower_c`` in one piece: an index takes no collation inside an expression.
                models.Func("recipient", template='lower(%(expressions)s COLLATE "C")'),
                condition=~Q(recipient=""),
                name="sendonce_provider_recipient",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.esp}: {self.kind}"


class WebhookCount(models.Model):
    """How often webhooks brought something that could not be used, by day; never by request."""

    esp = models.CharField(max_length=40)
    what = models.CharField(max_length=40)
    day = models.DateField()
    count = models.BigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-day", "esp", "what"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["esp", "what", "day"], name="sendonce_webhook_count")
        ]

    def __str__(self) -> str:
        return f"{self.esp} {self.what} on {self.day}: {self.count}"
