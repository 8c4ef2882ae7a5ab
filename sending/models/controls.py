"""What holds sending back or up for all workers, and who this installation is."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from campaigns.models import Campaign
from subscribers.models import Account

from ..wording import limit_words


class RateLimit(models.Model):
    """A token bucket that all workers share: of a transport, an account or a provider of
    mailboxes. ``rate`` is in force now, in messages a second; ``usual`` is the configured one,
    null where there is none and ``rate`` only slows down. See ``sending.limits.admission``."""

    #: ``transport:<alias>``, ``account:<id>`` or ``domain:<group>``.
    key = models.CharField(max_length=200, unique=True)
    usual = models.FloatField(null=True, blank=True)
    rate = models.FloatField()
    #: Messages that could start at ``updated``; it grows by ``rate`` from then on.
    tokens = models.FloatField(default=0)
    #: In the future while nothing may start at all (``Retry-After``).
    updated = models.DateTimeField(db_default=Now())
    #: Without a usual rate: the rate at which the slow-down is over.
    ceiling = models.FloatField(null=True, blank=True)
    #: Up to when those are spread that were put off because of it.
    spread_until = models.DateTimeField(null=True, blank=True)
    #: When the other side last asked to slow down, and when the rate was last raised since.
    slowed_at = models.DateTimeField(null=True, blank=True)
    raised_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, help_text="Why it is slowed down.")

    class Meta:
        ordering: ClassVar = ["key"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(rate__gt=0), name="sendonce_limit_rate")
        ]

    def __str__(self) -> str:
        return limit_words(self.key, getattr(self, "account_name", None) or "")


class CampaignHealth(models.Model):
    """What the brakes of a campaign count, by all workers; a summary, not the ledger."""

    campaign = models.OneToOneField(
        Campaign, models.CASCADE, primary_key=True, related_name="health"
    )
    accepted = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    refused = models.BigIntegerField(default=0, db_default=0)
    complained = models.BigIntegerField(default=0, db_default=0)
    #: Refusals that speak of the sender since the last acceptance.
    in_a_row = models.IntegerField(default=0, db_default=0)
    #: What the counts were when staff resumed it last, and what staff were told: the rates are
    #: taken from there. See ``sending.sql.health``.
    base = models.JSONField(default=dict, blank=True)
    updated = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "campaign's brakes"
        verbose_name_plural = "campaigns' brakes"

    def __str__(self) -> str:
        return f"brakes of {self.campaign}"


class TransportPause(models.Model):
    """A transport that does not take mail now: one row while it lasts, gone when it works.

    ``account`` null: the transport itself (unreachable, refused login); set: the relay refuses
    this account's sender address.
    """

    alias = models.CharField(max_length=50)
    account = models.ForeignKey(Account, models.CASCADE, null=True, blank=True)
    stage = models.CharField(max_length=20)
    code = models.SmallIntegerField(null=True, blank=True)
    reason = models.CharField(max_length=500)
    since = models.DateTimeField(db_default=Now())
    failures = models.PositiveIntegerField(default=1)
    #: Whoever moves this forward by compare-and-set makes the next try.
    probe_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            # Two, because NULLS NOT DISTINCT needs PostgreSQL 15.
            models.UniqueConstraint(fields=["alias", "account"], name="sendonce_pause_account"),
            models.UniqueConstraint(
                fields=["alias"], condition=Q(account__isnull=True), name="sendonce_pause_alias"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alias}: {self.reason}"


class Installation(models.Model):
    """What makes this installation itself; one row, made when first asked for.

    The namespace goes into every Message-ID and deduplication key, so that two installations
    never share one. The cluster's identity is what the last sender saw: after a failover or a
    restore, senders wait until staff confirm it.
    """

    id = models.PositiveSmallIntegerField(
        primary_key=True, default=1, validators=[MinValueValidator(1)], editable=False
    )
    namespace = models.UUIDField(editable=False)
    system_identifier = models.CharField(max_length=32, blank=True)
    timeline = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="sendonce_installation_one")
        ]

    def __str__(self) -> str:
        return str(self.namespace)
