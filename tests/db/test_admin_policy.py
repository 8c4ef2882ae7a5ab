"""Every page of the admin under the strict policy, and every list at any length."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from campaigns.models import Campaign
from config.security import HEADER, POLICY
from sending.models import RateLimit, Send
from subscribers.models import Account, Membership, Subscriber
from tests.db.admin_pages import OURS, member_client, one_of_each, url
from tests.db.admin_urls import pages
from tests.db.one_person import one_person
from tests.factories import AccountFactory

__all__ = ["one_person"]
ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(
    path for app in ("subscribers", "campaigns", "sending", "templates")
    for path in (ROOT / app).rglob("*.html")
)  # fmt: skip
#: What a browser would run or style by itself.
INLINE = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*\btype=.application/json)|<style\b"
    r"|<[a-z][^>]*\s(?:on[a-z]+|style)\s*=|\bhref=[\"']?\s*javascript:",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<script>x</script>", True),
        ("<script src='/x.js'></script>", False),
        ("<script id='d' type='application/json'>{}</script>", False),
        ("<style>p {}</style>", True),
        ("<p style='color: red'>", True),
        ("<a href='#' onclick=\"x()\">", True),
        ("<a href='javascript:x()'>", True),
        ("<link rel='stylesheet' href='/x.css'><p class='on'>style = good</p>", False),
    ],
)
def test_what_is_inline_is_seen(text: str, found: bool) -> None:
    assert bool(INLINE.search(text)) is found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_a_script_or_style_of_its_own(path: Path) -> None:
    assert [m[0] for m in INLINE.finditer(path.read_text())] == []


@pytest.mark.django_db
def test_every_page_has_the_policy_and_keeps_to_it() -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    client, _ = member_client(account)
    wrong, looked_at = [], 0
    for page in pages():
        mine = [rows[page.model]] if page.model in rows else []
        of_any = [rows[model] for model in (Campaign, Send, Subscriber)]
        for address in page.addresses({str(row.pk) for row in (*mine, *of_any)}):
            answer = client.get(address)
            policy = answer.headers.get(HEADER, "")
            framed = "frame" in page.name
            looked_at += answer.status_code == 200
            # A mail is shown in a frame that takes its own styles, and nothing that runs.
            is_mail = framed and "sandbox" in policy and not re.search(r"script-src [^;]", policy)
            if policy != POLICY and not is_mail:
                wrong.append(f"{address}: {policy or 'no policy'}")
            html = answer.headers.get("Content-Type", "").startswith("text/html")
            if html and not framed and not answer.streaming:
                found = INLINE.search(answer.content.decode())
                if found:
                    wrong.append(f"{address}: {found[0][:80]}")
    assert wrong == []
    assert looked_at > 60


def lengthen(model: type[Any], account: Account, times: int) -> None:
    """More rows of the model: copies, under other names, of the one that there is."""
    table, key = model._meta.db_table, model._meta.pk
    names = [f.column for f in model._meta.concrete_fields if not f.generated and f is not key]
    unique = {
        column
        for c in model._meta.constraints
        for column in getattr(c, "fields", ())
        if column not in ("account", "segment", "campaign", "status")
    } | {f.column for f in model._meta.concrete_fields if f.unique and f is not key}
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        chosen = ", ".join(_copied(model, name, unique) for name in names)
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {chosen} FROM {table} t, "
            f"generate_series(1, {times}) AS n WHERE t.{key.column} = "
            f"(SELECT min({key.column}) FROM {table})"
        )
        cursor.execute("RESET session_replication_role")


def _copied(model: type[Any], column: str, unique: set[str]) -> str:
    field = next(f for f in model._meta.concrete_fields if f.column == column)
    if field.name not in unique and column not in unique and column not in ("email", "email_hash"):
        return f"t.{column}"
    match field.get_internal_type():
        case "CharField" | "EmailField" | "SlugField" | "TextField":
            return f"left(n || '-' || (random() * 1e9)::bigint || '-' || t.{column}, 40)"
        case "UUIDField":
            return "gen_random_uuid()"
        case "ForeignKey" | "OneToOneField":
            return f"t.{column} + 1000000 + n + (random() * 1e9)::bigint"
        case "DateField":
            return f"t.{column} - n"
        case _:
            return f"t.{column}"


def test_every_list_is_looked_at() -> None:
    assert len(OURS) > 25


@pytest.mark.django_db
@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_a_list_makes_as_many_queries_at_30_rows_as_at_3(model: type[Any]) -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    client, user = member_client(account, AccountFactory.create())
    if model not in rows or model in (Account, RateLimit):
        user.is_superuser = True
        user.save()

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            answer = client.get(url(model, "changelist"))
        assert answer.status_code == 200
        shown.append(len(answer.context["cl"].result_list))
        return len(caught)

    shown: list[int] = []
    # A membership is of another person each time: test_admin_lists makes those.
    if model in rows and not model._meta.pk.remote_field and model is not Membership:
        lengthen(model, account, 2)
        queries()
        few = queries()
        lengthen(model, account, 27)
        assert queries() == few
        assert shown[0] >= 3
        assert shown[-1] >= 30
    else:
        queries()
