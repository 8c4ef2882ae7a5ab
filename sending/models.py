"""The ledger: one row per recipient, the workers that move them, and what happened."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from campaigns.models import Campaign, Content
from subscribers.models import Account, Subscriber, lower_c

from .wording import limit_words


class Worker(models.Model):
    """One ``run_sender`` process. ``ended`` is set when it signed off; a dead one never does."""

    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    lanes = models.PositiveIntegerField()
    started = models.DateTimeField()
    seen = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)
    #: True when it holds the session advisory lock of its id (direct connections only).
    locked = models.BooleanField(default=False)
    note = models.CharField(max_length=500, blank=True, help_text="What it waits for, if anything.")
    #: Open mail sessions by transport, of those with a limit of connections.
    sessions = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), blank=True
    )

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Send(models.Model):
    """One message to one person: the queue entry, the lock and the record of it.

    Rows change only through ``sending.queue``, ``sending.handover``, ``sending.settle``,
    ``sending.rescue``, ``sending.withdraw``, ``sending.doubt``, ``sending.limits.admission``,
    ``sending.tracking.effects`` and ``sending.erasure``.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", "queued"
        CLAIMED = "claimed", "claimed"
        SENDING = "sending", "sending"
        RETRY = "retry", "retry"
        SENT = "sent", "sent"
        BOUNCED = "bounced", "bounced"
        FAILED = "failed", "failed"
        SUPPRESSED = "suppressed", "suppressed"
        IN_DOUBT = "in_doubt", "in doubt"
        CANCELED = "canceled", "canceled"

    account = models.ForeignKey(Account, models.PROTECT, related_name="sends", db_index=False)
    campaign = models.ForeignKey(
        Campaign, models.PROTECT, null=True, blank=True, related_name="sends", db_index=False
    )
    subscriber = models.ForeignKey(
        Subscriber, models.SET_NULL, null=True, blank=True, related_name="sends"
    )
    email = models.CharField(max_length=320, null=True, blank=True)  # noqa: DJ001 (null: erased)
    email_lower = models.GeneratedField(
        expression=lower_c("email"),
        output_field=models.CharField(max_length=320, null=True),
        db_persist=True,
    )
    email_hash = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    job_id = models.CharField(max_length=300, unique=True)

    #: A message that does not go by its account's transport: the alias.
    transport = models.CharField(max_length=50, blank=True, db_default="")
    #: A transactional message brings its own content and context and dies at ``expires``.
    content = models.ForeignKey(
        Content, models.PROTECT, null=True, blank=True, related_name="sends", db_index=False
    )
    context = models.JSONField(null=True, blank=True)
    expires = models.DateTimeField(null=True, blank=True)

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    #: Hand-overs made and not refunded.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Set: the row is in retry, or was before its claim.
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    claim_token = models.UUIDField(null=True, blank=True)
    #: Tokens of earlier hand-overs whose fate is unknown: an acceptance may still come.
    doubt_tokens = ArrayField(models.UUIDField(), default=list, blank=True)
    worker = models.ForeignKey(
        Worker,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="sends",
        db_index=False,
        # No constraint: its check would lock the worker's row at every claim, next to the
        # heartbeat that updates it.
        db_constraint=False,
    )
    lease_until = models.DateTimeField(null=True, blank=True)
    handed_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    #: In doubt and to be settled by the account's policy then; null: held for evidence.
    settle_at = models.DateTimeField(null=True, blank=True)
    provider_message_id = models.CharField(max_length=300, blank=True)

    #: What a message over a deduplicating transport is made of, fixed before its first hand-over:
    #: merge context, Date and the like. See ``sending.compose``.
    frozen = models.JSONField(null=True, blank=True)
    #: The transport of the last hand-over and a fingerprint of its credentials; see
    #: ``sending.transports``.
    via = models.CharField(max_length=80, blank=True, db_default="")
    #: In doubt over a deduplicating transport: a replay is harmless until then.
    replay_until = models.DateTimeField(null=True, blank=True)
    #: Replays begun of the hand-over in doubt; 0: none, or a person asked for another hand-over.
    replays = models.PositiveSmallIntegerField(default=0, db_default=0)
    #: How often staff asked for it again after it had failed; part of the deduplication key.
    repeats = models.PositiveSmallIntegerField(default=0, db_default=0)

    answer_stage = models.CharField(max_length=20, blank=True)
    answer_code = models.SmallIntegerField(null=True, blank=True)
    answer_enhanced = models.CharField(max_length=20, blank=True)
    answer_text = models.CharField(max_length=500, blank=True)
    #: Why, in the vocabulary of ``sending.outcomes.Reason``.
    reason = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [("resolve_doubt", "Can decide about sends in doubt")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["campaign", "subscriber"], name="sendonce_send_subscriber"
            ),
            models.UniqueConstraint(
                fields=["campaign", "email_lower"], name="sendonce_send_address"
            ),
            models.UniqueConstraint(
                fields=["campaign", "email_hash"],
                condition=Q(email_hash__isnull=False),
                name="sendonce_send_hash",
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=["queued", "suppressed", "canceled", "failed", "bounced", "in_doubt"]
                )
                | Q(status="retry", next_attempt_at__isnull=False)
                | Q(status="claimed", claim_token__isnull=False, lease_until__isnull=False)
                | Q(
                    status="sending",
                    claim_token__isnull=False,
                    lease_until__isnull=False,
                    handed_at__isnull=False,
                    attempts__gte=1,
                )
                | Q(status="sent", sent_at__isnull=False),
                name="sendonce_send_status",
            ),
            models.CheckConstraint(
                condition=~Q(status="queued")
                | Q(
                    claim_token__isnull=True, lease_until__isnull=True, next_attempt_at__isnull=True
                ),
                name="sendonce_send_queued",
            ),
            models.CheckConstraint(
                condition=~Q(status="retry")
                | Q(claim_token__isnull=True, lease_until__isnull=True),
                name="sendonce_send_retry",
            ),
            models.CheckConstraint(
                condition=~Q(status="in_doubt")
                | Q(claim_token__isnull=False, handed_at__isnull=False),
                name="sendonce_send_doubt",
            ),
            models.CheckConstraint(
                condition=Q(settle_at__isnull=True) | Q(status="in_doubt"),
                name="sendonce_send_settle",
            ),
            models.CheckConstraint(
                condition=Q(campaign__isnull=False, content__isnull=True)
                | Q(
                    campaign__isnull=True,
                    content__isnull=False,
                    context__isnull=False,
                    expires__isnull=False,
                ),
                name="sendonce_send_kind",
            ),
            models.CheckConstraint(
                condition=Q(email__isnull=False) | Q(email_hash__isnull=False),
                name="sendonce_send_identity",
            ),
        ]
        indexes: ClassVar = [
            # Claim: the next queued rows of one campaign (or of none: transactional), by id.
            models.Index(
                fields=["campaign", "id"],
                condition=Q(status="queued"),
                name="sendonce_send_claim",
            ),
            # Claim: retries of one campaign that fell due.
            models.Index(
                fields=["campaign", "next_attempt_at"],
                condition=Q(status="retry"),
                name="sendonce_send_due",
            ),
            # Rescue: leases that ran out. Holds only what is in flight, so finish scans it too.
            models.Index(
                fields=["lease_until"],
                condition=Q(status__in=["claimed", "sending"]),
                name="sendonce_send_lease",
            ),
            # Doubt desk and policies: what waits for evidence, by campaign.
            models.Index(
                fields=["campaign", "id"],
                condition=Q(status="in_doubt"),
                name="sendonce_send_in_doubt",
            ),
            # Tracking events of providers that give no metadata back.
            models.Index(
                fields=["provider_message_id"],
                condition=~Q(provider_message_id=""),
                name="sendonce_send_provider_id",
            ),
            # One person's story, and what an address still has coming.
            models.Index(fields=["account", "email_lower"], name="sendonce_send_person"),
            # An erased person's story.
            models.Index(
                fields=["email_hash"],
                condition=Q(email_hash__isnull=False),
                name="sendonce_send_erased",
            ),
            # Whether a transactional content is used by anybody else, when a person is erased.
            models.Index(
                fields=["content"],
                condition=Q(content__isnull=False),
                name="sendonce_send_content",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} to {self.email or 'an erased person'}"


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
