"""What the database itself refuses, whoever writes: each constraint, by a raw UPDATE."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import (
    ArchivedCount,
    Counted,
    DeliveryEvent,
    Installation,
    LedgerCount,
    ProviderEvent,
    RateLimit,
    Send,
    TransportPause,
    WebhookCount,
)
from subscribers.models import Membership, Segment, Subscriber, Suppression
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    CampaignFactory,
    ConsentTextFactory,
    ImageFactory,
    ImportChunkFactory,
    ImportJobFactory,
    LayoutFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SignupFormFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .rows import campaign_to, row

APPS = ("sendonce_subscribers", "sendonce_campaigns", "sendonce_sending")
Row = models.Model
#: What makes the row that is then changed, and the change that must not be.
Case = tuple[Callable[[], Row], str]


def _send(state: str, **fields: Any) -> Callable[[], Row]:
    return lambda: row(campaign_to(0), state, **fields)


def _campaign(status: str) -> Callable[[], Row]:
    trait = {} if status == "draft" else {status: True}
    return lambda: CampaignFactory.create(**trait)


def _message() -> Row:
    message: Row = SendFactory.create(transactional=True)
    return message


def _archived(campaign: Campaign | None = None) -> Row:
    return ArchivedCount.objects.create(
        campaign=campaign or CampaignFactory.create(sent=True),
        status="sent",
        number=1,
        at=timezone.now(),
    )


CHECKS: dict[str, list[Case]] = {
    "sendonce_archived_closed": [
        (_archived, "number = 0"),
        *((_archived, f"status = '{status}'") for status in ("in_doubt", "queued", "sending")),
    ],
    "sendonce_send_status": [
        (_send("queued"), "status = 'delivered'"),
        (_send("queued"), "status = 'retry'"),
        (_send("retry"), "next_attempt_at = NULL"),
        (_send("queued"), "status = 'claimed', lease_until = now()"),
        (_send("claimed"), "claim_token = NULL"),
        (_send("claimed"), "lease_until = NULL"),
        (_send("claimed"), "status = 'sending'"),
        (_send("sending"), "claim_token = NULL"),
        (_send("sending"), "lease_until = NULL"),
        (_send("sending"), "handed_at = NULL"),
        (_send("sending"), "attempts = 0"),
        (_send("sending"), "status = 'sent'"),
        (_send("sent"), "sent_at = NULL"),
    ],
    "sendonce_send_queued": [
        (_send("claimed"), "status = 'queued'"),
        (_send("queued"), "claim_token = gen_random_uuid()"),
        (_send("queued"), "lease_until = now()"),
        (_send("queued"), "next_attempt_at = now()"),
    ],
    "sendonce_send_retry": [
        (_send("retry"), "claim_token = gen_random_uuid()"),
        (_send("retry"), "lease_until = now()"),
    ],
    "sendonce_send_doubt": [
        (_send("in_doubt"), "claim_token = NULL"),
        (_send("in_doubt"), "handed_at = NULL"),
        (_send("claimed"), "status = 'in_doubt'"),
    ],
    "sendonce_send_settle": [
        (_send("sending"), "settle_at = now()"),
        (_send("in_doubt", settle_at=timezone.now()), "status = 'sent', sent_at = now()"),
    ],
    "sendonce_send_kind": [
        (_message, "content_id = NULL"),
        (_message, "context = NULL"),
        (_message, "expires = NULL"),
        (_send("queued"), "campaign_id = NULL"),
        (_send("queued"), "content_id = (SELECT min(id) FROM sendonce_campaigns_content)"),
    ],
    "sendonce_send_identity": [(_send("queued"), "email = NULL")],
    "sendonce_layout_format": [
        (LayoutFactory.create, "body_format = 'markdown'"),
        (LayoutFactory.create, "body_format = ''"),
    ],
    "sendonce_campaign_status": [(_campaign("canceled"), "status = 'archived'")],
    "sendonce_campaign_approved": [
        (_campaign(status), change)
        for status in ("approved", "sending", "paused", "sent")
        for change in (
            "content_id = NULL",
            "scheduled_for = NULL",
            "approved_at = NULL",
            "approved_digest = ''",
        )
    ],
    "sendonce_campaign_draft": [
        (_campaign("approved"), "status = 'draft'"),
        (_campaign("draft"), "approved_digest = 'x'"),
    ],
    "sendonce_campaign_sent": [
        (_campaign("sending"), "status = 'sent'"),
        (_campaign("sent"), "built_at = NULL"),
        (_campaign("sent"), "finished_at = NULL"),
    ],
    "sendonce_import_status": [(ImportJobFactory.create, "status = 'running'")],
    "sendonce_subscriber_status": [(SubscriberFactory.create, "status = 'blocked'")],
    "sendonce_suppression_identity": [
        (SuppressionFactory.create, "email = NULL"),
        (SuppressionFactory.create, "email_hash = 'x'"),
        (SuppressionFactory.create, "reason = 'erased'"),
        (lambda: SuppressionFactory.create(erased_email="a@example.org"), "email = 'a@b.example'"),
        (lambda: SuppressionFactory.create(erased_email="a@example.org"), "email_hash = NULL"),
        (lambda: SuppressionFactory.create(erased_email="a@example.org"), "reason = 'manual'"),
    ],
    "sendonce_limit_rate": [
        (lambda: RateLimit.objects.create(key="transport:default", rate=1), "rate = 0"),
    ],
    "sendonce_installation_one": [
        (lambda: Installation.objects.create(namespace=uuid.uuid4()), "id = 2"),
    ],
}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("constraint", "made", "change"),
    [
        pytest.param(name, made, change, id=f"{name}: {change} ({number})")
        for name, cases in CHECKS.items()
        for number, (made, change) in enumerate(cases)
    ],
)
def test_a_row_that_contradicts_itself_is_refused(
    constraint: str, made: Callable[[], Row], change: str
) -> None:
    entry = made()
    with (
        pytest.raises(IntegrityError, match=constraint),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"UPDATE {entry._meta.db_table} SET {change} WHERE id = %s",
            [entry.pk],
        )


def _two_sends() -> tuple[Row, Row]:
    campaign = campaign_to(0)
    return row(campaign), row(campaign)


def _two_blanked() -> tuple[Row, Row]:
    first, second = _two_sends()
    Send.objects.update(email=None, email_hash=models.F("job_id"))
    return first, second


def _two_suppressions(**fields: Any) -> tuple[Row, Row]:
    if "account" not in fields:
        fields["account"] = AccountFactory.create()
    erased = fields.pop("erased", False)
    extra = [{"erased_email": f"p{n}@example.org"} if erased else {} for n in range(2)]
    return (
        SuppressionFactory.create(**fields, **extra[0]),
        SuppressionFactory.create(**fields, **extra[1]),
    )


def _two_pauses(**fields: Any) -> tuple[Row, Row]:
    made = [
        TransportPause.objects.create(
            alias=alias, stage="connect", reason="refused", probe_at=timezone.now(), **fields
        )
        for alias in ("one", "two")
    ]
    return made[0], made[1]


def _two_people() -> tuple[Row, Row]:
    first = SubscriberFactory.create()
    return first, SubscriberFactory.create(account=first.account)


def _two_of(made: Any, shared: str) -> tuple[Row, Row]:
    first = made.create()
    return first, made.create(**{shared: getattr(first, shared)})


def _two_segments() -> tuple[Row, Row]:
    first = SegmentFactory.create()
    return first, SegmentFactory.create(account=first.account)


def _two_memberships() -> tuple[Row, Row]:
    first = MembershipFactory.create()
    return first, MembershipFactory.create(segment=first.segment)


def _two_counts() -> tuple[Row, Row]:
    day = timezone.now().date()
    made = [WebhookCount.objects.create(esp=esp, what="refused", day=day) for esp in ("a", "b")]
    return made[0], made[1]


def _two_ledger_counts() -> tuple[Row, Row]:
    now = timezone.now()
    campaign = CampaignFactory.create()
    made = [
        LedgerCount.objects.create(
            campaign=campaign, what=Counted.ROWS, status=status, hour=now, number=1
        )
        for status in ("sent", "failed")
    ]
    return made[0], made[1]


def _two_archived() -> tuple[Row, Row]:
    return _archived(), _archived()


def _two_provider_events() -> tuple[Row, Row]:
    made = [
        ProviderEvent.objects.create(event_id=name, esp="a", kind="sent", at=timezone.now())
        for name in ("a:1", "a:2")
    ]
    return made[0], made[1]


#: constraint -> two rows, and what the second takes over from the first.
UNIQUE: dict[str, tuple[Callable[[], tuple[Row, Row]], str]] = {
    "sendonce_send_subscriber": (_two_sends, "subscriber_id = first.subscriber_id"),
    "sendonce_send_address": (_two_sends, "email = upper(first.email)"),
    "sendonce_send_job": (_two_sends, "job_id = first.job_id"),
    "sendonce_send_hash": (_two_blanked, "email_hash = first.email_hash"),
    "sendonce_pause_alias": (_two_pauses, "alias = first.alias"),
    "sendonce_pause_account": (
        lambda: _two_pauses(account=AccountFactory.create()),
        "alias = first.alias",
    ),
    "sendonce_segment_slug": (_two_segments, "slug = first.slug"),
    "sendonce_signupform_slug": (
        lambda: _two_of(SignupFormFactory, "account"),
        "slug = first.slug",
    ),
    "sendonce_consent_text": (
        lambda: _two_of(ConsentTextFactory, "account"),
        "digest = first.digest",
    ),
    "sendonce_layout_name": (lambda: _two_of(LayoutFactory, "account"), "name = first.name"),
    "sendonce_attribute_key": (
        lambda: _two_of(AttributeDefinitionFactory, "account"),
        "key = first.key",
    ),
    "sendonce_importchunk_once": (
        lambda: _two_of(ImportChunkFactory, "job"),
        "number = first.number",
    ),
    "sendonce_subscriber_address": (_two_people, "email = upper(first.email)"),
    "sendonce_membership_once": (_two_memberships, "subscriber_id = first.subscriber_id"),
    "sendonce_suppression_account": (_two_suppressions, "email = upper(first.email)"),
    "sendonce_suppression_global": (
        lambda: _two_suppressions(account=None),
        "email = upper(first.email)",
    ),
    "sendonce_suppression_hash": (
        lambda: _two_suppressions(erased=True),
        "email_hash = first.email_hash",
    ),
    "sendonce_suppression_ghash": (
        lambda: _two_suppressions(account=None, erased=True),
        "email_hash = first.email_hash",
    ),
    "sendonce_archived_once": (_two_archived, "campaign_id = first.campaign_id"),
    "sendonce_count_once": (_two_ledger_counts, "status = first.status"),
    "sendonce_webhook_count": (_two_counts, "esp = first.esp"),
    # Unique columns: the name that Django gives them begins with the table's.
    "sendonce_campaigns_image_key": (lambda: _two_of(ImageFactory, "account"), "key = first.key"),
    "sendonce_sending_providerevent_event_id": (_two_provider_events, "event_id = first.event_id"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("constraint", list(UNIQUE))
def test_what_may_be_once_is_once(constraint: str) -> None:
    made, change = UNIQUE[constraint]
    first, second = made()
    table = second._meta.db_table
    with (
        pytest.raises(IntegrityError, match=constraint),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"UPDATE {table} AS second SET {change} FROM {table} AS first"
            " WHERE first.id = %s AND second.id = %s",
            [first.pk, second.pk],
        )


@pytest.mark.django_db
def test_an_event_told_twice_is_there_once() -> None:
    account = AccountFactory.create()
    DeliveryEvent.objects.create(account=account, kind="bounced", event_id="e-1")
    with pytest.raises(IntegrityError, match="event_id"), transaction.atomic():
        DeliveryEvent.objects.create(account=account, kind="bounced", event_id="e-1")
    DeliveryEvent.objects.create(account=account, kind="bounced")
    DeliveryEvent.objects.create(account=account, kind="bounced")


def test_every_constraint_is_tried() -> None:
    declared = {
        constraint.name
        for label in APPS
        for model in apps.get_app_config(label).get_models()
        for constraint in model._meta.constraints
    }
    assert declared <= {*CHECKS, *UNIQUE}


# --- what a deletion takes with it -----------------------------------------------------------


@pytest.mark.django_db
def test_sends_outlive_their_subscriber_and_hold_their_campaign() -> None:
    send = row(campaign_to(0))
    assert send.subscriber is not None
    send.subscriber.delete()
    assert Send.objects.filter(job_id=send.job_id, subscriber=None, email=send.email).exists()
    with pytest.raises(models.ProtectedError):
        Campaign.objects.filter(sends=send).delete()
    with (
        pytest.raises(IntegrityError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE; DELETE FROM sendonce_campaigns_campaign WHERE id = %s",
            [send.campaign_id],
        )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "spelt", "lower"),
    [
        (Subscriber, "ÄNN@Example.ORG", "Änn@example.org"),
        (Suppression, "I@X.EXAMPLE", "i@x.example"),
    ],
)
def test_addresses_are_compared_without_the_locale(
    model: type[Subscriber | Suppression], spelt: str, lower: str
) -> None:
    """Under the C collation only ASCII letters change, on every machine alike."""
    made: Any = (SubscriberFactory if model is Subscriber else SuppressionFactory).create(
        email=spelt
    )
    made.refresh_from_db()
    assert made.email_lower == lower


# --- migrations ------------------------------------------------------------------------------


def test_the_migrations_go_back_and_forth(
    manage: Callable[..., subprocess.CompletedProcess[str]], database_url: str
) -> None:
    def tables() -> set[str]:
        with psycopg.connect(database_url) as session:
            return {
                name
                for (name,) in session.execute(
                    "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sendonce%'"
                )
            }

    before = tables()
    assert len(before) >= len({Segment, Membership, Send, Campaign})
    back = manage("migrate", "sendonce_subscribers", "zero")
    assert back.returncode == 0, back.stderr
    assert tables() == set()
    forth = manage("migrate")
    assert forth.returncode == 0, forth.stderr
    assert tables() == before
