"""One person's data on the admin's pages: who may, what is asked, what happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from subscribers.models import Account, AuditEvent, Subscriber, Suppression
from subscribers.suppression import is_suppressed
from tests.db.admin_pages import member_client, url
from tests.factories import (
    AccountFactory,
    ImportChunkFactory,
    ImportJobFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"


@pytest.fixture
def person() -> Subscriber:
    found: Subscriber = SubscriberFactory.create(email=ANN, attributes={"city": "Secretville"})
    return found


def asked(client: Client, account: Account, email: str = ANN, **more: Any) -> Any:
    return client.post(url(Subscriber, "person"), {"account": account.pk, "email": email, **more})


def erasing(client: Client, account: Account, **changes: Any) -> Any:
    given = {"erase": "yes", "typed": ANN, "words": "asked by letter", **changes}
    return asked(client, account, **given)


def test_a_subscriber_s_page_leads_there(person: Subscriber) -> None:
    client, _ = member_client(person.account)
    page = client.get(url(Subscriber, "change", person.pk)).content.decode()
    assert f"{url(Subscriber, 'person')}?subscriber={person.pk}" in page
    assert url(Subscriber, "person") in client.get(url(Subscriber, "changelist")).content.decode()
    answer = client.get(url(Subscriber, "person"), {"subscriber": person.pk})
    assert dict(answer.context["counts"])["Subscriber"] == 1
    assert "Erase for good" in answer.content.decode()


def test_the_export_is_a_file_and_on_record(person: Subscriber) -> None:
    client, user = member_client(person.account)
    answer = asked(client, person.account, "ann@EXAMPLE.org", export="yes")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert "no-store" in answer["Cache-Control"]
    assert json.loads(answer.content)["subscriber"][0]["attributes"] == {"city": "Secretville"}
    event = AuditEvent.objects.get()
    assert (event.verb, event.by, event.subject) == ("person.export", user, "ann@example.org")


def test_looking_writes_nothing_and_keeps_the_address_out_of_urls(person: Subscriber) -> None:
    client, _ = member_client(person.account)
    assert asked(client, person.account).status_code == 200
    assert "email" not in client.get(url(Subscriber, "person"), {"email": ANN}).context
    assert not AuditEvent.objects.exists()
    assert Subscriber.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"typed": "bob@example.org"}, "typed"), ({"typed": ""}, "typed"), ({"words": " "}, "words")],
)
def test_an_erasure_asks_for_the_address_and_a_reason(
    person: Subscriber, changes: dict[str, str], field: str
) -> None:
    client, _ = member_client(person.account)
    answer = erasing(client, person.account, **changes)
    assert list(answer.context["erasure"].errors) == [field]
    assert Subscriber.objects.exists()


def test_an_erasure_is_done_and_on_record_without_the_address(person: Subscriber) -> None:
    account = person.account
    client, user = member_client(account)
    ImportChunkFactory.create(job=ImportJobFactory.create(account=account))
    SuppressionFactory.create(account=None, email=ANN)
    answer = client.post(
        url(Subscriber, "person"),
        {"account": account.pk, "email": ANN, "erase": "yes", "typed": ANN, "words": "letter"},
        follow=True,
    )
    text = answer.content.decode()
    assert "subscribers 1" in text
    assert "not imported yet: 1" in text
    assert "list of suppressions for all accounts has this address" in text
    assert not Subscriber.objects.exists()
    assert is_suppressed(account, ANN)
    event = AuditEvent.objects.get()
    assert (event.verb, event.by, event.subject, event.reason) == (
        "person.erase", user, "", "letter",
    )  # fmt: skip


def test_somebody_who_is_no_subscriber_can_be_erased(superuser_client: Client) -> None:
    account = AccountFactory.create()
    SuppressionFactory.create(account=account, email=ANN)
    assert dict(asked(superuser_client, account).context["counts"])["Suppressions"] == 1
    assert erasing(superuser_client, account).status_code == 302
    assert Suppression.objects.get().email is None


def test_another_account_s_people_are_out_of_reach(person: Subscriber) -> None:
    client, _ = member_client(AccountFactory.create())
    for more in ({}, {"export": "yes"}, {"erase": "yes", "typed": ANN, "words": "x"}):
        answer = asked(client, person.account, **more)
        assert "account" in answer.context["form"].errors
        assert "Secretville" not in answer.content.decode()
    answer = client.get(url(Subscriber, "person"), {"subscriber": person.pk})
    assert "example.org" not in answer.content.decode()
    assert Subscriber.objects.exists()
    assert not AuditEvent.objects.exists()


def test_it_is_a_permission_of_its_own(person: Subscriber) -> None:
    client, user = member_client(person.account)
    user.user_permissions.set(Permission.objects.exclude(codename="erase_subscriber"))
    assert "person/" not in client.get(url(Subscriber, "change", person.pk)).content.decode()
    assert "person/" not in client.get(url(Subscriber, "changelist")).content.decode()
    assert client.get(url(Subscriber, "person")).status_code == 403
    assert asked(client, person.account, export="yes").status_code == 403
    assert erasing(client, person.account).status_code == 403
    assert Subscriber.objects.exists()


@pytest.mark.parametrize("given", ["x", "-1", "99999999999999999999", "1 OR 1=1"])
def test_a_nonsense_id_shows_the_empty_form(superuser_client: Client, given: str) -> None:
    answer = superuser_client.get(url(Subscriber, "person"), {"subscriber": given})
    assert answer.status_code == 200
    assert "counts" not in answer.context
