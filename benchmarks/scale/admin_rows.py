"""Rows for the admin's lists: of several accounts, made by the database itself."""

from __future__ import annotations

from typing import Any

from .ledger_table import bare, execute, processor_seconds

__all__ = ["execute", "fill", "processor_seconds"]

#: Accounts that share most rows evenly; one more has the oldest few of each table alone.
ACCOUNTS = 5
#: Of each table, the share that the small account has.
RARE = 1000
#: One message of so many is without a campaign.
SINGLE = 50
#: Tables that are never as long as the ledger end here.
SHORT = 10_000


def account_of(n: str, rows: int) -> str:
    """SQL: whose row number ``n`` of so many it is, by the account's id."""
    return (
        f"CASE WHEN {n} <= {max(rows // RARE, 1)} THEN {ACCOUNTS + 1} ELSE 1 + {n} % {ACCOUNTS} END"
    )


def insert(model: Any, rows: int, **given: str) -> None:
    """So many rows, numbered ``n`` from 1: ``given`` are columns as SQL, the others are what the
    model's fields are by themselves. The row's id is its number."""
    from django.db import connection
    from django.db.models import GeneratedField
    from django.db.models.fields import NOT_PROVIDED

    columns = {"id": "n"} if any(f.column == "id" for f in model._meta.concrete_fields) else {}
    columns |= {name: value.replace("%", "%%") for name, value in given.items()}
    parameters: list[Any] = []
    for field in model._meta.concrete_fields:
        if field.column in columns or field.null or isinstance(field, GeneratedField):
            continue
        if field.db_default is not NOT_PROVIDED:
            continue
        if getattr(field, "auto_now_add", False):
            columns[field.column] = "now()"
            continue
        columns[field.column] = "%s"
        parameters.append(field.get_db_prep_save(field.get_default(), connection))
    names = ", ".join(f'"{name}"' for name in columns)
    execute(
        f"INSERT INTO {model._meta.db_table} ({names}) "
        f"SELECT {', '.join(columns.values())} FROM generate_series(1, {rows}) AS n",
        parameters,
    )


def fill(rows: int) -> None:
    """Every table of the admin's lists: so many rows of those that grow with what is sent, and at
    most ``SHORT`` of the others."""
    from django.apps import apps

    labels = ("sendonce_sending", "sendonce_campaigns", "sendonce_subscribers")
    tables = [m._meta.db_table for label in labels for m in apps.get_app_config(label).get_models()]
    execute(f"TRUNCATE {', '.join(tables)} CASCADE")
    execute("SET synchronous_commit = off")
    with bare(*tables):
        _people(rows)
        _campaigns(rows)
        _sends(rows)
    _counters()
    execute("VACUUM (ANALYZE)")
    execute("CHECKPOINT")
    execute("RESET synchronous_commit")


def _counters() -> None:
    """What the triggers, which were off, would have left, rolled up."""
    hour = "date_bin('1 hour', {}, timestamptz '1970-01-01 00:00:00+00')"
    into = (
        "INSERT INTO sendonce_sending_ledgercount (campaign_id, what, status, reason, hour, number)"
    )
    execute(
        f"{into} SELECT campaign_id, 0, status, reason, {hour.format('now()')}, count(*) "
        "FROM sendonce_sending_send WHERE campaign_id IS NOT NULL GROUP BY 1, 3, 4"
    )
    execute(
        f"{into} SELECT s.campaign_id, 1, e.kind, e.reason, {hour.format('e.at')}, count(*) "
        "FROM sendonce_sending_deliveryevent e JOIN sendonce_sending_send s ON s.id = e.send_id "
        "WHERE s.campaign_id IS NOT NULL GROUP BY 1, 3, 4, 5"
    )


