"""The ledger: one row per message, and the processes that move them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Q, Value, When

from campaigns.models import Campaign, Content
from subscribers.models import Account, Subscriber, lower_c


class Worker(models.Model):
    """One ``run_sender`` process. ``ended`` is set when it signed off; a dead one never does."""

    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    lanes = models.PositiveIntegerField()
    #: Mail sessions that each lane may have to a transport without a limit of connections.
    sessions_a_lane = models.PositiveSmallIntegerField(default=1, db_default=1)
    started = models.DateTimeField()
    seen = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)
    #: True when it holds the session advisory lock of its id (direct connections only).
    locked = models.BooleanField(default=False)
    note = models.CharField(max_length=500, blank=True, help_text="What it waits for, if anything.")
    #: The id of the campaign that it was started for alone; null: it serves all, and single
    #: messages. A number and no key: a campaign that is gone must not make it serve all.
    only_campaign = models.BigIntegerField(null=True, blank=True)
    #: Open mail sessions by transport, of those with a limit of connections.
    sessions = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), blank=True
    )

    class Meta:
        verbose_name = "sender"
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Send(models.Model):
    """One message to one person: the queue entry, the lock and the record of it.

    Rows change only through ``sending.queue``, ``sending.handover``, ``sending.settle``,
    ``sending.rescue``, ``sending.withdraw``, ``sending.doubt``, ``sending.limits.admission``,
    ``sending.tracking.effects`` and ``sending.erasure``; ``sending.pruning`` makes old ones counts.
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

    class Queue(models.IntegerChoices):
        """Which of the queues of the indexes below a row stands in; none once it was sent."""

        QUEUED = 1, "queued"
        RETRY = 2, "retry"
        #: Claimed or sending: one queue, so that a hand-over changes nothing that is indexed.
        IN_FLIGHT = 3, "in flight"
        IN_DOUBT = 4, "in doubt"
        # No queues, but for whom they are lists as short as one. From here on nothing is open.
        BOUNCED = 5, "bounced"
        FAILED = 6, "failed"
        SUPPRESSED = 7, "suppressed"
        CANCELED = 8, "canceled"

    #: The queue of a status that has one.
    QUEUE_OF: ClassVar[dict[str, Queue]] = {
        Status.QUEUED: Queue.QUEUED,
        Status.RETRY: Queue.RETRY,
        Status.CLAIMED: Queue.IN_FLIGHT,
        Status.SENDING: Queue.IN_FLIGHT,
        Status.IN_DOUBT: Queue.IN_DOUBT,
        Status.BOUNCED: Queue.BOUNCED,
        Status.FAILED: Queue.FAILED,
        Status.SUPPRESSED: Queue.SUPPRESSED,
        Status.CANCELED: Queue.CANCELED,
    }

    account = models.ForeignKey(Account, models.PROTECT, related_name="sends", db_index=False)
    campaign = models.ForeignKey(
        Campaign, models.PROTECT, null=True, blank=True, related_name="sends", db_index=False
    )
    subscriber = models.ForeignKey(
        Subscriber, models.SET_NULL, null=True, blank=True, related_name="sends", db_index=False
    )
    email = models.CharField(max_length=320, null=True, blank=True)  # noqa: DJ001 (null: erased)
    email_lower = models.GeneratedField(
        expression=lower_c("email"),
        output_field=models.CharField(max_length=320, null=True),
        db_persist=True,
    )
    email_hash = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    job_id = models.CharField(max_length=300)

    #: A message that does not go by its account's transport: the alias.
    transport = models.CharField(max_length=50, blank=True, db_default="")
    #: A transactional message brings its own content and context and dies at ``expires``.
    content = models.ForeignKey(
        Content, models.PROTECT, null=True, blank=True, related_name="sends", db_index=False
    )
    context = models.JSONField(null=True, blank=True)
    expires = models.DateTimeField(null=True, blank=True)

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    #: What the partial indexes are about in the status' stead: PostgreSQL writes all indexes of a
    #: row anew when a column changes that any of them speaks of. A query that is to find one of
    #: them must ask for it: ``queue=Send.Queue.IN_DOUBT``, not ``status="in_doubt"``.
    queue = models.GeneratedField(
        expression=Case(
            *(
                When(status=str(status), then=Value(int(queue)))
                for status, queue in QUEUE_OF.items()
            )
        ),
        output_field=models.SmallIntegerField(null=True),
        db_persist=True,
    )
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
        verbose_name="sender",
        db_index=False,
        # No constraint: its check would lock the worker's row at every claim, next to the
        # heartbeat that updates it.
        db_constraint=False,
    )
    lease_until = models.DateTimeField(null=True, blank=True)
    #: When the last look before the network began; an opt-out committed before it was heeded.
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
        # A claim and an outcome write all indexes anew that are not partial: there are as few of
        # these as the look-ups need. A hand-over writes none.
        constraints: ClassVar = [
            # Not ``unique=True``, which makes a second index, for LIKE.
            models.UniqueConstraint(fields=["job_id"], name="sendonce_send_job"),
            # Person and address first: they are looked for by themselves, too.
            models.UniqueConstraint(
                fields=["subscriber", "campaign"], name="sendonce_send_subscriber"
            ),
            models.UniqueConstraint(
                fields=["email_lower", "campaign"], name="sendonce_send_address"
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
            # All rows of a campaign, in slices or latest first.
            models.Index(fields=["campaign", "id"], name="sendonce_send_campaign"),
            # Claim: the next queued rows of one campaign (or of none: transactional), by id.
            models.Index(
                fields=["campaign", "id"],
                condition=Q(queue=1),
                name="sendonce_send_claim",
            ),
            # Claim: retries of one campaign that fell due.
            models.Index(
                fields=["campaign", "next_attempt_at"],
                condition=Q(queue=2),
                name="sendonce_send_due",
            ),
            # Rescue, and finish: what is in flight, a few thousand rows at most. Not by the lease,
            # which the hand-over and each renewal change.
            models.Index(
                fields=["campaign", "id"],
                condition=Q(queue=3),
                name="sendonce_send_flight",
            ),
            # Doubt desk and policies: what waits for evidence, by campaign.
            models.Index(
                fields=["campaign", "id"],
                condition=Q(queue=4),
                name="sendonce_send_in_doubt",
            ),
            # Lists of a campaign's rows that ended, but were not sent: the few among the many.
            models.Index(
                fields=["campaign", "queue", "id"],
                condition=Q(queue__gte=5),
                name="sendonce_send_ended",
            ),
            # Lists of an account's messages without a campaign.
            models.Index(
                fields=["account", "id"],
                condition=Q(campaign__isnull=True),
                name="sendonce_send_single",
            ),
            # Tracking events of providers that give no metadata back.
            models.Index(
                fields=["provider_message_id"],
                condition=~Q(provider_message_id=""),
                name="sendonce_send_provider_id",
            ),
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
