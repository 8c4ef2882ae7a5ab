"""Export from the admin: whose people, which of them, and that it is on record."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client

from subscribers.models import Account, AuditEvent, Membership, Subscriber
from tests.db.admin_pages import grant_all, member_client, url
from tests.factories import (
    AccountFactory,
    SegmentFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

PAGE = url(Subscriber, "export")


@pytest.fixture
def account() -> Any:
    """Ann is in a segment, Bob has left it, Cid is suppressed, Dan is pending."""
    account = AccountFactory.create(slug="shop")
    segment = SegmentFactory.create(account=account, slug="readers", name="Readers")
    people: dict[str, dict[str, Any]] = {
        "ann": {"segments": [segment]},
        "bob": {"segments": [segment]},
        "cid": {},
        "dan": {"pending": True},
    }
    for name, more in people.items():
        SubscriberFactory.create(
            account=account, email=f"{name}@example.org", attributes={"name": f"={name}"}, **more
        )
    Membership.objects.filter(subscriber__email="bob@example.org").update(
        left_at="2026-01-01T00:00Z"
    )
    SuppressionFactory.create(account=account, email="cid@example.org")
    SubscriberFactory.create(email="secretname@example.org")
    return account


def exported(client: Client, account: Account, **chosen: Any) -> list[dict[str, str]]:
    answer: Any = client.post(PAGE, {"account": account.pk, **chosen})
    assert answer.streaming, answer.context["form"].errors
    assert answer["Content-Disposition"].startswith('attachment; filename="shop')
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer["Cache-Control"]
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, ["ann", "bob", "cid", "dan"]),
        ({"status": "pending"}, ["dan"]),
        ({"suppressed": "yes"}, ["cid"]),
        ({"suppressed": "no"}, ["ann", "bob", "dan"]),
        ({"segment": "readers"}, ["ann"]),
        ({"segment": "readers", "status": "pending"}, []),
    ],
    ids=str,
)
def test_what_is_chosen_is_exported_and_recorded(
    account: Any, chosen: dict[str, Any], names: list[str]
) -> None:
    client, user = member_client(account)
    if "segment" in chosen:
        chosen = {**chosen, "segment": account.segments.get(slug=chosen["segment"]).pk}
    rows = exported(client, account, **chosen)
    assert [row["email"] for row in rows] == [f"{name}@example.org" for name in names]
    assert all(row["name"].startswith("'=") for row in rows)
    event = AuditEvent.objects.get()
    assert (event.verb, event.by, event.account) == ("subscriber.export", user, account)
    assert event.detail["people"] == len(names)
    assert event.subject == ("Readers" if "segment" in chosen else "everybody")


def test_it_is_recorded_before_the_first_byte(account: Any) -> None:
    client, _ = member_client(account)
    answer: Any = client.post(PAGE, {"account": account.pk})
    assert AuditEvent.objects.count() == 1
    answer.close()


def test_looking_at_the_page_exports_nothing(account: Any) -> None:
    client, _ = member_client(account)
    answer = client.get(PAGE, {"account": account.pk, "segment": account.segments.get().pk})
    assert answer.context["form"]["segment"].value() == account.segments.get().pk
    assert "@example.org" not in answer.content.decode()
    assert not AuditEvent.objects.exists()


def test_another_accounts_people_stay_there(account: Any) -> None:
    client, _ = member_client(AccountFactory.create(slug="shop-2"))
    mine = Account.objects.get(slug="shop-2")
    assert client.post(PAGE, {"account": account.pk}).status_code == 403
    assert client.get(PAGE, {"account": account.pk}).status_code == 403
    forged = {"account": mine.pk, "segment": account.segments.get().pk}
    answer = client.post(PAGE, forged)
    assert list(answer.context["form"].errors) == ["segment"]
    assert exported(client, mine) == []


def test_exporting_needs_its_permission(account: Any) -> None:
    user = StaffFactory.create()
    grant_all(user)
    user.user_permissions.remove(*user.user_permissions.filter(codename="export_subscriber"))
    account.members.add(user)
    client = Client()
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"account": account.pk}).status_code == 403
    listed = client.get(url(Subscriber, "changelist")).content.decode()
    assert PAGE not in listed
    assert url(Subscriber, "import") in listed
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("chosen", [{"status": "gone"}, {"suppressed": "maybe"}, {"segment": "x"}])
def test_a_wrong_choice_is_an_error_of_its_field(account: Any, chosen: dict[str, str]) -> None:
    client, _ = member_client(account)
    answer = client.post(PAGE, {"account": account.pk, **chosen})
    assert list(answer.context["form"].errors) == list(chosen)
    assert not AuditEvent.objects.exists()
