"""The preview of a campaign: who may see it, as whom, and what it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from campaigns import hooks
from campaigns.admin.frames import POLICY
from campaigns.models import Campaign, Content, Layout
from sending.models import Send
from subscribers.models import Account, AuditEvent, Subscriber
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    StaffFactory,
    SubscriberFactory,
)

from .campaign_pages import boss, campaign, client_with, url

__all__ = ["boss", "campaign"]
pytestmark = pytest.mark.django_db


def typed(campaign: Campaign, **values: Any) -> dict[str, Any]:
    """What a browser posts from the composing page."""
    return {
        "account": campaign.account_id,
        "name": campaign.name,
        "subject": campaign.subject,
        "preheader": campaign.preheader,
        "body_format": campaign.body_format,
        "body": campaign.body,
        "text_body": "",
        "segments": [segment.pk for segment in campaign.segments.all()],
        **values,
    }


def searching(account: Account, *codenames: str) -> Client:
    """A member who may look people up, too."""
    user = StaffFactory.create()
    user.user_permissions.set(
        Permission.objects.filter(codename__in=("view_subscriber", *codenames))
    )
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


# --- what it shows ---------------------------------------------------------------------------


def test_the_page_shows_all_parts_as_the_first_of_the_audience(
    boss: Client, campaign: Campaign
) -> None:
    SubscriberFactory.create(account=campaign.account, attributes={"first_name": "Zoe"})
    answer = boss.get(url("preview", campaign.pk))
    page = answer.content.decode()
    person = Subscriber.objects.order_by("pk")[0]
    assert person.email in page
    assert "Spring, Ann" in page
    names = [line.name for line in answer.context["headers"]]
    assert {"From", "To", "Subject", "Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post",
            "Feedback-ID", "Date"} <= set(names)  # fmt: skip
    assert "multipart/alternative" in answer.context["source"]
    frame = f"{url('preview_frame', campaign.pk)}?as={person.pk}&amp;part=html"
    assert page.count(frame) == 2
    assert page.count(" sandbox ") == 2


def test_the_source_is_what_the_sender_makes(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("preview", campaign.pk))
    headers = {line.name: line.value for line in answer.context["headers"]}
    person = Subscriber.objects.get()
    assert headers["To"] == person.email
    assert headers["List-Unsubscribe"].endswith("/u/test>")
    assert headers["Feedback-ID"].startswith(f"{campaign.pk}:{campaign.account.slug}:")
    assert headers["Subject"] == "Spring, Ann"


def test_no_preview_holds_a_working_link(boss: Client, campaign: Campaign) -> None:
    campaign.body = "{{ unsubscribe_url }} {{ preferences_url }} {{ web_url }}"
    campaign.save()
    page = boss.get(url("preview", campaign.pk))
    frame = boss.get(url("preview_frame", campaign.pk))
    for shown in (page.content.decode(), frame.content.decode()):
        assert "/u/test" in shown
        assert not [word for word in shown.split("/u/")[1:] if not word.startswith("test")]


def test_the_page_behind_such_a_link_changes_nothing(client: Client, campaign: Campaign) -> None:
    for answer in (
        client.get("/u/test"),
        client.post("/u/test", {"List-Unsubscribe": "One-Click"}),
    ):
        assert answer.status_code == 200
        assert "This was a test message" in answer.content.decode()
    assert Subscriber.objects.get().status == Subscriber.Status.CONFIRMED


def test_the_frame_has_a_policy_of_its_own(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("preview_frame", campaign.pk))
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "default-src 'none'" in POLICY
    assert "sandbox;" in POLICY
    assert "script-src" not in POLICY
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer.headers["Cache-Control"]
    page = boss.get(url("preview", campaign.pk))
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "unsafe-inline" not in page.headers["Content-Security-Policy"]


def test_the_frame_shows_the_text(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("preview_frame", campaign.pk), {"part": "text"})
    assert "<pre>" in answer.content.decode()


def test_an_approved_campaign_shows_what_was_approved(boss: Client) -> None:
    approved = CampaignFactory.create(approved=True, content__text="As it was approved")
    Campaign.objects.filter(pk=approved.pk).update(body="Changed by the back door")
    page = boss.get(url("preview", approved.pk)).content.decode()
    assert "As it was approved" in page
    assert "back door" not in page


def test_fields_that_the_person_lacks_are_told(boss: Client, campaign: Campaign) -> None:
    campaign.body = "{{ city }} {{ shoe|default:'-' }}"
    campaign.save()
    page = boss.get(url("preview", campaign.pk)).content.decode()
    assert "<li>city: nothing is shown there</li>" in page
    assert "<li>shoe: its default is shown</li>" in page


def test_without_a_sender_installed_the_page_says_so(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks.message_source, "_filled", None)
    page = boss.get(url("preview", campaign.pk)).content.decode()
    assert "Nothing is installed here that sends." in page


def test_looking_writes_nothing(boss: Client, campaign: Campaign) -> None:
    boss.get(url("preview", campaign.pk))
    before = Campaign.objects.values().get()
    boss.post(url("preview", campaign.pk), typed(campaign, subject="Other", name="Other"))
    boss.post(url("preview_frame", campaign.pk), typed(campaign, body="Other"))
    boss.post(url("preview_check", campaign.pk), typed(campaign, body="Other"))
    assert Campaign.objects.values().get() == before
    assert not Content.objects.exists()
    assert not Send.objects.exists()
    assert not AuditEvent.objects.exists()


# --- what is typed ---------------------------------------------------------------------------


def test_what_is_typed_is_shown_and_not_saved(boss: Client, campaign: Campaign) -> None:
    values = typed(campaign, subject="New {{ first_name }}", body="<p>typed</p>")
    answer = boss.post(url("preview", campaign.pk), values)
    page = answer.content.decode()
    assert "New Ann" in page
    assert "It is not saved." in page
    assert answer.context["values"][0] == ("subject", "New {{ first_name }}")
    frame = boss.post(url("preview_frame", campaign.pk), values)
    assert "<p>typed</p>" in frame.content.decode()
    assert frame.headers["Content-Security-Policy"] == POLICY


def test_a_new_campaign_is_shown_before_it_is_saved(boss: Client, campaign: Campaign) -> None:
    values = typed(campaign, body="<p>brand new {{ first_name }}</p>")
    page = boss.post(url("preview_new"), values)
    assert page.context["shown"].rendered.text.strip().startswith("brand new Ann")
    frame = boss.post(url("preview_new_frame"), values)
    assert "brand new Ann" in frame.content.decode()
    check = boss.post(url("preview_new_check"), values).json()
    assert (check["problems"], check["as"]) == ([], Subscriber.objects.get().email)
    assert Campaign.objects.count() == 1


def test_errors_have_their_line_and_column(boss: Client, campaign: Campaign) -> None:
    values = typed(campaign, body="<p>\r\nHello {{ first_name|upper2 }}")
    check = boss.post(url("preview_check", campaign.pk), values).json()
    assert len(check["problems"]) == 1
    assert check["problems"][0].startswith("Body, line 2, column 7: ")
    assert check["html"] == ""
    page = boss.post(url("preview", campaign.pk), values)
    assert page.status_code == 200
    assert "Body, line 2, column 7" in page.content.decode()
    assert "<iframe" not in page.content.decode()
    frame = boss.post(url("preview_frame", campaign.pk), values)
    assert "Body, line 2, column 7" in frame.content.decode()


def test_the_check_names_what_the_frame_would_show(boss: Client, campaign: Campaign) -> None:
    def name(**values: Any) -> str:
        answer = boss.post(url("preview_check", campaign.pk), typed(campaign, **values))
        return str(answer.json()["html"])

    assert name() == name(name="Another name")
    assert name() != name(body="<p>Another body</p>")
    assert name() != name(preview_as="nobody", body="<p>{{ first_name }}</p>")


def test_a_keystroke_asks_the_database_little(
    boss: Client, campaign: Campaign, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    values = typed(campaign)
    boss.post(url("preview_check", campaign.pk), values)
    for page in ("preview_check", "preview_frame"):
        with django_assert_max_num_queries(8):
            boss.post(url(page, campaign.pk), values)


def test_a_page_of_many_people_asks_no_more(boss: Client, campaign: Campaign) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            boss.get(url("preview", campaign.pk), {"q": "person"})
        return len(seen)

    boss.get(url("preview", campaign.pk))
    before = queries()
    SubscriberFactory.create_batch(30, account=campaign.account, segments=[campaign.segments.get()])
    assert queries() == before


# --- who may ---------------------------------------------------------------------------------

PAGES = ("preview", "preview_frame", "preview_check", "preview_new", "preview_new_frame",
         "preview_new_check")  # fmt: skip


def ask(client: Client, page: str, campaign: Campaign, **values: Any) -> Any:
    args = [] if "new" in page else [campaign.pk]
    return client.post(url(page, *args), typed(campaign, **values))


@pytest.mark.parametrize("page", PAGES)
def test_others_see_nothing(page: str, campaign: Campaign) -> None:
    member_of_another = client_with(
        AccountFactory.create(), "change_campaign", "view_campaign", "add_campaign"
    )
    answer = ask(member_of_another, page, campaign, body="typed")
    assert answer.status_code in (302, 404)
    assert ask(client_with(campaign.account), page, campaign).status_code == 403
    anonymous = ask(Client(), page, campaign)
    assert anonymous.status_code == 302
    assert "login" in anonymous.url


@pytest.mark.parametrize("page", ["preview", "preview_frame"])
def test_a_guessed_id_is_answered_as_one_that_does_not_exist(page: str, campaign: Campaign) -> None:
    client = client_with(AccountFactory.create(), "view_campaign")
    guessed = client.get(url(page, campaign.pk))
    missing = client.get(url(page, campaign.pk + 1000))
    assert guessed.status_code == missing.status_code
    assert guessed.status_code in (302, 404)


def test_viewing_is_enough_for_what_is_saved(campaign: Campaign) -> None:
    client = client_with(campaign.account, "view_campaign")
    assert client.get(url("preview", campaign.pk)).status_code == 200
    assert client.get(url("preview_frame", campaign.pk)).status_code == 200
    assert ask(client, "preview_new", campaign).status_code == 403


def test_without_the_right_to_see_people_there_is_no_search(campaign: Campaign) -> None:
    other = SubscriberFactory.create(account=campaign.account, email="other@example.org")
    client = client_with(campaign.account, "view_campaign")
    for asked in ({"q": "other"}, {"as": str(other.pk)}):
        answer = client.get(url("preview", campaign.pk), asked)
        assert answer.context["chosen"].reader.email != other.email
        assert 'name="q"' not in answer.content.decode()
    people = client.get(url("preview_people"), {"account": str(campaign.account_id), "q": "o"})
    assert people.status_code == 403


def test_the_list_of_people_is_of_ones_own_accounts(campaign: Campaign) -> None:
    SubscriberFactory.create_batch(20, account=campaign.account)
    client = searching(campaign.account, "view_campaign")
    asked = {"account": str(campaign.account_id), "q": "person"}
    found = client.get(url("preview_people"), asked).json()["people"]
    assert len(found) == 10
    stranger = SubscriberFactory.create()
    for account in (str(stranger.account_id), "", "x", "9" * 30):
        answer = client.get(url("preview_people"), {"account": account, "q": "person"})
        assert answer.status_code == 404


def test_a_layout_of_another_account_is_none(boss: Client, campaign: Campaign) -> None:
    body = "<html><body>FRAME {% block content %}{% endblock %}</body></html>"
    own = Layout.objects.create(account=campaign.account, name="Own", body=body)
    foreign = Layout.objects.create(account=AccountFactory.create(), name="Foreign", body=body)
    shown = {
        layout: boss.post(
            url("preview_frame", campaign.pk), typed(campaign, layout=layout, body="x")
        )
        for layout in (own.pk, foreign.pk, "x")
    }
    assert "FRAME" in shown[own.pk].content.decode()
    assert "FRAME" not in shown[foreign.pk].content.decode()
    assert "FRAME" not in shown["x"].content.decode()


@pytest.mark.parametrize("method", ["put", "delete", "options"])
def test_other_methods_are_refused(boss: Client, campaign: Campaign, method: str) -> None:
    assert getattr(boss, method)(url("preview", campaign.pk)).status_code == 405
    assert getattr(boss, method)(url("preview_frame", campaign.pk)).status_code == 405
    assert boss.get(url("preview_check", campaign.pk)).status_code == 405
    assert boss.get(url("preview_new")).status_code == 405


# --- layouts ---------------------------------------------------------------------------------


def layout_url(page: str, layout: Layout) -> str:
    return reverse(f"admin:sendonce_campaigns_layout_{page}", args=[layout.pk])


@pytest.mark.parametrize(
    ("body_format", "body", "shown"),
    [
        ("html", "<html><body>FRAME {% block content %}{% endblock %}</body></html>", "A headline"),
        ("text", "FRAME\n{% block content %}{% endblock %}", "A headline"),
        ("html", "no block", "There is no {% block content %}"),
    ],
)
def test_a_layout_is_shown_with_an_example(
    boss: Client, body_format: str, body: str, shown: str
) -> None:
    layout = Layout.objects.create(
        account=AccountFactory.create(), name="Frame", body_format=body_format, body=body
    )
    page = boss.get(layout_url("change", layout)).content.decode()
    assert page.count(layout_url("preview_frame", layout)) == 2
    answer = boss.get(layout_url("preview_frame", layout))
    assert shown in answer.content.decode()
    assert answer.headers["Content-Security-Policy"] == POLICY


def test_a_layout_is_shown_to_its_own_account(campaign: Campaign) -> None:
    layout = Layout.objects.create(account=campaign.account, name="Frame", body="x")
    stranger = searching(AccountFactory.create(), "view_layout")
    assert stranger.get(layout_url("preview_frame", layout)).status_code == 404
    assert searching(campaign.account).get(layout_url("preview_frame", layout)).status_code == 403
    own = searching(campaign.account, "view_layout")
    assert own.get(layout_url("preview_frame", layout)).status_code == 200


@pytest.mark.parametrize("page", ["preview", "preview_frame", "preview_check"])
def test_a_form_of_another_site_is_refused(campaign: Campaign, page: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(StaffFactory.create(superuser=True))
    assert client.post(url(page, campaign.pk), typed(campaign)).status_code == 403
