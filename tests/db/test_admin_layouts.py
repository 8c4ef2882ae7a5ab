"""The admin of layouts: errors in their places, two editors, and what an edit takes back."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from campaigns import lifecycle
from campaigns.library_forms import LayoutForm
from campaigns.models import Campaign, Layout
from subscribers.models import AuditEvent
from tests.factories import AccountFactory, CampaignFactory, LayoutFactory, StaffFactory

from . import admin_pages
from .campaign_pages import boss as boss  # a fixture
from .campaign_pages import said, status_of

pytestmark = pytest.mark.django_db

FRAME = "<html><body>{% block content %}{% endblock %}</body></html>"


def url(page: str, *args: Any) -> str:
    return admin_pages.url(Layout, page, *args)


def form_of(layout: Layout, **changes: Any) -> dict[str, Any]:
    form = LayoutForm(instance=layout)
    given = {name: form[name].value() for name in form.fields if name != "account"}
    return {**given, **changes}


def approved(layout: Layout) -> Campaign:
    campaign = CampaignFactory.create(
        account=layout.account, layout=layout, body="<p>Hi</p>", readers=1
    )
    return lifecycle.approve(campaign, by=StaffFactory.create())


def test_a_layout_is_made_for_the_chosen_account_and_recorded(boss: Client) -> None:
    account, _ = AccountFactory.create(), AccountFactory.create()
    assert len(boss.get(url("add")).context["accounts"]) == 2
    assert boss.get(url("add"), {"account": account.pk}).status_code == 200
    form = {"account": account.pk, "name": "House", "body_format": "html", "body": FRAME}
    assert boss.post(url("add"), form).status_code == 302
    layout = Layout.objects.get()
    assert (layout.account, layout.version) == (account, 1)
    assert AuditEvent.objects.get().verb == "layout.add"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"body": "<p>"}, "body", "no {% block content %}"),
        ({"body": FRAME + "\n {{ a|b }}"}, "body", "Line 2, column 2: There is no filter"),
        ({"body": FRAME + FRAME}, "body", "Line 1, column 72: There is a second"),
        ({"body": FRAME, "body_format": "mjml"}, "body", "MJML"),
        ({"body": "\n{% extends 'House' %}"}, "body", "no {% block content %}"),
        ({"body": FRAME + "{% include 'House' %}"}, "body", "no tag {% include %}"),
        ({"body": "x" * 1_000_001}, "body", "longer than"),
        ({"body": FRAME + "\0"}, "body", "Null characters"),
        ({"body_format": "markdown"}, "body_format", "valid choice"),
        ({"name": "a\nBcc: x@example.org"}, "name", "line ends"),
        ({"name": ""}, "name", "required"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    boss: Client, changes: dict[str, Any], field: str, words: str
) -> None:
    layout = LayoutFactory.create()
    answer = boss.post(url("change", layout.pk), form_of(layout, **changes))
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert words in errors.as_text()
    layout.refresh_from_db()
    assert layout.version == 1


def test_an_edit_says_whose_approval_it_took_back(boss: Client) -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    page = boss.get(url("change", layout.pk)).content.decode()
    assert f"An edit takes back the approval of {campaign}" in page
    answer = boss.post(url("change", layout.pk), form_of(layout, body=FRAME))
    assert answer.status_code == 302
    assert f"This edit took approvals back: “{campaign}” has to be approved anew." in said(answer)
    assert status_of(campaign) == "draft"
    assert set(AuditEvent.objects.values_list("verb", "subject")) == {
        ("layout.edit", str(layout)),
        ("campaign.withdraw", str(campaign)),
    }
    event = AuditEvent.objects.get(verb="campaign.withdraw")
    assert event.reason.startswith("its layout was edited by staff")
    assert LogEntry.objects.filter(object_id=str(campaign.pk)).count() == 1


def test_saving_without_a_change_takes_nothing_back(boss: Client) -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    form = form_of(layout)
    form["body"] = form["body"].replace("\n", "\r\n")
    assert boss.post(url("change", layout.pk), form).status_code == 302
    assert status_of(campaign) == "approved"
    assert not AuditEvent.objects.exists()


def test_of_two_editors_the_later_is_told_and_keeps_what_was_typed(boss: Client) -> None:
    layout = LayoutFactory.create()
    first, second = form_of(layout, name="First"), form_of(layout, name="Second")
    assert boss.post(url("change", layout.pk), first).status_code == 302
    answer = boss.post(url("change", layout.pk), second)
    assert "the layout was edited meanwhile" in answer.content.decode()
    assert 'value="Second"' in answer.content.decode()
    layout.refresh_from_db()
    assert layout.name == "First"
    for version in ("", "x", "99"):
        blind = form_of(layout, name="Blind", seen_version=version)
        assert boss.post(url("change", layout.pk), blind).status_code == 200


def test_a_layout_in_use_can_not_be_deleted(boss: Client) -> None:
    layout, free = LayoutFactory.create(), LayoutFactory.create()
    CampaignFactory.create(account=layout.account, layout=layout)
    for found, status in ((layout, 403), (free, 302)):
        answer = boss.post(url("delete", found.pk), {"post": "yes"})
        assert answer.status_code == status
    assert list(Layout.objects.all()) == [layout]
    assert AuditEvent.objects.get().verb == "layout.delete"


def test_the_list_and_the_page_ask_the_same_of_many(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    layout = LayoutFactory.create()
    for _ in range(30):
        LayoutFactory.create(account=layout.account)
        CampaignFactory.create(account=layout.account, layout=layout)
    with django_assert_max_num_queries(9):
        boss.get(url("changelist"))
    with django_assert_max_num_queries(12):
        page = boss.get(url("change", layout.pk)).content.decode()
    listed = f'{admin_pages.url(Campaign, "changelist")}?layout__id__exact={layout.pk}">20 more</a>'
    assert listed in page
