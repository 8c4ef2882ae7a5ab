"""Layouts in campaigns: the digest, edits that take approvals back, and what happens at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from campaigns import layout_edits, lifecycle
from campaigns.digest import digest
from campaigns.editing import edit
from campaigns.errors import CampaignError, Conflict
from campaigns.layout_edits import LayoutInUse, delete_layout, edit_layout, layout_problems
from campaigns.models import Approval, Campaign, Layout
from tests.factories import AccountFactory, CampaignFactory, LayoutFactory, StaffFactory

from .lifecycles import stored
from .racing import Race

OTHER = "<html><body><h1>New</h1>{% block content %}{% endblock %}</body></html>"


def framed(layout: Layout, **fields: Any) -> Campaign:
    made: Campaign = CampaignFactory.create(
        account=layout.account, layout=layout, body="<p>Hi</p>", **{"readers": 1, **fields}
    )
    return made


def approved(layout: Layout, **fields: Any) -> Campaign:
    return lifecycle.approve(framed(layout, **fields), by=StaffFactory.create())


@pytest.mark.django_db
def test_what_is_frozen_at_approval_is_the_framed_message() -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    assert campaign.content is not None
    assert "<p>Hi</p>" in campaign.content.html
    assert "<title>News</title>" in campaign.content.html
    assert campaign.content.text.startswith("Hi")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"body": OTHER},
        {"body_format": "text"},
    ],
    ids=str,
)
def test_the_digest_sees_the_layout(change: dict[str, str]) -> None:
    layout = LayoutFactory.create()
    campaign = framed(layout)
    before = digest(stored(campaign))
    Layout.objects.filter(pk=layout.pk).update(name="Renamed", version=7)
    assert digest(stored(campaign)) == before
    Layout.objects.filter(pk=layout.pk).update(**change)
    assert digest(stored(campaign)) != before
    twin = LayoutFactory.create(account=layout.account)
    Campaign.objects.filter(pk=campaign.pk).update(layout=None)
    without = digest(stored(campaign))
    Campaign.objects.filter(pk=campaign.pk).update(layout=twin)
    assert len({before, without, digest(stored(campaign))}) == 3


@pytest.mark.django_db
def test_an_edit_takes_back_the_approvals_of_its_campaigns_and_of_no_other() -> None:
    by = StaffFactory.create()
    layout = LayoutFactory.create()
    first, second, draft = approved(layout), approved(layout), framed(layout)
    other = approved(LayoutFactory.create(account=layout.account))
    done = edit_layout(layout, version=1, values={"body": OTHER}, by=by)
    assert [found.pk for found in done.withdrawn] == [first.pk, second.pk]
    assert (layout.body, layout.version) == (OTHER, 2)
    for campaign in (first, second):
        after = stored(campaign)
        assert (after.status, after.content, after.approved_digest) == ("draft", None, "")
        assert after.status_reason == f"its layout was edited by {by.get_username()}"
        approval = Approval.objects.get(campaign=campaign)
        assert approval.voided_at is not None
        assert approval.void_reason == after.status_reason
    assert stored(draft).status_reason == ""
    assert stored(other).status == "approved"


@pytest.mark.django_db
@pytest.mark.parametrize("values", [{"name": "Renamed"}, {}, {"body": None}], ids=str)
def test_an_edit_that_nobody_sees_takes_nothing_back(values: dict[str, Any]) -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    same = {name: layout.body if value is None else value for name, value in values.items()}
    assert edit_layout(layout, version=1, values=same).withdrawn == []
    assert stored(campaign).status == "approved"
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=timezone.now())
    assert layout.version == 2


@pytest.mark.django_db
def test_what_is_being_sent_stays_as_it_was_approved() -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    assert lifecycle.due(campaign)
    content = stored(campaign).content
    done = edit_layout(layout, version=1, values={"body": OTHER})
    assert (done.withdrawn, done.started) == ([], [])
    after = stored(campaign)
    assert (after.status, after.content) == ("sending", content)


@pytest.mark.django_db
def test_of_two_editors_the_later_is_told() -> None:
    layout = LayoutFactory.create()
    edit_layout(layout, version=1, values={"name": "First"})
    with pytest.raises(Conflict, match="the layout was edited meanwhile"):
        edit_layout(layout, version=1, values={"name": "Second"})
    layout.refresh_from_db()
    assert layout.name == "First"
    with pytest.raises(ValueError, match="version"):
        edit_layout(layout, version=2, values={"version": 9})
    Layout.objects.filter(pk=layout.pk).delete()
    with pytest.raises(Conflict):
        edit_layout(layout, version=2, values={"name": "Gone"})


@pytest.mark.django_db
def test_an_edit_round_the_admin_is_found_when_the_campaign_falls_due() -> None:
    """As it would be, too, had a process died between the edit and what follows from it."""
    layout = LayoutFactory.create()
    campaign = approved(layout)
    Layout.objects.filter(pk=layout.pk).update(body=OTHER)
    assert lifecycle.due(campaign) is False
    after = stored(campaign)
    assert (after.status, after.status_reason) == ("draft", lifecycle.EDITED_ROUND)
    assert lifecycle.due(lifecycle.approve(after, by=StaffFactory.create())) is True


@pytest.mark.django_db
def test_a_layout_of_another_account_is_refused_at_approval() -> None:
    campaign = CampaignFactory.create(body="<p>Hi</p>", readers=1)
    edit(campaign, version=1, values={"layout": LayoutFactory.create()})
    with pytest.raises(CampaignError, match="of another account"):
        lifecycle.approve(campaign, by=StaffFactory.create())


@pytest.mark.django_db
def test_a_layout_in_use_is_not_deleted() -> None:
    layout = LayoutFactory.create()
    framed(layout)
    with pytest.raises(LayoutInUse, match="1 campaign has this layout"):
        delete_layout(layout)
    Campaign.objects.all().update(layout=None)
    delete_layout(Layout.objects.get())
    assert not Layout.objects.exists()


@pytest.mark.parametrize(
    ("body_format", "body", "wrong"),
    [
        ("html", OTHER, []),
        ("text", "{% block content %}{% endblock %}", []),
        ("mjml", "<mjml><mj-body>{% block content %}{% endblock %}</mj-body></mjml>", []),
        (
            "mjml",
            "<mjml><mj-body><mj-section><mj-column>{% block content %}{% endblock %}"
            "</mj-column></mj-section></mj-body></mjml>",
            [],
        ),
        ("html", "<p>", [("layout", None)]),
        ("html", OTHER + "\n{% include 'x' %}", [("layout", 2)]),
        ("html", OTHER + "\n{% block content %}{% endblock %}", [("layout", 2)]),
        (
            "mjml",
            "<mjml>\n<mj-body>{% block content %}{% endblock %}<mj-x/></mj-body></mjml>",
            [("layout", 2)],
        ),
        ("pdf", OTHER, [("layout", None)]),
    ],
)
def test_a_layout_has_to_compile_with_some_body(
    body_format: str, body: str, wrong: list[Any]
) -> None:
    account = AccountFactory.build(pk=1)
    found = layout_problems(Layout(account=account, body_format=body_format, body=body))
    assert [(error.field, error.line) for error in found] == wrong


# --- at once, and with dying processes ---------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_approval_waits_for_an_edit_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = LayoutFactory.create()
    campaign = framed(layout, scheduled_for=timezone.now() + timedelta(days=1))
    by = StaffFactory.create()
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(layout_edits, "approved_with", halt.behind(layout_edits.approved_with))
        editor = race.start_to(halt, lambda: edit_layout(layout, version=1, values={"body": OTHER}))
        approver = race.start(lambda: lifecycle.approve(stored(campaign), by=by))
        approver.wait_until_blocked()
        halt.released.set()
        assert editor.result().withdrawn == []
        content = approver.result().content
    assert content is not None
    assert "<h1>New</h1>" in content.html
    after = stored(campaign)
    assert after.status == "approved"
    assert digest(after, after.content) == after.approved_digest


@pytest.mark.django_db(transaction=True)
def test_an_edit_waits_for_an_approval_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = LayoutFactory.create()
    campaign = framed(layout, scheduled_for=timezone.now() + timedelta(days=1))
    by = StaffFactory.create()
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "digest", halt.behind(digest))
        approver = race.start_to(halt, lambda: lifecycle.approve(stored(campaign), by=by))
        editor = race.start(lambda: edit_layout(layout, version=1, values={"body": OTHER}))
        editor.wait_until_blocked()
        halt.released.set()
        approver.result()
        assert [found.pk for found in editor.result().withdrawn] == [campaign.pk]
    assert stored(campaign).status == "draft"


@pytest.mark.django_db(transaction=True)
def test_a_campaign_that_falls_due_meanwhile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = LayoutFactory.create()
    campaign = approved(layout)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(layout_edits, "approved_with", halt.behind(layout_edits.approved_with))
        editor = race.start_to(halt, lambda: edit_layout(layout, version=1, values={"body": OTHER}))
        assert lifecycle.due(stored(campaign)) is True
        halt.released.set()
        done = editor.result()
    assert (done.withdrawn, [found.pk for found in done.started]) == ([], [campaign.pk])
    after = stored(campaign)
    assert after.status == "sending"
    assert after.content is not None
    assert "<h1>New</h1>" not in after.content.html


@pytest.mark.django_db(transaction=True)
def test_who_dies_between_the_edit_and_the_approvals_has_changed_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = LayoutFactory.create()
    first, second = approved(layout), approved(layout)
    with Race() as race:
        # Behind the first of two withdrawals.
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "withdraw", halt.behind(lifecycle.withdraw))
        editor = race.start_to(halt, lambda: edit_layout(layout, version=1, values={"body": OTHER}))
        editor.kill_backend()
        halt.released.set()
        with pytest.raises(DatabaseError):
            editor.result()
    layout.refresh_from_db()
    assert (layout.version, layout.body) != (2, OTHER)
    assert {stored(first).status, stored(second).status} == {"approved"}
    assert not Approval.objects.filter(voided_at__isnull=False).exists()


@pytest.mark.django_db(transaction=True)
def test_a_layout_that_is_just_being_chosen_is_not_deleted() -> None:
    layout = LayoutFactory.create()
    campaign = CampaignFactory.create(account=layout.account)
    with Race() as race:
        halt = race.halt()

        def chooses() -> None:
            from django.db import transaction

            with transaction.atomic():
                Campaign.objects.filter(pk=campaign.pk).update(layout=layout)
                with connection.cursor() as cursor:
                    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                halt.here()

        race.start_to(halt, chooses)
        deleter = race.start(lambda: delete_layout(Layout.objects.get(pk=layout.pk)))
        deleter.wait_until_blocked()
        halt.released.set()
        with pytest.raises(LayoutInUse):
            deleter.result()
    assert stored(campaign).layout_id == layout.pk
