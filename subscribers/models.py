"""Accounts, people, the segments they are in, and the addresses that must not get mail."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Lower

from .timezones import validate_timezone


def lower_c(column: str) -> Lower:
    """``lower()`` under the C collation: plain ``lower()`` follows the database's locale
    (Turkish dotless i), so two machines could disagree on who is the same person."""
    return Lower(Collate(column, "C"))


class Account(models.Model):
    """A tenant: one sender identity and the people who may see it."""

    class DoubtPolicy(models.TextChoices):
        HOLD = "hold", "hold until evidence or a person decides"
        RESEND = "resend", "send again after the wait (may send twice)"
        ASSUME_SENT = "assume_sent", "treat as sent after the wait (may lose one)"

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=100, unique=True)
    from_email = models.EmailField(max_length=320)
    from_name = models.CharField(max_length=200, blank=True)
    reply_to = models.EmailField(max_length=320, blank=True)
    postal_address = models.TextField(
        blank=True, help_text="Shown in every message; most countries require it."
    )
    timezone = models.CharField(max_length=64, default="UTC", validators=[validate_timezone])
    transport = models.CharField(
        max_length=50, default="default", help_text="An alias of SENDONCE['TRANSPORTS']."
    )
    in_doubt_policy = models.CharField(
        max_length=20, choices=DoubtPolicy.choices, default=DoubtPolicy.HOLD
    )
    second_approver = models.BooleanField(
        default=False, help_text="The approver of a campaign may not be its author."
    )
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="sendonce_accounts"
    )
    notices = models.BooleanField(
        "mail its members",
        default=True,
        help_text="When a brake pauses a campaign, when a campaign is finished or has messages in "
        "doubt, when complaints or dead addresses come late, and when its transport takes no mail. "
        "Members without an e-mail address get none.",
    )

    max_per_hour = models.PositiveIntegerField(
        "messages an hour",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="The most that this account sends, campaigns and single messages together, "
        "spread evenly over the hour. Blank: no limit of its own; its transport's still holds.",
    )
    retry_waits = ArrayField(
        models.PositiveIntegerField(validators=[MinValueValidator(1), MaxValueValidator(86_400)]),
        verbose_name="waits (seconds)",
        default=list,
        blank=True,
        size=20,
        help_text="Before the 2nd, the 3rd, ... attempt, separated by commas; the last one "
        "repeats. Each is spread by a fifth either way, and a time that the other side asks for "
        "wins. Blank: 30, 120, 480, 1800, 3600.",
    )
    max_attempts = models.PositiveSmallIntegerField(
        "attempts",
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
        help_text="How often a message is tried that is refused for now (greylisting, a full "
        "mailbox, a busy server) before it has failed. 1 to 20.",
    )
    max_bounce_rate = models.DecimalField(
        "bounces (%)",
        max_digits=5,
        decimal_places=2,
        default=Decimal("5"),
        validators=[MinValueValidator(Decimal("0.01")), MaxValueValidator(100)],
        help_text="Dead addresses, of the recipients who were tried so far. Providers look into "
        "an account at about 5 %.",
    )
    max_complaint_rate = models.DecimalField(
        "complaints (%)",
        max_digits=5,
        decimal_places=2,
        default=Decimal("0.1"),
        validators=[MinValueValidator(Decimal("0.01")), MaxValueValidator(100)],
        help_text="People who called it spam, of those who got it so far. The large mailbox "
        "providers ask for less than 0.1 %.",
    )
    max_refusals = models.PositiveSmallIntegerField(
        "refusals in a row",
        default=20,
        validators=[MinValueValidator(1)],
        help_text="Messages one after another that are refused because of the sender, not of the "
        "recipient: a blocked address, the content, a used up quota.",
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Segment(models.Model):
    """A named set of an account's subscribers."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="segments")
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["account", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "slug"], name="sendonce_segment_slug")
        ]

    def __str__(self) -> str:
        return self.name


class Subscriber(models.Model):
    """A person, once per account and address."""

    class Status(models.TextChoices):
        PENDING = "pending", "pending confirmation"
        CONFIRMED = "confirmed", "confirmed"
        UNSUBSCRIBED = "unsubscribed", "unsubscribed"

    account = models.ForeignKey(Account, models.CASCADE, related_name="subscribers")
    email = models.EmailField(max_length=320)
    email_lower = models.GeneratedField(
        expression=lower_c("email"), output_field=models.CharField(max_length=320), db_persist=True
    )
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PENDING)
    attributes = models.JSONField(default=dict, blank=True)
    locale = models.CharField(max_length=20, blank=True)
    timezone = models.CharField(max_length=64, blank=True, validators=[validate_timezone])
    segments: models.ManyToManyField[Segment, Membership] = models.ManyToManyField(
        Segment, through="Membership", related_name="subscribers"
    )
    consent_source = models.CharField(
        max_length=200, blank=True, help_text="Where the consent came from, in the sender's words."
    )
    created = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    unsubscribed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "email_lower"], name="sendonce_subscriber_address"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "confirmed", "unsubscribed"]),
                name="sendonce_subscriber_status",
            ),
        ]
        indexes: ClassVar = [
            # The build walks an account's people along the id, chunk by chunk.
            models.Index(fields=["account", "id"], name="sendonce_subscriber_walk"),
        ]

    def __str__(self) -> str:
        return self.email


class Membership(models.Model):
    """A subscriber's place in a segment. ``left_at`` stays: an import never clears it."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="memberships")
    subscriber = models.ForeignKey(Subscriber, models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(auto_now_add=True)
    left_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["segment", "subscriber"], name="sendonce_membership_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subscriber} in {self.segment}"


class Suppression(models.Model):
    """An address that gets no mail, whatever else says so. ``account`` null: for all accounts.

    An erased person is kept as a keyed hash only (``email_hash``), never as an address.
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
    evidence = models.TextField(blank=True, help_text="What showed it: a reply, a click, a note.")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
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

    def __str__(self) -> str:
        return f"{self.email or 'erased person'}: {self.get_reason_display()}"
