"""The table of sends, filled and emptied in bulk. Needs Django set up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from campaigns.models import Campaign
    from subscribers.models import Segment

SEND = "sendonce_sending_send"
#: What the build writes.
COLUMNS = (
    "account_id, campaign_id, subscriber_id, email, job_id, status, reason, attempts, "
    "doubt_tokens, provider_message_id, answer_stage, answer_enhanced, answer_text"
)


def execute(statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def processor_seconds() -> float:
    """What this session's server process has used so far; 0 where the kernel doesn't tell."""
    ((pid,),) = execute("SELECT pg_backend_pid()")
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def empty() -> None:
    """No send, no event; campaigns that were sending are over."""
    execute(f"TRUNCATE {SEND}, sendonce_sending_deliveryevent")
    execute("UPDATE sendonce_campaigns_campaign SET status = 'canceled' WHERE status = 'sending'")
    execute("VACUUM sendonce_campaigns_campaign")
    execute("CHECKPOINT")


def sending(segment: Segment, count: int, *, built: bool = True) -> list[int]:
    """Ids of so many campaigns to the segment that are being sent, without a row."""
    from campaigns.models import Campaign

    from ..harness import campaign

    first: Campaign = campaign.approved(segment)
    Campaign.objects.filter(pk=first.pk).update(status="sending", started_at=first.approved_at)
    if built:
        Campaign.objects.filter(pk=first.pk).update(built_at=first.approved_at)
    first.refresh_from_db()
    copies = []
    for number in range(1, count):
        copy = Campaign.objects.get(pk=first.pk)
        copy.pk, copy.name = None, f"Bench {number}"
        copies.append(copy)
    return [first.pk, *(made.pk for made in Campaign.objects.bulk_create(copies))]


def fill(segment: Segment, campaigns: list[int], rows: int, *, sent: bool) -> None:
    """So many rows of these campaigns together, to the segment's first people; with ``sent``
    each campaign's first half was sent."""
    each = rows // len(campaigns)
    with bare():
        execute(
            f"INSERT INTO {SEND} ({COLUMNS}, claim_token, handed_at, sent_at, answer_code) "
            "SELECT p.account_id, c.id, p.id, p.email, 'campaign:' || c.id || ':' || p.id, "
            "CASE WHEN p.done THEN 'sent' ELSE 'queued' END, '', p.done::int, '{}', "
            "CASE WHEN p.done THEN 'q-' || c.id || '-' || p.id ELSE '' END, "
            "CASE WHEN p.done THEN 'dot' ELSE '' END, '', "
            "CASE WHEN p.done THEN '2.0.0 Ok: queued as 4711ABCDEF' ELSE '' END, "
            "CASE WHEN p.done THEN gen_random_uuid() END, CASE WHEN p.done THEN now() END, "
            "CASE WHEN p.done THEN now() END, CASE WHEN p.done THEN 250 END "
            "FROM (SELECT s.*, %s AND row_number() OVER (ORDER BY s.id) <= %s AS done "
            "  FROM sendonce_subscribers_subscriber s JOIN sendonce_subscribers_membership m "
            "  ON m.subscriber_id = s.id AND m.segment_id = %s ORDER BY s.id LIMIT %s) p, "
            "unnest(%s::bigint[]) AS c(id) ORDER BY p.id, c.id",
            [sent, each // 2, segment.pk, each, campaigns],
        )
    execute(f"VACUUM (ANALYZE) {SEND}")
    execute("CHECKPOINT")


@contextmanager
def bare(*tables: str) -> Iterator[None]:
    """These tables (by themselves the sends) without indexes (but the primary key), triggers and
    checks of foreign keys meanwhile: ten million rows are made in minutes, not in an hour."""
    names = list(tables) or [SEND]
    unique = execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conrelid = ANY(%s::regclass[]) AND contype = 'u'",
        [names],
    )
    for table, name, _ in unique:
        execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    indexes = execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = ANY(%s::regclass[]) AND NOT indisprimary",
        [names],
    )
    for name, _ in indexes:
        execute(f"DROP INDEX {name}")
    execute("SET session_replication_role = replica")
    try:
        yield
    finally:
        execute("RESET session_replication_role")
        execute("SET maintenance_work_mem = '512MB'")
        for table, name, definition in unique:
            execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
        for _, definition in indexes:
            execute(definition)
        execute("RESET maintenance_work_mem")
