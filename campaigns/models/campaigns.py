"""Campaigns, who approved them, and the content that was approved."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from subscribers.models import Account, Segment

from .layouts import Layout


class Content(models.Model):
    """What is sent, compiled and frozen: merge templates, sender, and the account's fields.

    Never changed after it was written, save that a ``private`` one is emptied with the person whom
    it was made for. Every send points to one, through its campaign or, for a transactional
    message, by itself.
    """

    account = models.ForeignKey(Account, models.PROTECT, related_name="contents")
    subject = models.CharField(max_length=500)
    preheader = models.CharField(max_length=500, blank=True)
    html = models.TextField(blank=True)
    text = models.TextField(blank=True)
    from_email = models.CharField(max_length=320)
    from_name = models.CharField(max_length=200, blank=True)
    reply_to = models.CharField(max_length=320, blank=True)
    account_fields = models.JSONField(
        default=dict, help_text="What templates see as {{ account }}: name, slug, postal_address."
    )
    #: Came with one message and is nobody else's: its words may be about that person.
    private = models.BooleanField(default=False, db_default=False, editable=False)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.subject


class CampaignQuerySet(models.QuerySet["Campaign"]):
    def due(self) -> CampaignQuerySet:
        """Approved and scheduled for a moment that the database's clock has passed."""
        return self.filter(status=Campaign.Status.APPROVED, scheduled_for__lte=Now())


class Campaign(models.Model):
    """One message to many people. Its status changes only through ``campaigns.lifecycle``."""

    class Status(models.TextChoices):
        DRAFT = "draft", "draft"
        APPROVED = "approved", "approved"
        SENDING = "sending", "sending"
        PAUSED = "paused", "paused"
        SENT = "sent", "sent"
        CANCELED = "canceled", "canceled"

    class BodyFormat(models.TextChoices):
        HTML = "html", "HTML"
        MJML = "mjml", "MJML"
        MARKDOWN = "markdown", "Markdown"
        TEXT = "text", "plain text"

    account = models.ForeignKey(Account, models.PROTECT, related_name="campaigns")
    name = models.CharField(max_length=200)
    subject = models.CharField(max_length=500)
    preheader = models.CharField(
        max_length=500, blank=True, help_text="The line that mail programs show after the subject."
    )
    from_email = models.EmailField(
        max_length=320, blank=True, help_text="Blank: the account's address."
    )
    from_name = models.CharField(max_length=200, blank=True, help_text="Blank: the account's.")
    reply_to = models.EmailField(max_length=320, blank=True, help_text="Blank: the account's.")
    body_format = models.CharField(
        max_length=20, choices=BodyFormat.choices, default=BodyFormat.HTML
    )
    layout = models.ForeignKey(
        Layout,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="campaigns",
        help_text="The frame around the body. Blank: the body is all there is.",
    )
    body = models.TextField()
    text_body = models.TextField(blank=True, help_text="Blank: made from the body.")
    segments = models.ManyToManyField(Segment, related_name="campaigns")
    exclude_segments = models.ManyToManyField(
        Segment, blank=True, related_name="excluding_campaigns"
    )

    status = models.CharField(
        max_length=20, choices=Status.choices, default=Status.DRAFT, editable=False
    )
    status_reason = models.CharField(
        max_length=500, blank=True, editable=False, help_text="Why it came to be in this status."
    )
    scheduled_for = models.DateTimeField(
        null=True, blank=True, help_text="Blank: as soon as it is approved."
    )
    #: Nothing stops at this moment: preflight warns when the limits don't let it be done by then.
    finish_by = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Approving warns when sending will take longer. Blank: it may take its time.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    #: Who edited it last; with the author, who is not the second person.
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    edited_at = models.DateTimeField(null=True, blank=True, editable=False)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    approved_at = models.DateTimeField(null=True, blank=True, editable=False)
    approved_digest = models.CharField(max_length=64, blank=True, editable=False)
    content = models.ForeignKey(
        Content, models.PROTECT, null=True, blank=True, editable=False, related_name="campaigns"
    )
    #: Compare-and-set token of edits: two editors at once, the later is told.
    version = models.PositiveIntegerField(default=1, editable=False)

    #: The build's place: every subscriber up to this id has been looked at.
    audience_cursor = models.BigIntegerField(default=0, editable=False)
    #: People counted so far by the build, each chunk in its own snapshot; final once
    #: ``built_at`` is set, when the closing sweep has counted all of them in one.
    audience = models.BigIntegerField(default=0, editable=False)
    built_at = models.DateTimeField(null=True, blank=True, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True, editable=False)
    created = models.DateTimeField(default=timezone.now, editable=False)

    objects = CampaignQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [
            ("approve_campaign", "Can approve, schedule and withdraw a campaign"),
            ("control_campaign", "Can pause, resume and cancel a campaign"),
            ("test_campaign", "Can send tests of a campaign"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(
                    status__in=["draft", "approved", "sending", "paused", "sent", "canceled"]
                ),
                name="sendonce_campaign_status",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["approved", "sending", "paused", "sent"])
                | (
                    Q(content__isnull=False, scheduled_for__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_digest="")
                ),
                name="sendonce_campaign_approved",
            ),
            models.CheckConstraint(
                condition=~Q(status="draft") | Q(content__isnull=True, approved_digest=""),
                name="sendonce_campaign_draft",
            ),
            models.CheckConstraint(
                condition=~Q(status="sent") | Q(built_at__isnull=False, finished_at__isnull=False),
                name="sendonce_campaign_sent",
            ),
        ]
        indexes: ClassVar = [
            # A worker asks every second which campaigns fell due.
            models.Index(
                fields=["scheduled_for"],
                condition=Q(status="approved"),
                name="sendonce_campaign_due",
            ),
            # ... and which are to be built, drained and finished.
            models.Index(
                fields=["id"], condition=Q(status="sending"), name="sendonce_campaign_sending"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Approval(models.Model):
    """Who approved what, when; kept for ever. Voided by an edit or a withdrawal."""

    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="approvals")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    by_name = models.CharField(max_length=200, help_text="As it was then; survives the user.")
    at = models.DateTimeField()
    digest = models.CharField(max_length=64)
    scheduled_for = models.DateTimeField()
    content = models.ForeignKey(Content, models.PROTECT, related_name="approvals")
    voided_at = models.DateTimeField(null=True, blank=True)
    void_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.campaign} by {self.by_name}"