def _people(rows: int) -> None:
    from subscribers import models as m

    short = min(rows, SHORT)
    whose, few = account_of("n", rows), account_of("n", short)
    insert(m.Account, ACCOUNTS + 1, name="'Account ' || n", slug="'account-' || n",
           from_email="'news' || n || '@example.org'")  # fmt: skip
    segments = min(rows, 200)
    insert(m.Segment, segments, account_id=account_of("n", segments),
           name="'Segment ' || n", slug="'segment-' || n")  # fmt: skip
    insert(
        m.Subscriber, rows, account_id=whose, email="'person' || n || '@example.org'",
        status="CASE n % 20 WHEN 0 THEN 'unsubscribed' WHEN 1 THEN 'pending' ELSE 'confirmed' END",
        attributes="jsonb_build_object('first_name', 'Zoe ' || n)",
    )  # fmt: skip
    # One of the same account: the first is the small account's alone.
    of_segment = (
        f"CASE WHEN n <= {max(rows // RARE, 1)} THEN 1 WHEN n % {segments} = 1 "
        f"THEN {1 + ACCOUNTS} ELSE 1 + (n - 1) % {segments} END"
    )
    insert(m.Membership, rows, segment_id=of_segment, subscriber_id="n",
           joined_at="now() - n % 400 * interval '1 day'",
           left_at="CASE WHEN n % 49 = 0 THEN now() END")  # fmt: skip
    insert(m.MembershipChange, rows, segment_id=of_segment, subscriber_id="n",
           kind="CASE WHEN n % 997 = 0 THEN 'joined' ELSE 'left' END")  # fmt: skip
    insert(m.Suppression, rows, account_id=whose, email="'person' || n || '@example.org'",
           reason="(ARRAY['hard_bounce','complaint','manual'])[1 + n % 3]",
           expires="CASE WHEN n % 3 = 0 THEN now() + (n % 400 - 35) * interval '1 day' END"
           )  # fmt: skip
    insert(
        m.AuditEvent, rows, account_id=whose, by_name="'staff'",
        verb="CASE WHEN n % 9973 = 1 THEN 'segment.delete' "
        "ELSE 'act.of_kind_' || n % 12 END",
        subject="'person' || n || '@example.org'",
        at=f"now() - ({rows} - n) * interval '30 seconds'",
    )  # fmt: skip
    insert(m.Signup, rows, account_id=whose, email="'person' || n || '@example.org'",
           kind="CASE WHEN n % 9973 = 1 THEN 'address' ELSE 'join' END", email_hash="md5(n::text)",
           confirmed_at="CASE WHEN n % 3 > 0 THEN now() END")  # fmt: skip
    insert(m.SignupAttempt, rows, account_id=whose, address_hash="md5(n::text)",
           network="'192.0.2.0/24'",
           outcome="CASE WHEN n % 97 = 0 THEN 'account' ELSE 'mailed' END")  # fmt: skip
    insert(m.ImportJob, short, account_id=few, file_name="'people-' || n || '.csv'",
           by_name="'staff'",
           status="(ARRAY['done','failed','draft','canceled'])[1 + n % 4]")  # fmt: skip
    insert(m.ConsentText, short, account_id=few, text="'Words ' || n", digest="md5(n::text)")
    insert(m.AttributeDefinition, short, account_id=few, key="'key_' || n", kind="'text'")
    insert(m.SignupForm, short, account_id=few, name="'Form ' || n", slug="'form-' || n")


