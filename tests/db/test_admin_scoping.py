"""Who sees what in the admin: staff the rows of their accounts, by whatever road."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from campaigns.models import Approval, Campaign, Content
from sending.installation import installation
from sending.models import (
    DeliveryEvent,
    Installation,
    LedgerChange,
    LedgerCount,
    LedgerMark,
    Send,
    WebhookCount,
    Worker,
)
from subscribers import paging
from subscribers.models import (
    Account,
    ImportChunk,
    ImportReject,
    ImportRow,
    Membership,
    RoleGroup,
    Segment,
    Subscriber,
    Suppression,
)
from tests.db.admin_pages import (
    LABELS,
    OURS,
    SECRET,
    change,
    member_client,
    one_of_each,
    url,
)
from tests.factories import (
    AccountFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

# --- registration ------------------------------------------------------------------------------


def test_every_model_is_registered_and_can_be_registered_again() -> None:
    from django.apps import apps

    models = {m for label in LABELS for m in apps.get_app_config(label).get_models()}
    # An import's file and rows are its own page's to show, roles those of Django's groups.
    models -= {ImportChunk, ImportReject, ImportRow, RoleGroup}
    # Counters are read by pages of their own.
    models -= {LedgerChange, LedgerCount, LedgerMark}
    assert models == set(OURS)
    site = admin.AdminSite(name="host")
    for model in models:
        stock = type(admin.site._registry[model])
        site.register(model, type(f"Host{stock.__name__}", (stock,), {}))
    assert all(site.is_registered(model) for model in models)


@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_lists_do_not_count_or_join_without_bound(model: type[Any]) -> None:
    own = admin.site._registry[model]
    assert own.date_hierarchy is None
    assert own.list_select_related is not True
    if model not in (Installation, WebhookCount):  # few rows for ever
        assert own.show_full_result_count is False
        assert own.show_facets is admin.ShowFacets.NEVER
        assert issubclass(own.paginator, paging.BoundedPaginator)


@pytest.mark.parametrize(
    "model",
    [Send, DeliveryEvent, Worker, Approval, Content, Installation],
    ids=lambda m: m.__name__,
)
def test_the_ledger_is_read_only_even_for_superusers(
    model: type[Any], superuser_client: Client
) -> None:
    rows = one_of_each(AccountFactory.create())
    rows[Worker] = WorkerFactory.create()
    rows[Installation] = installation()
    pk = rows[model].pk
    assert superuser_client.get(url(model, "add")).status_code == 403
    assert superuser_client.get(url(model, "change", pk)).status_code == 200
    assert superuser_client.post(url(model, "change", pk), {}).status_code == 403
    assert superuser_client.post(url(model, "delete", pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=pk).exists()


# --- tenants -----------------------------------------------------------------------------------


@pytest.fixture
def stranger() -> tuple[Client, dict[type[Any], Any]]:
    """A member of one account with every permission, and the rows of another account."""
    client, _ = member_client(AccountFactory.create(transport="other"))
    other = AccountFactory.create(name=f"{SECRET} account", slug=SECRET)
    return client, one_of_each(other)


def test_lists_show_nothing_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model in rows:
        for query in ("", f"?q={SECRET[:-1]}", "?account=1", f"?account={rows[Account].pk}"):
            answer = client.get(url(model, "changelist") + query, follow=True)
            assert answer.status_code == 200, (model, query)
            shown = answer.context["cl"].result_list if "cl" in answer.context else []
            assert rows[model] not in list(shown), (model, query)
            assert SECRET not in answer.content.decode(), (model, query)


def test_guessed_urls_of_another_account_lead_nowhere(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model, row in rows.items():
        pages = ["change", "history", "delete"]
        if model is Campaign:
            pages += ["approve", "cancel"]
        for page in pages:
            answer = client.get(url(model, page, row.pk))
            assert answer.status_code in (302, 403, 404), (model, page)
            assert SECRET not in answer.content.decode()
            answer = client.post(url(model, page, row.pk), {"post": "yes"})
            assert answer.status_code in (302, 403, 404, 405), (model, page)
        assert model._default_manager.filter(pk=row.pk).exists()
    for verb in ("withdraw", "pause", "resume"):
        answer = client.post(url(Campaign, verb, rows[Campaign].pk))
        assert answer.status_code in (302, 403, 404)
    rows[Campaign].refresh_from_db()
    assert rows[Campaign].status == Campaign.Status.SENDING
    assert not LogEntry.objects.exists()


def test_actions_do_not_reach_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model, row in rows.items():
        names = [*(admin.site._registry[model].actions or ()), "delete_selected"]
        for name in names:
            client.post(
                url(model, "changelist"),
                {"action": name, "_selected_action": [row.pk], "confirmed": "yes", "post": "yes"},
            )
        assert model._default_manager.filter(pk=row.pk).exists(), model
    rows[Campaign].refresh_from_db()
    rows[Send].refresh_from_db()
    rows[Subscriber].refresh_from_db()
    rows[Membership].refresh_from_db()
    assert rows[Campaign].status == Campaign.Status.SENDING
    assert rows[Send].status == Send.Status.IN_DOUBT
    assert rows[Subscriber].status == Subscriber.Status.CONFIRMED
    assert rows[Membership].left_at is None


AUTOCOMPLETES = [
    (model, field) for model in OURS for field in admin.site._registry[model].autocomplete_fields
]


@pytest.mark.parametrize(("model", "field"), AUTOCOMPLETES, ids=str)
def test_autocompletes_offer_nothing_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]], model: type[Any], field: str
) -> None:
    client, _ = stranger
    options = {
        "app_label": model._meta.app_label,
        "model_name": model._meta.model_name,
        "field_name": field,
    }
    for term in ("", SECRET):
        answer = client.get(reverse("admin:autocomplete"), {**options, "term": term})
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()


def test_a_forged_post_can_not_name_a_row_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    account = rows[Account]
    for model, data in {
        Segment: {"account": account.pk, "name": "mine", "slug": "mine"},
        Subscriber: {"account": account.pk, "email": "new@example.org", "status": "pending"},
        Suppression: {"account": account.pk, "email": "new@example.org", "reason": "manual"},
        Membership: {"segment": rows[Segment].pk, "subscriber": rows[Subscriber].pk},
        Campaign: {
            "account": account.pk,
            "name": "n",
            "subject": "s",
            "body": "b",
            "body_format": "text",
            "segments": [rows[Segment].pk],
        },
    }.items():
        before = model._default_manager.count()
        answer = client.post(url(model, "add"), data)
        assert answer.status_code == 200
        assert answer.context["errors"], model
        assert SECRET not in answer.content.decode()
        assert model._default_manager.count() == before


def test_staff_without_permissions_get_nothing_of_their_own_account() -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    user = StaffFactory.create()
    account.members.add(user)
    client = Client()
    client.force_login(user)
    for model, row in rows.items():
        assert client.get(url(model, "changelist")).status_code == 403
        assert client.get(url(model, "change", row.pk)).status_code == 403


def test_members_see_their_own_rows(superuser_client: Client) -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    client, _ = member_client(account)
    for model, row in rows.items():
        for who in (client, superuser_client):
            assert row in who.get(url(model, "changelist")).context["cl"].result_list
            assert who.get(url(model, "change", row.pk)).status_code == 200
            assert who.get(url(model, "history", row.pk)).status_code == 200


def test_what_is_for_all_accounts_is_for_superusers() -> None:
    everywhere = SuppressionFactory.create(account=None, email="all@example.org")
    client, _ = member_client(AccountFactory.create())
    assert client.get(url(Suppression, "change", everywhere.pk)).status_code == 302
    answer = client.post(url(Suppression, "add"), {"email": "x@example.org", "reason": "manual"})
    assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.filter(email="x@example.org").exists()


def test_membership_and_transport_of_an_account_are_for_superusers(
    superuser_client: Client,
) -> None:
    account = AccountFactory.create()
    client, user = member_client(account)
    stranger = StaffFactory.create()
    form = {
        "name": "Renamed",
        "slug": account.slug,
        "from_email": account.from_email,
        "timezone": "Europe/Paris",
        "in_doubt_policy": "hold",
        "transport": "stolen",
        "members": [stranger.pk],
        "max_attempts": 5,
        "max_bounce_rate": 5,
        "max_complaint_rate": "0.1",
        "max_refusals": 20,
    }
    assert change(client, account, form).status_code == 302
    account.refresh_from_db()
    assert (account.name, account.transport) == ("Renamed", "default")
    assert list(account.members.all()) == [user]
    assert superuser_client.get(url(Account, "change", account.pk)).status_code == 200


def test_an_account_that_is_used_can_not_be_deleted(superuser_client: Client) -> None:
    used, empty = SubscriberFactory.create().account, AccountFactory.create(members=[])
    for account, status in ((used, 403), (empty, 302)):
        answer = superuser_client.post(url(Account, "delete", account.pk), {"post": "yes"})
        assert answer.status_code == status
    assert list(Account.objects.all()) == [used]
