"""As whom a preview is shown: the first of the audience, whoever is looked up, or nobody."""

from __future__ import annotations

import pytest
from django.test import Client

from campaigns.models import Campaign
from subscribers.models import Segment, Subscriber
from tests.factories import SegmentFactory, SubscriberFactory

from .campaign_pages import boss, campaign, client_with, url
from .test_preview_pages import typed

__all__ = ["boss", "campaign"]
pytestmark = pytest.mark.django_db


def test_somebody_is_found_by_the_beginning_of_an_address(boss: Client, campaign: Campaign) -> None:
    for name in ("zoe", "zora", "zack"):
        SubscriberFactory.create(account=campaign.account, email=f"{name}@example.org")
    answer = boss.get(url("preview", campaign.pk), {"q": "ZO"})
    assert answer.context["chosen"].reader.email == "zoe@example.org"
    assert [other.email for other in answer.context["chosen"].others] == ["zora@example.org"]
    exact = boss.get(url("preview", campaign.pk), {"q": "zora@example.org"})
    assert exact.context["chosen"].reader.email == "zora@example.org"
    assert exact.context["chosen"].others == ()


@pytest.mark.parametrize("words", ["%", "_", "\\", "nobody-at-all", "x" * 400, "\0"])
def test_who_is_not_found_is_told(boss: Client, campaign: Campaign, words: str) -> None:
    answer = boss.get(url("preview", campaign.pk), {"q": words})
    assert answer.context["chosen"].said.startswith("No address begins with")
    assert answer.context["chosen"].is_first


def test_nobody_in_particular(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("preview", campaign.pk), {"as": "nobody", "q": "person"})
    assert answer.context["chosen"].reader.pk == 0
    assert answer.context["shown"].rendered.subject == "Spring, dear reader"


def test_an_id_of_another_account_is_nobodys(boss: Client, campaign: Campaign) -> None:
    stranger = SubscriberFactory.create(email="stranger@example.org")
    for raw in (str(stranger.pk), "999999999999", "9" * 40):
        answer = boss.get(url("preview", campaign.pk), {"as": raw})
        assert answer.status_code == 200
        assert "stranger@example.org" not in answer.content.decode()
    frame = boss.get(url("preview_frame", campaign.pk), {"as": stranger.pk})
    assert "stranger" not in frame.content.decode()


def test_the_first_is_one_whom_no_segment_excludes(boss: Client, campaign: Campaign) -> None:
    out: Segment = SegmentFactory.create(account=campaign.account)
    segment = campaign.segments.get()
    first = Subscriber.objects.get()
    first.memberships.create(segment=out)
    SubscriberFactory.create(account=campaign.account, segments=[segment], pending=True)
    second = SubscriberFactory.create(account=campaign.account, segments=[segment])
    campaign.exclude_segments.add(out)
    answer = boss.get(url("preview", campaign.pk))
    assert answer.context["chosen"].reader.pk == second.pk


def test_a_segment_of_another_account_shows_none_of_its_people(
    boss: Client, campaign: Campaign
) -> None:
    foreign = SegmentFactory.create()
    SubscriberFactory.create(
        account=foreign.account, segments=[foreign], email="stranger@example.org"
    )
    answer = boss.post(
        url("preview", campaign.pk), typed(campaign, segments=[foreign.pk, "x", "-1"])
    )
    assert answer.context["chosen"].reader.pk == 0
    assert "stranger" not in answer.content.decode()


def test_who_may_not_see_people_is_shown_nobody(campaign: Campaign) -> None:
    person = Subscriber.objects.get()
    client = client_with(campaign.account, "view_campaign")
    for asked in ({}, {"as": person.pk}, {"q": person.email}):
        for page in ("preview", "preview_frame"):
            answer = client.get(url(page, campaign.pk), asked).content.decode()
            assert person.email not in answer
            assert "Ann" not in answer
