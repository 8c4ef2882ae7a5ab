"""Releasing an address in the admin: a permission, a reason, a record."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction
from django.test import Client

from subscribers.models import AuditEvent, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import NotReleased, release, version
from subscribers.suppression import is_suppressed, suppress
from tests.db.admin_pages import member_client, url
from tests.db.racing import Race
from tests.factories import AccountFactory, SubscriberFactory, SuppressionFactory

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"

# --- releasing -----------------------------------------------------------------------------------


def released(client: Client, row: Suppression, words: str = "a mistake", seen: str = "") -> Any:
    data = {"words": words, "seen": seen or version(row)}
    return client.post(url(Suppression, "release", row.pk), data)


@pytest.mark.parametrize("reason", ["manual", "hard_bounce"])
def test_releasing_takes_it_off_the_list_and_is_on_record(
    superuser_client: Client, reason: str
) -> None:
    row = suppress(AccountFactory.create(), ANN, reason, evidence="550 no such user")
    assert "release/" in superuser_client.get(url(Suppression, "change", row.pk)).content.decode()
    assert superuser_client.get(url(Suppression, "release", row.pk)).status_code == 200
    assert released(superuser_client, row).status_code == 302
    assert not Suppression.objects.exists()
    event = AuditEvent.objects.get()
    assert (event.account, event.verb, event.subject, event.reason) == (
        row.account, "suppression.release", ANN, "a mistake",
    )  # fmt: skip
    assert event.detail["suppressed_for"] == reason
    assert event.detail["evidence"] == "550 no such user"


def test_a_release_subscribes_nobody(superuser_client: Client) -> None:
    person = SubscriberFactory.create(unsubscribed=True)
    row = SuppressionFactory.create(account=person.account, email=person.email)
    everywhere = suppress(None, person.email, "complaint")
    page = superuser_client.get(url(Suppression, "release", row.pk)).content.decode()
    assert "list for all accounts has it" in page
    released(superuser_client, row)
    person.refresh_from_db()
    assert person.status == Subscriber.Status.UNSUBSCRIBED
    assert is_suppressed(person.account, person.email)
    assert Suppression.objects.get() == everywhere


@pytest.mark.parametrize(
    ("reason", "says"),
    [("unsubscribed", "signing up again"), ("complaint", "Nothing takes this back"),
     ("erased", "signing up again")],
)  # fmt: skip
def test_a_persons_own_wish_is_not_for_staff_to_release(
    superuser_client: Client, reason: str, says: str
) -> None:
    row = suppress(AccountFactory.create(), ANN, reason)
    for page in ("change", "release"):
        text = superuser_client.get(url(Suppression, page, row.pk)).content.decode()
        assert says in text
        assert "Release…" not in text
    answer = superuser_client.post(
        url(Suppression, "release", row.pk), {"words": "let me", "seen": version(row)}, follow=True
    )
    assert "Not released" in answer.content.decode()
    assert Suppression.objects.filter(pk=row.pk).exists()
    assert not AuditEvent.objects.exists()


def test_a_complaint_before_an_erasure_is_said(superuser_client: Client) -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "complaint")
    erase_person(account, ANN, by_name="Bea", reason="asked")
    row = Suppression.objects.get()
    text = superuser_client.get(url(Suppression, "change", row.pk)).content.decode()
    assert "before the erasure this person had complained" in text
    assert "complained</div>" in text


def test_a_release_needs_words(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    answer = released(superuser_client, row, words="  ")
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert Suppression.objects.exists()


@pytest.mark.parametrize("later", ["complaint", "manual"])
def test_what_changed_since_the_page_was_shown_is_not_released(
    superuser_client: Client, later: str
) -> None:
    account = AccountFactory.create()
    row = suppress(account, ANN, "hard_bounce", evidence="550")
    seen = version(row)
    suppress(account, ANN, later, evidence="since then")
    released(superuser_client, row, seen=seen)
    assert Suppression.objects.get().reason == later
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_complaint_at_the_same_moment_is_not_released() -> None:
    account = AccountFactory.create()
    row = suppress(account, ANN, "manual")
    act = partial(release, row.pk, seen=version(row), words="a mistake", by_name="Bea")
    with Race() as race:
        with transaction.atomic():
            suppress(account, ANN, "complaint")
            other = race.start(act)
            other.wait_until_blocked()
        with pytest.raises(NotReleased, match="Nothing takes this back"):
            other.result()
    assert Suppression.objects.get().reason == "complaint"


def test_releasing_twice_is_told(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    released(superuser_client, row)
    with pytest.raises(NotReleased, match="no more"):
        release(row.pk, seen=version(row), words="again", by_name="Bea")
    assert released(superuser_client, row).status_code == 302
    assert AuditEvent.objects.count() == 1


def test_deleting_is_no_way_round(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    answer = superuser_client.post(url(Suppression, "delete", row.pk), {"post": "yes"})
    assert answer.status_code == 403
    data = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    superuser_client.post(url(Suppression, "changelist"), data)
    assert Suppression.objects.exists()


def test_releasing_is_a_permission_of_its_own() -> None:
    account = AccountFactory.create()
    row = SuppressionFactory.create(account=account)
    client, user = member_client(account)
    user.user_permissions.set(Permission.objects.exclude(codename="release_suppression"))
    assert "Release…" not in client.get(url(Suppression, "change", row.pk)).content.decode()
    assert client.get(url(Suppression, "release", row.pk)).status_code == 403
    assert released(client, row).status_code == 403
    assert Suppression.objects.exists()


def test_another_accounts_entry_can_not_be_released() -> None:
    row = SuppressionFactory.create()
    for other in (row, SuppressionFactory.create(account=None)):
        client, _ = member_client(AccountFactory.create())
        assert client.get(url(Suppression, "release", other.pk)).status_code in (302, 403)
        assert released(client, other).status_code in (302, 403)
    assert Suppression.objects.count() == 2
