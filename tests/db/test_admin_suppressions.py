"""The suppression list's pages: looking, adding, releasing with a reason, files."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from subscribers.models import AuditEvent, Suppression
from subscribers.rights.acts import erase_person
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, SuppressionFactory

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"

# --- adding --------------------------------------------------------------------------------------


def test_suppressing_by_hand_goes_through_the_verb(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {
        "account": account.pk,
        "email": " Bad@EXAMPLE.org",
        "reason": "manual",
        "evidence": "asked on the phone",
    }
    assert superuser_client.post(url(Suppression, "add"), form).status_code == 302
    row = Suppression.objects.get()
    assert (row.account, row.email) == (account, "Bad@example.org")
    assert row.evidence.startswith("asked on the phone\nAdded by staff")
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_weaker_reason_by_hand_does_not_replace_a_stronger(superuser_client: Client) -> None:
    row = SuppressionFactory.create(reason="complaint", email="a@example.org", evidence="ARF")
    form = {"account": row.account_id, "email": "A@example.org", "reason": "manual"}
    answer = superuser_client.post(url(Suppression, "add"), form, follow=True)
    assert "stronger reason" in answer.content.decode()
    stored = Suppression.objects.get()
    assert (stored.reason, stored.evidence) == ("complaint", "ARF")


@pytest.mark.parametrize(
    "form",
    [
        {"email": "nonsense", "reason": "manual"},
        {"email": "a@example.org", "reason": "erased"},
        {
            "email": "a@example.org",
            "reason": "complaint",
            "expires_0": "2999-01-01",
            "expires_1": "00:00",
        },
        {
            "email": "a@example.org",
            "reason": "manual",
            "expires_0": "2001-01-01",
            "expires_1": "00:00",
        },
        {"email": "", "reason": ""},
    ],
)
def test_a_wrong_suppression_is_an_error_of_its_form(
    superuser_client: Client, form: dict[str, str]
) -> None:
    answer = superuser_client.post(url(Suppression, "add"), form)
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()


def test_adding_by_hand_is_on_record(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {"account": account.pk, "email": ANN, "reason": "manual", "evidence": "by phone"}
    superuser_client.post(url(Suppression, "add"), form)
    event = AuditEvent.objects.get()
    assert (event.account, event.verb, event.subject, event.reason) == (
        account, "suppression.add", ANN, "by phone",
    )  # fmt: skip
    assert event.by_name.startswith("staff")


def test_whose_list_is_chosen_and_never_by_leaving_it_blank(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {"email": ANN, "reason": "manual"}
    page = superuser_client.get(url(Suppression, "add"))
    assert page.context["adminform"].form.fields["account"].choices == [
        ("", "---------"),
        ("all", "All accounts (the list for all)"),
        (str(account.pk), account.name),
    ]
    for wrong in ({}, {"account": ""}, {"account": "0"}, {"account": "None"}):
        answer = superuser_client.post(url(Suppression, "add"), {**form, **wrong})
        assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()
    for chosen in (str(account.pk), "all"):
        answer = superuser_client.post(url(Suppression, "add"), {**form, "account": chosen})
        assert answer.status_code == 302
    assert [row.account for row in Suppression.objects.order_by("pk")] == [account, None]


def test_staff_choose_among_their_accounts() -> None:
    own, more, other = AccountFactory.create_batch(3)
    client, _ = member_client(own, more)
    offered = client.get(url(Suppression, "add")).context["adminform"].form.fields["account"]
    assert {value for value, _ in offered.choices} == {"", str(own.pk), str(more.pk)}
    for wrong in ("all", "", str(other.pk)):
        form = {"account": wrong, "email": ANN, "reason": "manual"}
        answer = client.post(url(Suppression, "add"), form)
        assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()
    form["account"] = str(own.pk)
    assert client.post(url(Suppression, "add"), form).status_code == 302
    assert Suppression.objects.get().account == own


@pytest.mark.parametrize(
    ("already", "given", "says", "recorded"),
    [
        (None, "manual", "was added successfully", 1),
        ("manual", "manual", "It was on the list already; nothing was changed.", 0),
        ("complaint", "manual", "for a stronger reason that stays: complained.", 0),
        # Staff have added it, too: noted, and a new sign-up does not take it back.
        ("unsubscribed", "manual", "for a stronger reason that stays: unsubscribed.", 1),
        ("manual", "complaint", "It was on the list already; it says now: complained.", 1),
        ("lapsed", "manual", "was added successfully", 1),
    ],
)
def test_what_was_on_the_list_already_is_not_said_to_be_added(
    superuser_client: Client, already: str | None, given: str, says: str, recorded: int
) -> None:
    account = AccountFactory.create()
    if already:
        SuppressionFactory.create(
            account=account,
            email="ann@example.org",
            reason="manual" if already == "lapsed" else already,
            evidence="before",
            expires=timezone.now() - timedelta(days=1) if already == "lapsed" else None,
        )
    form = {"account": account.pk, "email": ANN, "reason": given}
    answer = superuser_client.post(url(Suppression, "add"), form, follow=True)
    (told,) = [str(message) for message in answer.context["messages"]]
    assert says in told
    assert AuditEvent.objects.filter(verb="suppression.add").count() == recorded
    assert LogEntry.objects.count() == recorded
    assert Suppression.objects.count() == 1
    for button, leads in (
        ("_continue", url(Suppression, "change", Suppression.objects.get().pk)),
        ("_addanother", url(Suppression, "add")),
    ):
        answer = superuser_client.post(url(Suppression, "add"), {**form, button: "yes"})
        assert answer["Location"] == leads


def test_an_erased_person_is_not_written_down_again(superuser_client: Client) -> None:
    account = AccountFactory.create()
    erase_person(account, ANN, by_name="Bea", reason="asked")
    form = {"account": account.pk, "email": "ann@EXAMPLE.org", "reason": "manual"}
    answer = superuser_client.post(url(Suppression, "add"), form)
    assert "erased on request" in str(answer.context["adminform"].form.errors["email"])
    assert not Suppression.objects.filter(email__isnull=False).exists()
    # Another account has its own list.
    form["account"] = AccountFactory.create().pk
    assert superuser_client.post(url(Suppression, "add"), form).status_code == 302


# --- looking -------------------------------------------------------------------------------------


def listed(client: Client, query: str) -> list[Any]:
    answer = client.get(f"{url(Suppression, 'changelist')}?{query}")
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def test_an_address_is_found_by_its_beginning_and_an_erased_one_as_a_whole(
    superuser_client: Client,
) -> None:
    account = AccountFactory.create()
    plain = SuppressionFactory.create(account=account, email=ANN)
    erase_person(account, "bob@example.org", by_name="Bea", reason="asked")
    erased = Suppression.objects.get(reason="erased")
    assert listed(superuser_client, "q=aNN@ex") == [plain]
    assert listed(superuser_client, "q=BOB@example.org") == [erased]
    assert listed(superuser_client, "q=mailto:bob@example.org") == [erased]
    assert listed(superuser_client, "q=bob@example.or") == []
    assert listed(superuser_client, "q=example") == []


def test_the_filters(superuser_client: Client) -> None:
    past = timezone.now() - timedelta(days=1)
    lapsed = SuppressionFactory.create(expires=past)
    everywhere = SuppressionFactory.create(account=None, reason="complaint")
    assert listed(superuser_client, "state=expired") == [lapsed]
    assert listed(superuser_client, "state=live") == [everywhere]
    assert listed(superuser_client, "account=all") == [everywhere]
    assert listed(superuser_client, f"account={lapsed.account_id}") == [lapsed]
    assert listed(superuser_client, "reason__exact=complaint") == [everywhere]


def test_the_list_for_all_is_not_shown_to_staff() -> None:
    SuppressionFactory.create(account=None)
    client, _ = member_client(AccountFactory.create())
    assert listed(client, "account=all") == []
    assert "All accounts" not in client.get(url(Suppression, "changelist")).content.decode()
