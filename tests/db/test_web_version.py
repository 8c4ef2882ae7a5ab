"""The web version of a message: what was sent, for its one recipient, without rights here."""

from __future__ import annotations

import pytest
from django.test import Client

from campaigns.models import Campaign
from subscribers.models import Subscriber
from subscribers.tokens import Kind, make_token
from tests.db.rows import campaign_to, member

pytestmark = pytest.mark.django_db

HTML = '<!doctype html><p>Dear {{ first_name }}</p><a href="{{ web_url }}">here</a>'


def _campaign(**content: str) -> Campaign:
    campaign = campaign_to(0)
    assert campaign.content is not None
    for name, value in content.items():
        setattr(campaign.content, name, value)
    campaign.content.save()
    return campaign


def _url(person: Subscriber, campaign: Campaign, kind: Kind = Kind.WEB) -> str:
    return f"/u/{make_token(kind, person.pk, campaign.pk)}"


def test_it_is_the_persons_own_message_and_may_run_nothing() -> None:
    campaign = _campaign(html=HTML)
    person = member(campaign, attributes={"first_name": "Zoë <script>"})
    response = Client().get(_url(person, campaign))
    body = response.content.decode()
    assert response.status_code == 200
    assert "Dear Zoë &lt;script&gt;" in body
    assert _url(person, campaign) in body
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox ")
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "allow-scripts" not in policy
    assert "allow-same-origin" not in policy
    assert response.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert not response.cookies


def test_a_text_message_is_shown_as_text() -> None:
    campaign = _campaign(html="", text="1 < 2, {{ first_name }}", subject="Sums")
    person = member(campaign, attributes={"first_name": "<b>"})
    body = Client().get(_url(person, campaign)).content.decode()
    assert "<title>Sums</title><pre>1 &lt; 2, &lt;b&gt;</pre>" in body


def test_a_post_does_nothing() -> None:
    campaign = _campaign(html=HTML)
    person = member(campaign)
    assert Client().post(_url(person, campaign)).status_code == 404
    person.refresh_from_db()
    assert person.status == Subscriber.Status.CONFIRMED


def test_it_is_gone_with_the_person_and_not_for_others() -> None:
    campaign, other = _campaign(html=HTML), campaign_to(0)
    person = member(campaign)
    assert Client().get(_url(person, other)).status_code == 404
    url = _url(person, campaign)
    person.delete()
    assert Client().get(url).status_code == 404
