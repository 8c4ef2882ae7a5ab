"""The page that a campaign is written on: layouts, merge fields, images, hostile input."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from campaigns.composing import SHOWN_FIELDS, SHOWN_IMAGES
from campaigns.forms import CampaignForm
from campaigns.models import Campaign, Image
from subscribers.models import AttributeDefinition
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    CampaignFactory,
    ImageFactory,
    LayoutFactory,
)

from . import admin_pages, campaign_pages
from .campaign_pages import client_with, url
from .test_admin_campaign_editing import form_of

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


def errors(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200
    found: dict[str, list[str]] = answer.context["adminform"].form.errors
    return found


def test_only_the_accounts_layouts_can_be_chosen(boss: Client, campaign: Campaign) -> None:
    mine, other = LayoutFactory.create(account=campaign.account), LayoutFactory.create()
    page = boss.get(url("change", campaign.pk))
    assert list(page.context["adminform"].form.fields["layout"].queryset) == [mine]
    forged = form_of(campaign, layout=other.pk, body="{% block title %}T{% endblock %}x")
    found = errors(boss.post(url("change", campaign.pk), forged))
    assert list(found) == ["layout"]
    form = form_of(campaign, layout=mine.pk, body="{% block title %}T{% endblock %}<p>x</p>")
    assert boss.post(url("change", campaign.pk), form).status_code == 302
    campaign.refresh_from_db()
    assert (campaign.layout, campaign.version) == (mine, 2)


@pytest.mark.parametrize(
    ("changes", "frame", "field", "words"),
    [
        (
            {"body": "a\n{% block x %}{% endblock %}"},
            "html",
            "body",
            "Line 2, column 1: The layout",
        ),
        ({"body": "<html><body>x"}, "html", "body", "leave out &lt;html&gt;"),
        ({"body": "x"}, "mjml", "layout", "needs one in HTML"),
        ({"body": "x"}, "broken", "layout", "In its line 2, column 1: There is no tag"),
        ({"body": "{% block x %}{% endblock %}"}, "", "body", "no layout is chosen"),
        (
            {"body": "\n<mjml>\n<mj-body><mj-nope/></mj-body></mjml>", "body_format": "mjml"},
            "",
            "body",
            "Line 3, column 10: MJML has no element",
        ),
        (
            {"body": "# A\n\n* {{ b|c }}", "body_format": "markdown"},
            "html",
            "body",
            "Line 3, column 3: There is no filter",
        ),
    ],
)
def test_an_error_is_said_beside_the_field_that_holds_it(
    boss: Client, campaign: Campaign, changes: dict[str, Any], frame: str, field: str, words: str
) -> None:
    content = "{% block content %}{% endblock %}"
    bodies = {
        "html": ("html", f"<html><body>{content}"),
        "mjml": ("mjml", f"<mjml><mj-body>{content}</mj-body></mjml>"),
        "broken": ("html", f"{content}\n{{% x %}}"),
    }
    layout: Any = ""
    if frame:
        kind, body = bodies[frame]
        layout = LayoutFactory.create(account=campaign.account, body_format=kind, body=body).pk
    answer = boss.post(url("change", campaign.pk), form_of(campaign, layout=layout, **changes))
    found = errors(answer)
    assert list(found) == [field]
    assert words in str(found[field])


@pytest.mark.parametrize("field", ["name", "subject", "from_name", "from_email", "reply_to"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\x00", "\x85", "\u2028"])
def test_no_field_brings_a_header_along(
    boss: Client, campaign: Campaign, field: str, end: str
) -> None:
    value = f"a@example.org{end}Bcc: victim@example.org"
    answer = boss.post(url("change", campaign.pk), form_of(campaign, **{field: value}))
    assert field in errors(answer)
    campaign.refresh_from_db()
    assert campaign.version == 1


@pytest.mark.parametrize(
    "body",
    [
        "x" * 8_000_000,
        "{% block x %}" * 70_000,
        "{{" * 400_000,
        "{% if a %}" * 5_000,
        "x\0y",
        "{% include 'layout' %}",
        "{% extends 'layout' %}",
    ],
    ids=range(7),
)
def test_a_hostile_body_is_an_error_and_nothing_else(
    boss: Client, campaign: Campaign, body: str
) -> None:
    layout = LayoutFactory.create(account=campaign.account, name="layout")
    form = form_of(campaign, body=body, layout=layout.pk)
    assert list(errors(boss.post(url("change", campaign.pk), form))) == ["body"]


def test_the_end_is_in_the_accounts_zone_and_after_the_beginning(
    boss: Client, campaign: Campaign
) -> None:
    late = form_of(campaign, scheduled_for="2999-07-01T10:00", finish_by="2999-07-01T10:00")
    assert list(errors(boss.post(url("change", campaign.pk), late))) == ["finish_by"]
    past = form_of(campaign, finish_by="2001-01-01T10:00")
    assert list(errors(boss.post(url("change", campaign.pk), past))) == ["finish_by"]
    form = form_of(campaign, scheduled_for="2999-07-01T10:00", finish_by="2999-07-01T12:00")
    assert boss.post(url("change", campaign.pk), form).status_code == 302
    campaign.refresh_from_db()
    assert campaign.finish_by is not None
    assert campaign.finish_by.isoformat() == "2999-07-01T10:00:00+00:00"


def test_an_end_that_has_passed_does_not_stop_another_edit(
    boss: Client, campaign: Campaign
) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(finish_by=timezone.now() - timedelta(days=1))
    campaign.refresh_from_db()
    form = form_of(campaign, subject="New")
    assert boss.post(url("change", campaign.pk), form).status_code == 302


def test_the_page_lists_what_may_be_written(boss: Client, campaign: Campaign) -> None:
    account = campaign.account
    AttributeDefinitionFactory.create(account=account, key="first_name")
    AttributeDefinitionFactory.create(key="of_another_account")
    image = ImageFactory.create(account=account)
    other = ImageFactory.create(name="Of another account")
    page = boss.get(url("change", campaign.pk)).content.decode()
    assert 'data-insert="{{ first_name|default:&quot;friend&quot; }}"' in page
    assert 'data-insert="{{ unsubscribe_url }}"' in page
    assert "of_another_account" not in page
    assert f"/images/{image.key}.png" in page
    assert str(other.key) not in page
    assert f"image/add/?account={account.pk}" in page


def test_whoever_may_not_see_images_is_not_shown_any(campaign: Campaign) -> None:
    image = ImageFactory.create(account=campaign.account)
    client = client_with(campaign.account, "view_campaign", "change_campaign")
    assert str(image.key) not in client.get(url("change", campaign.pk)).content.decode()
    seer = client_with(campaign.account, "view_campaign", "change_campaign", "view_image")
    page = seer.get(url("change", campaign.pk)).content.decode()
    assert str(image.key) in page
    assert "image/add" not in page
    # Who only looks writes nothing.
    looker = client_with(campaign.account, "view_campaign", "view_image")
    assert "sendonce-palette" not in looker.get(url("change", campaign.pk)).content.decode()


def test_the_page_asks_the_same_of_many_and_lists_so_many(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    account = AccountFactory.create()
    campaign = CampaignFactory.create(account=account)

    def count() -> int:
        with django_assert_max_num_queries(40) as seen:
            boss.get(url("change", campaign.pk))
        return len(seen)

    boss.get(url("change", campaign.pk))
    few = count()
    for _ in range(SHOWN_FIELDS + 5):
        AttributeDefinitionFactory.create(account=account)
    ImageFactory.create_batch(SHOWN_IMAGES + 5, account=account)
    AttributeDefinitionFactory.create()
    ImageFactory.create()
    LayoutFactory.create_batch(20, account=account)
    assert count() == few
    answer = boss.get(url("change", campaign.pk))
    assert len(answer.context["compose"]["images"]) == SHOWN_IMAGES
    page = answer.content.decode()
    # What is left out is said, with the way to it.
    for listed in (AttributeDefinition, Image):
        address = f"{admin_pages.url(listed, 'changelist')}?account={account.pk}"
        assert re.search(rf'And 5 more: <a href="{re.escape(address)}"', page)
        of_account = listed.objects.filter(account=account).count()
        assert boss.get(address).context["cl"].result_count == of_account


def test_the_list_asks_the_same_of_many(boss: Client, django_assert_max_num_queries: Any) -> None:
    account = AccountFactory.create()

    def count() -> int:
        with django_assert_max_num_queries(20) as seen:
            boss.get(url("changelist"))
        return len(seen)

    CampaignFactory.create_batch(3, account=account, segments=[])
    few = count()
    for _ in range(27):
        CampaignFactory.create(account=AccountFactory.create(), segments=[])
    assert abs(count() - few) <= 1  # the filter by account appears with the second


def test_the_form_offers_the_formats_of_layouts_by_name() -> None:
    layout = LayoutFactory.create(name="House")
    campaign = CampaignFactory.create(account=layout.account)
    choices = [label for _, label in CampaignForm(instance=campaign).fields["layout"].choices]  # type: ignore[attr-defined]
    assert choices == ["None", "House, HTML (for HTML and Markdown)"]
