"""Joining: sign-up forms, the words people agreed to, and the evidence that they did."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now

from .accounts import Account
from .fields import lower_c
from .people import Segment, Subscriber


class SignupForm(models.Model):
    """A form by which people join an account's segments."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="signup_forms")
    name = models.CharField(max_length=200, help_text="The title that people see.")
    slug = models.SlugField(max_length=100)
    segments = models.ManyToManyField(Segment, related_name="signup_forms")
    intro = models.TextField(blank=True, help_text="What people read above the form.")
    consent_text = models.TextField(
        help_text="What people agree to, word for word. Each wording is kept with those who saw it."
    )
    fields = ArrayField(
        models.CharField(max_length=100),
        default=list,
        blank=True,
        size=50,
        help_text="Keys of the attributes that it asks for, in order.",
    )
    subject = models.CharField(
        max_length=500, blank=True, help_text="Of the confirmation mail. Blank: a usual one."
    )
    body = models.TextField(
        blank=True,
        help_text="Of the confirmation mail, with {{ confirm_url }}. Blank: a usual one.",
    )
    thanks_url = models.URLField(
        max_length=500, blank=True, help_text="Where people go after the form. Blank: our page."
    )
    welcome_url = models.URLField(
        max_length=500, blank=True, help_text="Where people go once confirmed. Blank: our page."
    )
    allowed_origins = ArrayField(
        models.CharField(max_length=300),
        default=list,
        blank=True,
        size=50,
        help_text="Sites whose scripts may post to it, as in https://www.example.org.",
    )
    is_open = models.BooleanField("open", default=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "sign-up form"
        ordering: ClassVar = ["account", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "slug"], name="sendonce_signupform_slug")
        ]

    def __str__(self) -> str:
        return self.name


class ConsentText(models.Model):
    """One wording of a form's consent text. Never changed, never deleted."""

    account = models.ForeignKey(Account, models.PROTECT, related_name="consent_texts")
    text = models.TextField()
    digest = models.CharField(max_length=64)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "digest"], name="sendonce_consent_text")
        ]

    def __str__(self) -> str:
        return self.text[:80]


class Signup(models.Model):
    """A wish to join, or to change an address: who, when, from where, to which words. Confirmed,
    it is the evidence; what is not confirmed in time is deleted.

    Nothing is known of the person as a subscriber until it is confirmed.
    """

    class Kind(models.TextChoices):
        JOIN = "join", "sign-up"
        ADDRESS = "address", "change of address"

    account = models.ForeignKey(Account, models.PROTECT, related_name="signups")
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.JOIN)
    form = models.ForeignKey(
        SignupForm, models.SET_NULL, null=True, blank=True, related_name="signups"
    )
    subscriber = models.ForeignKey(
        Subscriber, models.SET_NULL, null=True, blank=True, related_name="signups"
    )
    email = models.CharField(max_length=320, null=True, blank=True)  # noqa: DJ001 (null: erased)
    email_lower = models.GeneratedField(
        expression=lower_c("email"),
        output_field=models.CharField(max_length=320, null=True),
        db_persist=True,
    )
    email_hash = models.CharField(max_length=64, blank=True, editable=False)
    #: Of a change that was confirmed: the address before it. A list from elsewhere may go on naming
    #: it, and its person is known under another one.
    former_email = models.CharField(max_length=320, null=True, blank=True, editable=False)  # noqa: DJ001
    former_lower = models.GeneratedField(
        expression=lower_c("former_email"),
        output_field=models.CharField(max_length=320, null=True),
        db_persist=True,
    )
    attributes = models.JSONField(default=dict, blank=True)
    locale = models.CharField(max_length=20, blank=True)
    consent = models.ForeignKey(
        ConsentText, models.PROTECT, null=True, blank=True, related_name="signups"
    )
    requested_at = models.DateTimeField(db_default=Now())
    requested_from = models.GenericIPAddressField(null=True, blank=True)
    requested_agent = models.CharField(max_length=200, blank=True)
    #: Confirmation mails queued, and when the last one was.
    mails = models.PositiveSmallIntegerField(default=0)
    mailed_at = models.DateTimeField(null=True, blank=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    confirmed_from = models.GenericIPAddressField(null=True, blank=True)
    confirmed_agent = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "sign-up"
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["account", "email_lower"], name="sendonce_signup_address"),
            # One account's list, latest first.
            models.Index(fields=["account", "-id"], name="sendonce_signup_account"),
            # A search of all accounts by the beginning of an address.
            models.Index(Collate("email_lower", "C"), name="sendonce_signup_search"),
            # The few that change an address.
            models.Index(
                fields=["-id"], condition=Q(kind="address"), name="sendonce_signup_changes"
            ),
            # An import asks which of its addresses were given up.
            models.Index(
                fields=["account", "former_lower"],
                condition=Q(former_lower__isnull=False),
                name="sendonce_signup_former",
            ),
            # Those that wait are looked through for what was never confirmed.
            models.Index(
                fields=["requested_at"],
                condition=Q(confirmed_at__isnull=True),
                name="sendonce_signup_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email or 'erased person'}: {self.get_kind_display()}"


class SignupAttempt(models.Model):
    """A request to a sign-up form, for the limits per address and network; kept for two days."""

    at = models.DateTimeField(db_default=Now())
    account = models.ForeignKey(Account, models.CASCADE, related_name="+")
    address_hash = models.CharField(max_length=64)
    network = models.CharField(max_length=50)
    outcome = models.CharField(max_length=40)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["address_hash", "at"], name="sendonce_attempt_address"),
            models.Index(fields=["network", "at"], name="sendonce_attempt_network"),
            models.Index(fields=["at"], name="sendonce_attempt_at"),
            # Lists of one account and of one outcome, latest first.
            models.Index(fields=["account", "-id"], name="sendonce_attempt_account"),
            models.Index(fields=["outcome", "-id"], name="sendonce_attempt_outcome"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} from {self.network}"
