"""When entries of the suppression list end: what is too far away, and which end of two holds."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from subscribers import exporting
from subscribers.models import Account, Segment, Suppression
from subscribers.suppressing.files import FileReport, import_file
from subscribers.suppression import suppress
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, SubscriberFactory

from . import imports
from .imports import load

pytestmark = pytest.mark.django_db

segment = imports.segment

ANN = "ann@example.org"


def taken(account: Account, rows: str) -> FileReport:
    data = f"email,reason,expires\n{rows}".encode()
    return import_file(io.BytesIO(data), account=account, file_name="list.csv", by_name="Bea")


def entries() -> list[tuple[Any, ...]]:
    rows = Suppression.objects.order_by("pk")
    return list(rows.values_list("account", "email", "reason", "expires"))


# --- near the end of the calendar ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "zone"),
    [
        ("9999-12-31 23:59:59", "America/New_York"),
        ("9999-12-31T23:59:59-05:00", "UTC"),
        ("9999-12-31", "UTC"),
        ("9999-01-01", "Asia/Tokyo"),
        ("9000-01-01", "UTC"),
    ],
)
def test_an_end_that_is_too_far_away_is_refused_and_the_list_stays_readable(
    cell: str, zone: str
) -> None:
    account = AccountFactory.create(timezone=zone)
    report = taken(account, f"{ANN},manual,{cell}\nbob@example.org,manual,\n")
    assert (report.added, report.rejected) == (1, 1)
    assert "too far away" in report.rejects[0].reason
    client, _ = member_client(account)
    assert client.get(url(Suppression, "changelist")).status_code == 200
    assert [row[1] for row in entries()] == ["bob@example.org"]


@pytest.mark.parametrize("day", ["9000-01-02", "9999-12-31"])
def test_the_form_refuses_an_end_that_is_too_far_away(day: str) -> None:
    account = AccountFactory.create(timezone="America/New_York")
    client, _ = member_client(account)
    body = {"account": account.pk, "email": ANN, "reason": "manual"}
    page = client.post(url(Suppression, "add"), {**body, "expires_0": day, "expires_1": "23:59:59"})
    assert page.status_code == 200
    assert "too far away" in str(page.context["adminform"].form.errors["expires"])
    assert not Suppression.objects.exists()


def test_the_verb_refuses_an_end_that_is_too_far_away() -> None:
    account = AccountFactory.create()
    for year in (9000, 9999):
        with pytest.raises(ValueError, match="never ends has no expiry"):
            suppress(account, ANN, "manual", expires=datetime(year, 6, 1, tzinfo=UTC))
    assert not Suppression.objects.exists()


# --- two rows of an address in a file ------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "reason", "end"),
    [
        (["manual,2040-06-01", "manual,"], "manual", None),
        (["manual,2040-06-01", "manual,2041-06-01"], "manual", 2041),
        (["hard_bounce,2041-06-01", "manual,2040-01-01"], "manual", 2041),
        (["manual,2040-01-01", "hard_bounce,2041-06-01"], "manual", 2041),
    ],
)
def test_of_two_rows_the_later_end_and_the_stronger_reason_hold(
    rows: list[str], reason: str, end: int | None
) -> None:
    lines = [f"{ANN},{row}\n" for row in rows]
    report = taken(AccountFactory.create(), "".join(lines))
    assert (report.added, report.duplicates) == (1, 1)
    entry = Suppression.objects.get()
    assert (entry.reason, entry.expires and entry.expires.year) == (reason, end)


# --- an export of people that comes back ---------------------------------------------------------


def test_an_export_that_comes_back_leaves_each_entry_its_own_end(segment: Segment) -> None:
    account, soon = segment.account, timezone.now() + timedelta(days=1)
    for email, reason in (("ann@example.org", "manual"), ("bob@example.org", "hard_bounce")):
        SubscriberFactory.create(account=account, email=email)
        suppress(account, email, reason, evidence="seen", expires=soon)
    SubscriberFactory.create(account=account, email="cid@example.org")
    suppress(None, "cid@example.org", "manual", evidence="for all", expires=soon)
    target = io.StringIO(newline="")
    exporting.export_csv(target, account=account)
    assert target.getvalue().count("manual") == 2
    before = entries()
    load(target.getvalue(), segment)
    assert entries() == before


def test_a_stronger_reason_in_the_file_still_replaces_the_end(segment: Segment) -> None:
    account, soon = segment.account, timezone.now() + timedelta(days=1)
    suppress(account, ANN, "hard_bounce", expires=soon)
    suppress(account, "bob@example.org", "manual", expires=soon)
    load(f"email,suppressed\n{ANN},complaint\nbob@example.org,manual\n", segment)
    assert [row[1:] for row in entries()] == [
        (ANN, "complaint", None),
        ("bob@example.org", "manual", soon),
    ]


def test_a_file_for_all_takes_an_address_that_two_accounts_spell_differently() -> None:
    # Stored past every entrance, so under other forms than the list's own.
    for email in ("ann@b\u00fccher.example.org", "Ann@b\u00fccher.example.org"):
        SubscriberFactory.create(email=email)
    data = "email\nann@b\u00fccher.example.org\n".encode()
    report = import_file(io.BytesIO(data), account=None, file_name="list.csv", by_name="Bea")
    assert report.added == 1
    assert sorted(row[1].lower() for row in entries()) == [
        "ann@b\u00fccher.example.org", "ann@xn--bcher-kva.example.org",
    ]  # fmt: skip
