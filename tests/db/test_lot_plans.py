"""What a lane says about a lot reads that lot, also in a table that could be read whole: behind a
transaction pooler, or in a young session, the planner looks at the ids, and counts them."""

from __future__ import annotations

import random
import re
import uuid
from typing import Any

import pytest
from django.db import connection

from campaigns.models import Campaign
from sending import sql
from sending.models import Send
from sending.sql import limits, tracking
from tests.factories import CampaignFactory

pytestmark = pytest.mark.django_db

ROWS, LOT = 2000, 1000
WHOLE = re.compile(rf"Seq Scan on {sql.SEND}\b")
SQUARE = re.compile(r"Index Cond: .*\bid = \w+\.(send_)?id\b.*= ANY \(\(InitPlan")
#: Of each row of the lot.
OTHERS: dict[str, Any] = {
    "tokens": str(uuid.UUID(int=1)), "hashes": "", "frozen": None, "message_ids": "", "stages": "",
    "codes": 250, "enhanced": "", "texts": "", "outcomes": "sent", "delays": 1.0, "reasons": "",
    "was": "sent", "statuses": "sent", "ats": "2030-01-01T00:00:00Z", "results": "",
    "erased": False,
}  # fmt: skip
#: Of all of them.
COMMON: dict[str, Any] = {
    "lease": 1.0, "via": "", "window": 0.0, "doubt_wait": 1.0, "failed": False, "due_only": False,
    "worker": 1,
}  # fmt: skip
STATEMENTS = {
    name: next(vars(part)[name] for part in (sql, limits, tracking) if name in vars(part))
    for name in (
        "LOCK_ROWS", "HAND_OVER", "ACCEPT", "REFUSE", "NOT_WRITTEN", "GIVE_BACK", "RENEW", "DEFER",
        "TRACKED_ROWS", "TRACK_ROWS", "CONFIRM_SENT", "SEND_AGAIN", "TREAT_AS_SENT", "REPLAY",
        "HOLD",
    )
}  # fmt: skip


@pytest.fixture
def campaign() -> Campaign:
    """With rows that lie as they do after each of them was written anew a few times."""
    made: Campaign = CampaignFactory.create()
    with connection.cursor() as cursor:
        # What other tests have left behind is long.
        cursor.execute(f"TRUNCATE {sql.SEND} CASCADE")
    Send.objects.bulk_create(
        Send(
            pk=n,
            account=made.account,
            campaign=made,
            email=f"p{n}@example.org",
            job_id=f"message:{n}",
        )
        for n in random.Random(1).sample(range(1, ROWS + 1), k=ROWS)
    )
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {sql.SEND}")
    return made


def plan(statement: str, campaign: Campaign) -> str:
    """For these ids."""
    ids = list(range(1, LOT + 1))
    given = {name: [value] * LOT for name, value in OTHERS.items()}
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN {statement}", {**COMMON, **given, "ids": ids, "campaign": campaign.pk}
        )
        return "\n".join(line for (line,) in cursor.fetchall())


def generic_plan(statement: str) -> str:
    """For any, as the server keeps it of a statement that is prepared. PostgreSQL 16 or newer."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (GENERIC_PLAN) {numbered.replace('%%', '%')}")
        return "\n".join(line for (line,) in cursor.fetchall())


def test_what_is_said_of_a_lot_finds_it_by_the_key(campaign: Campaign) -> None:
    naive = f"SELECT id FROM {sql.SEND} WHERE id = ANY(%(ids)s::bigint[]) FOR NO KEY UPDATE"
    assert WHOLE.search(plan(naive, campaign)), "it is not so small that it could be read whole"
    plans = {name: plan(statement, campaign) for name, statement in STATEMENTS.items()}
    if connection.pg_version >= 160000:  # type: ignore[attr-defined]
        plans |= {f"any {name}": generic_plan(text) for name, text in STATEMENTS.items()}
    assert {name: found for name, found in plans.items() if WHOLE.search(found)} == {}
    # Nor is the whole lot gone through for each of its rows.
    assert {name: found for name, found in plans.items() if SQUARE.search(found)} == {}