def campaigns_of(rows: int) -> int:
    return max(min(rows // 10, 1000), 1)


def _campaigns(rows: int) -> None:
    from campaigns import models as m

    number = campaigns_of(rows)
    whose = account_of("n", number)
    words = "repeat('<p>Spring has come, and our catalogue with it.</p>', 100)"
    insert(m.Content, number, account_id=whose, subject="'Spring ' || n", html=words,
           from_email="'news@example.org'")  # fmt: skip
    insert(
        m.Campaign, number, account_id=whose, name="'Campaign ' || n", subject="'Spring ' || n",
        body=words, content_id="n", status="CASE WHEN n % 50 = 0 THEN 'sending' ELSE 'sent' END",
        scheduled_for="now()", approved_at="now()", approved_digest="md5(n::text)",
        built_at="now()", started_at="now()", finished_at="now()", audience="1000",
    )  # fmt: skip
    insert(m.Approval, number, campaign_id="n", by_name="'staff'", at="now()",
           digest="md5(n::text)", scheduled_for="now()", content_id="n")  # fmt: skip
    short = min(rows, SHORT)
    insert(m.Layout, min(rows, 200), account_id=account_of("n", min(rows, 200)),
           name="'Layout ' || n", body="'<html></html>'")  # fmt: skip
    insert(m.Image, short, account_id=account_of("n", short), key="gen_random_uuid()",
           file="'sendonce/images/' || n || '.png'", name="'Image ' || n",
           content_type="'image/png'")  # fmt: skip


def _sends(rows: int) -> None:
    from sending import models as m

    number = campaigns_of(rows)
    single = f"n % {SINGLE} = 0"
    # The newest campaign has half of the rows, as large ones have; the others share the rest.
    campaign = (
        f"CASE WHEN n <= {rows // 2} AND {number} > 1 "
        f"THEN 1 + (n - 1) * {number - 1}::bigint / {max(rows // 2, 1)} ELSE {number} END"
    )
    whose = (
        f"CASE WHEN {single} THEN {account_of('n', rows)} "
        f"ELSE {account_of(f'({campaign})', number)} END"
    )
    status = (
        f"CASE WHEN {single} THEN 'sent' "
        # A campaign that has just begun: the newest and largest.
        f"WHEN n > {rows // 2 + rows // 100} THEN 'queued' "
        "WHEN n % 200 = 0 THEN 'bounced' WHEN n % 333 = 0 THEN 'failed' "
        "WHEN n % 5003 = 0 THEN 'in_doubt' WHEN n % 7001 = 0 THEN 'suppressed' "
        f"WHEN n <= {rows // 50} AND n % 2 = 0 THEN 'canceled' ELSE 'sent' END"
    )
    insert(
        m.Send, rows, account_id=whose,
        campaign_id=f"CASE WHEN NOT ({single}) THEN {campaign} END",
        subscriber_id="n", email="'person' || n || '@example.org'",
        job_id=f"CASE WHEN {single} THEN 'message:1:test:' || n "
        f"ELSE 'campaign:' || ({campaign}) || ':' || n END",
        content_id=f"CASE WHEN {single} THEN 1 END",
        context=f"CASE WHEN {single} THEN '{{}}'::jsonb END",
        expires=f"CASE WHEN {single} THEN now() END",
        status=status, attempts="1",
        claim_token=f"CASE WHEN {status} <> 'queued' THEN gen_random_uuid() END",
        handed_at=f"CASE WHEN {status} <> 'queued' THEN now() END",
        sent_at=f"CASE WHEN {status} = 'sent' THEN now() END",
        provider_message_id=f"CASE WHEN {status} <> 'queued' THEN 'q-' || n ELSE '' END",
        answer_stage="'dot'", answer_code="250",
        answer_text="'2.0.0 Ok: queued as 4711ABCDEF'",
    )  # fmt: skip
    insert(
        m.DeliveryEvent, rows, send_id="n", account_id=whose, event_id="'event-' || n",
        kind="(ARRAY['delivered','retry','bounced','deferred'])[1 + n % 4]",
        known="n % 1009 > 0", text="'452 4.2.2 mailbox full'",
    )  # fmt: skip
    insert(
        m.ProviderEvent, rows, event_id="'event-' || n", esp="'Postmark'", kind="'delivered'",
        recipient="'person' || n || '@example.org'", at="now()", applied_at="now()",
        result="'applied'",
    )  # fmt: skip
    short = min(rows, SHORT)
    insert(m.Worker, short, host="'worker.example.org'", pid="n", lanes="8", started="now()",
           seen="now()", ended="CASE WHEN n % 100 > 0 THEN now() END")  # fmt: skip
    insert(m.ArchivedCount, number, campaign_id="n", status="'sent'", number="1000", at="now()")
    insert(m.CampaignHealth, number, campaign_id="n")
    insert(m.WebhookCount, min(rows, 300), esp="'Postmark'", what="'malformed'",
           day="current_date - n::int", count="3")  # fmt: skip
    insert(m.RateLimit, min(rows, 300), key="'domain:provider' || n", rate="5")
