"""The front page, for whom: where it leads, what a newcomer is told, whose rows, what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sending.dashboard import May, look
from subscribers import role_groups
from subscribers.models import Account
from subscribers.roles import Role
from tests.db.admin_pages import SECRET, member_client, one_of_each, url
from tests.db.watched import shown, viewer
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImportJobFactory,
    SendFactory,
    StaffFactory,
)

pytestmark = pytest.mark.django_db

ALL = May(campaigns=True, approve=True, sends=True, pauses=True, imports=True)


# --- where to go ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codenames", "labels"),
    [
        (("view_send",), ["Doubt desk"]),
        (("view_send", "view_subscriber"), ["Doubt desk", "One person's story"]),
        (("view_campaign", "view_transportpause"), ["Transports and brakes"]),
        (("view_campaign", "view_worker"), ["Senders"]),
        (("view_campaign",), []),
    ],
)
def test_the_pages_of_operating_are_linked_for_whoever_may(
    codenames: tuple[str, ...], labels: list[str]
) -> None:
    client = viewer(AccountFactory.create(), *codenames)
    found = client.get("/admin/").context["dashboard"].pages
    assert [label for label, _ in found] == labels
    for _, target in found:
        assert client.get(target).status_code == 200


# --- the first time ------------------------------------------------------------------------------


def test_a_newcomer_is_told_what_to_do_first(superuser_client: Client) -> None:
    page = shown(superuser_client)
    assert "Your first campaign" in page
    assert url(Account, "add") in page
    account = AccountFactory.create()
    page = shown(superuser_client)
    assert "<strong>An account</strong> <span" in page
    assert "(done)" in page
    CampaignFactory.create(account=account)
    page = shown(superuser_client)
    assert "Your first campaign" not in page
    assert "Nothing just now." in page


def test_who_can_not_do_a_step_gets_no_link_to_it() -> None:
    role_groups.update()
    user = StaffFactory.create()
    user.groups.add(Group.objects.get(sendonce_role__role=Role.VIEWER))
    client = Client()
    client.force_login(user)
    page = shown(client)
    assert "a superuser makes it and makes you a member" in page
    assert "/add/" not in page.partition("sendonce-start")[2].partition("</ol>")[0]


# --- whose ---------------------------------------------------------------------------------------


def test_nothing_of_another_account_is_told() -> None:
    other = AccountFactory.create(name=f"{SECRET} account", slug=SECRET)
    one_of_each(other)
    ImportJobFactory.create(account=other, status="failed", file_name=SECRET, error=SECRET)
    for traits in ({"paused": True}, {"approved": True}, {"sent": True}):
        CampaignFactory.create(account=other, name=f"{SECRET} more", **traits)
    member, _ = member_client(other)
    stranger, _ = member_client(AccountFactory.create(transport="other"))
    nobody, _ = member_client()
    assert SECRET in shown(member)
    for client in (stranger, nobody):
        page = shown(client)
        assert SECRET not in page
        assert "in doubt" not in page


def test_without_permission_there_is_nothing() -> None:
    account = AccountFactory.create()
    one_of_each(account)
    user = StaffFactory.create()
    account.members.add(user)
    client = Client()
    client.force_login(user)
    assert "sendonce" not in shown(client).replace("sendonce_", "")


@pytest.mark.parametrize(
    ("may", "told"),
    [
        (May(campaigns=True), {"paused", "running", "scheduled", "sent"}),
        (May(pauses=True), {"pauses"}),
        (May(imports=True), {"imports"}),
        (May(campaigns=True, sends=True), {"paused", "running", "scheduled", "sent", "held"}),
    ],
)
def test_each_is_told_what_they_may_see(may: May, told: set[str]) -> None:
    account = AccountFactory.create()
    one_of_each(account)
    ImportJobFactory.create(account=account, status="failed")
    for traits in ({"paused": True}, {"approved": True}, {"sent": True}):
        CampaignFactory.create(account=account, **traits)
    facts = look([account.pk], may)
    kinds = ("paused", "running", "scheduled", "sent", "pauses", "held", "imports", "second")
    assert {kind for kind in kinds if getattr(facts, kind)} == told


# --- cost ----------------------------------------------------------------------------------------


def crowded(accounts: int, campaigns: int) -> list[int]:
    made = AccountFactory.create_batch(accounts, second_approver=True)
    author = StaffFactory.create()
    states: tuple[dict[str, Any], ...] = (
        {"paused": True}, {"sending": True}, {"approved": True}, {"sent": True},
        {"created_by": author},
    )  # fmt: skip
    for number in range(campaigns):
        account = made[number % accounts]
        campaign = CampaignFactory.create(account=account, **states[number % len(states)])
        if campaign.status == "sending":
            SendFactory.create(campaign=campaign, in_doubt=True)
    ImportJobFactory.create(account=made[0], status="failed")
    return [account.pk for account in made]


def test_a_fixed_number_of_statements() -> None:
    few = crowded(1, 5)
    many = crowded(12, 60)
    numbers = []
    for accounts in (few, many, None):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            look(accounts, ALL)
        numbers.append(len(queries))
    assert numbers == [7, 7, 7], [q["sql"][:90] for q in queries]
