"""People, what is known of them, and the segments they are in."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now

from ..timezones import validate_timezone
from .accounts import Account
from .fields import lower_c


class Segment(models.Model):
    """A named set of an account's subscribers."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="segments")
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=100)
    description = models.TextField(
        blank=True, help_text="What its members read about it on their preferences page."
    )
    public = models.BooleanField(
        default=True,
        help_text="Its members see it on their preferences page, and can leave it there. Others "
        "can only be left together with everything.",
    )
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
    paused_until = models.DateTimeField(
        null=True, blank=True, help_text="Gets no campaign until then, by their own wish."
    )

    class Meta:
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [
            ("import_subscriber", "Can import subscribers"),
            ("export_subscriber", "Can export subscribers"),
            ("erase_subscriber", "Can export and erase one person's data"),
        ]
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
            # The build walks an account's people along the id, chunk by chunk. Counts of who gets
            # a campaign read nothing but this and the index of present members.
            models.Index(
                fields=["account", "id"],
                include=["status", "paused_until"],
                name="sendonce_subscriber_walk",
            ),
            # A search by the beginning of an address, in that order, whatever the database's
            # locale is; and whom an entry for all accounts names.
            models.Index(Collate("email_lower", "C"), name="sendonce_subscriber_search"),
        ]

    def __str__(self) -> str:
        return self.email


class Membership(models.Model):
    """A subscriber's place in a segment. ``left_at`` stays: an import never clears it."""

    # Not indexed by itself: the constraint's index begins with it.
    segment = models.ForeignKey(Segment, models.CASCADE, related_name="memberships", db_index=False)
    subscriber = models.ForeignKey(Subscriber, models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(auto_now_add=True)
    left_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["segment", "subscriber"], name="sendonce_membership_once"
            )
        ]
        indexes: ClassVar = [
            # Counts of present members read it alone, in the order in which people are stored.
            models.Index(
                fields=["segment", "subscriber"],
                condition=Q(left_at__isnull=True),
                name="sendonce_membership_present",
            ),
            # The list of the few that ended, latest first.
            models.Index(
                fields=["-id"],
                condition=Q(left_at__isnull=False),
                name="sendonce_membership_left",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subscriber} in {self.segment}"


class MembershipChange(models.Model):
    """What happened to a membership after its beginning: it ended, or began again. The first
    beginning is ``Membership.joined_at``. Append-only."""

    class Kind(models.TextChoices):
        LEFT = "left", "left"
        JOINED = "joined", "joined again"

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="changes")
    subscriber = models.ForeignKey(Subscriber, models.CASCADE, related_name="membership_changes")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    at = models.DateTimeField(db_default=Now())
    source = models.CharField(max_length=200, blank=True, help_text="What showed it, in words.")

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["segment", "at"], name="sendonce_membershipchange_at"),
            # The list of one kind, latest first.
            models.Index(fields=["kind", "-id"], name="sendonce_membershipchange_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.subscriber} {self.get_kind_display()} {self.segment}"
