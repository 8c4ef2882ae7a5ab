"""The tenants."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from ..timezones import validate_timezone


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
    other_domains = ArrayField(
        models.CharField(max_length=253),
        default=list,
        blank=True,
        help_text="Domains that its campaigns may be from besides that of the address, separated "
        "by commas: news.example.org.",
    )
    reply_to = models.EmailField(max_length=320, blank=True)
    postal_address = models.TextField(
        blank=True,
        help_text="Print it where you want it with {{ account.postal_address }}; a campaign that "
        "does not show it gets a footer that does. Most countries require it, and without it no "
        "campaign can be approved.",
    )
    timezone = models.CharField(max_length=64, default="UTC", validators=[validate_timezone])
    transport = models.CharField(
        max_length=50, default="default", help_text="An alias of SENDONCE['TRANSPORTS']."
    )
    in_doubt_policy = models.CharField(
        max_length=20,
        choices=DoubtPolicy.choices,
        default=DoubtPolicy.HOLD,
        help_text="What becomes of a message of which nobody knows whether it was sent, since the "
        "answer was lost. Sent again, somebody may get it twice; treated as sent, somebody may get "
        "none; held, neither happens by itself.",
    )
    second_approver = models.BooleanField(
        default=False,
        help_text="The approver of a campaign may not be its author, nor who edited it last.",
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
