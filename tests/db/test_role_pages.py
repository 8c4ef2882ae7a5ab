"""What each role sees and may do on every page: a user with a group and a membership, no more."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from subscribers import role_groups
from subscribers.models import Account
from subscribers.roles import Role
from tests.db.admin_pages import one_of_each
from tests.db.admin_urls import Page, pages
from tests.db.one_person import one_person
from tests.factories import AccountFactory, CampaignFactory, StaffFactory

__all__ = ["one_person"]
pytestmark = pytest.mark.django_db

EDITOR, APPROVER, OPERATOR = Role.EDITOR, Role.APPROVER, Role.OPERATOR
KEEPER, VIEWER = Role.LIST_KEEPER, Role.VIEWER
ALL = frozenset(Role)
NOBODY: frozenset[Role] = frozenset()

#: Models that only some roles see; of others the list, a row and its history are for everybody.
SEEN_BY = {
    "consenttext": {KEEPER},
    "installation": NOBODY,
    "providerevent": NOBODY,
    "signup": {KEEPER},
    "signupattempt": {KEEPER},
    "webhookcount": NOBODY,
}
ADDS = {
    "attributedefinition": {EDITOR, KEEPER},
    "campaign": {EDITOR},
    "image": {EDITOR},
    "layout": {EDITOR},
    "membership": {EDITOR, KEEPER},
    "segment": {EDITOR, KEEPER},
    "signupform": {KEEPER},
    "subscriber": {KEEPER},
    "suppression": {KEEPER},
}
DELETES = {
    "attributedefinition": {KEEPER},
    "campaign": {EDITOR},
    "image": {EDITOR},
    "layout": {EDITOR},
    "ratelimit": {OPERATOR},
    "signupform": {KEEPER},
    "transportpause": {OPERATOR},
}
#: Pages of our own, by ``model_page``: whoever may open or post to them. Of what is not named
#: here, and begins with a name that is, the same is true: ``campaign_preview`` and its parts.
PAGES = {
    # An editor looks at the checklist; who may approve is below.
    "campaign_approve": {APPROVER, EDITOR},
    "campaign_withdraw": {APPROVER},
    "campaign_pause": {OPERATOR},
    "campaign_resume": {OPERATOR},
    "campaign_cancel": {OPERATOR},
    "campaign_copy": {EDITOR},
    "campaign_preview": ALL,
    "campaign_preview_new": {EDITOR},
    "campaign_test": {EDITOR, APPROVER},
    "layout_preview": ALL,
    "importjob_mapping": {EDITOR, KEEPER},
    "importjob_go_on": {EDITOR, KEEPER},
    "importjob_cancel": {EDITOR, KEEPER},
    "importjob_state": ALL,
    "importjob_rejects": ALL,
    "segment_add_people": {EDITOR, KEEPER},
    "segment_remove_people": {EDITOR, KEEPER},
    "subscriber_import": {EDITOR, KEEPER},
    "subscriber_export": {KEEPER},
    "subscriber_person": {KEEPER},
    "suppression_release": {KEEPER},
    "suppression_import": {KEEPER},
    "suppression_export": {KEEPER},
    "send_progress": ALL,
    "send_report": ALL,
    "send_doubt": ALL,
    "send_story": ALL,
    "transportpause_overview": ALL,
}


def expected(page: Page) -> frozenset[Role] | None:
    """Who may open it; ``None``: nothing is known of it."""
    assert page.model is not None
    model = str(page.model._meta.model_name)
    match page.verb:
        case "changelist" | "change" | "history":
            return frozenset(SEEN_BY.get(model, ALL))
        case "add":
            return frozenset(ADDS.get(model, NOBODY))
        case "delete":
            return frozenset(DELETES.get(model, NOBODY))
    name = f"{model}_{page.verb}"
    named = [known for known in PAGES if name == known or name.startswith(f"{known}_")]
    return frozenset(PAGES[max(named, key=len)]) if named else None


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


def client_of(role: Role, account: Account) -> Client:
    role_groups.update()
    user = StaffFactory.create()
    user.groups.add(Group.objects.get(sendonce_role__role=role))
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def test_every_page_is_somebodys() -> None:
    """A page that is new here has to say whose it is."""
    unknown = [str(p) for p in pages() if p.model is not None and expected(p) is None]
    assert unknown == []


@pytest.mark.parametrize("role", Role)
def test_each_role_opens_its_pages_and_no_others(account: Account, role: Role) -> None:
    rows = one_of_each(account)
    draft = CampaignFactory.create(account=account)
    client = client_of(role, account)
    wrong = []
    for page in pages():
        if page.model is None or (allowed := expected(page)) is None:
            continue
        ids = {str(rows[page.model].pk)} if page.model in rows else {"1"}
        if "/campaign/" in page.route:
            ids = {str(draft.pk)}
        if page.converters and "/send/" in page.route:
            ids |= {str(draft.pk)}
        for address in page.addresses(ids):
            get = client.get(address)
            if role in allowed and get.status_code != 403:
                continue
            post = client.post(address, {"what": "-"})
            got = {get.status_code, post.status_code}
            if role in allowed:
                # 404: it asks for more than an id.
                if not got - {403}:
                    wrong.append(f"{page}: {role} is shut out ({sorted(got)})")
            elif got - {403, 404, 405} and not _led_away(get, post):
                wrong.append(f"{page}: {role} gets in ({sorted(got)})")
    assert wrong == [], wrong


def _led_away(*answers: Any) -> bool:
    """Django's answer for a row that is not there, which one sees who may not see any."""
    return all(a.status_code in (302, 403, 404, 405) for a in answers) and all(
        a["Location"] == "/admin/" for a in answers if a.status_code == 302
    )


@pytest.mark.parametrize("role", Role)
def test_what_a_role_may_not_do_does_nothing(account: Account, role: Role) -> None:
    campaign = CampaignFactory.create(account=account, sending=True)
    draft = CampaignFactory.create(account=account)
    client = client_of(role, account)
    answer = client.post(
        f"/admin/sendonce_campaigns/campaign/{draft.pk}/approve/", {"start": "now"}
    )
    assert (answer.status_code == 403) is (role is not APPROVER)
    for verb in ("pause", "resume", "cancel", "withdraw"):
        client.post(f"/admin/sendonce_campaigns/campaign/{campaign.pk}/{verb}/")
    campaign.refresh_from_db()
    assert campaign.status == ("canceled" if role is OPERATOR else "sending")


@pytest.mark.parametrize("role", Role)
def test_a_group_without_a_membership_shows_nothing(account: Account, role: Role) -> None:
    one_of_each(account)
    client = client_of(role, AccountFactory.create(transport="other"))
    page = client.get("/admin/sendonce_campaigns/campaign/")
    assert page.status_code == 200
    assert list(page.context["cl"].result_list) == []
