"""What an editor with bad intentions, or bad luck, writes: seen in a frame, and nothing more."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from campaigns.models import Campaign
from subscribers.models import Subscriber

from .campaign_pages import boss, campaign, url
from .test_preview_pages import typed

__all__ = ["boss", "campaign"]
pytestmark = pytest.mark.django_db

PAGES = ("preview", "preview_frame", "preview_check")

BOMBS = {
    "ifs": "{% if a %}" * 5000,
    "nested": "{% if a %}" * 30 + "{% endif %}" * 30,
    "words": "{% if " + " and ".join(["a"] * 100) + " %}{% endif %}",
    "filters": "{{ first_name" + "|upper" * 500 + " }}",
    "tags": "{{ a }}" * 6000,
    "long": "x" * 1_000_001,
    "include": "{% include '/etc/passwd' %}",
    "load": "{% load static %}",
    "loop": "{% for x in y %}{{ x }}{% endfor %}",
    "settings": "{{ settings.SECRET_KEY }}{{ request.user }}{{ ''.__class__.__mro__ }}",
    "width": '{{ "a"|ljust:200000000 }}',
    "elements": "<div>" * 20_000,
    "style": "<style>" + "a{color:red}" * 2000 + "</style>" + "<a>" * 2000,
    "block": "{% block content %}{% block x %}{% endblock %}",
    "unclosed": "{{ first_name",
    "surrogate": "\\ud800",
    "nul": "a\0b",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("body_format", ["html", "markdown", "mjml", "text"])
def test_no_body_breaks_a_preview(
    boss: Client, campaign: Campaign, name: str, body_format: str
) -> None:
    values = typed(campaign, body=BOMBS[name], body_format=body_format)
    begun = time.monotonic()
    for page in PAGES:
        answer = boss.post(url(page, campaign.pk), values)
        assert answer.status_code == 200, page
        assert "only-for-tests" not in answer.content.decode()
    assert time.monotonic() - begun < 20


def test_ten_megabytes_are_refused_in_words_or_by_the_bound_of_a_request(
    boss: Client, campaign: Campaign, settings: Any
) -> None:
    values = typed(campaign, body="x" * 10_000_000)
    answer = boss.post(url("preview_check", campaign.pk), values)
    assert answer.status_code == 200
    assert "longer than 1000000 characters" in answer.json()["problems"][0]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
    assert boss.post(url("preview_check", campaign.pk), values).status_code in (400, 413)


@pytest.mark.parametrize("field", ["subject", "preheader", "text_body", "from_name", "reply_to"])
def test_every_field_may_be_nonsense(boss: Client, campaign: Campaign, field: str) -> None:
    for nonsense in ("\r\nBcc: x@example.org", "{% if %}", "{{", "x" * 5000, "\0", "<script>"):
        values = typed(campaign, **{field: nonsense})
        for page in PAGES:
            answer = boss.post(url(page, campaign.pk), values)
            assert answer.status_code == 200, (page, nonsense)
        headers = boss.post(url("preview", campaign.pk), values).context.get("headers") or []
        assert "Bcc" not in [line.name for line in headers]


def test_a_script_never_stands_in_a_page_of_ours(boss: Client, campaign: Campaign) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    Subscriber.objects.update(attributes={"first_name": evil})
    values = typed(
        campaign,
        subject=f"{evil} {{{{ first_name }}}}",
        from_name=evil,
        body=f"{evil}<a href='javascript:alert(1)'>x</a> {{{{ first_name }}}}",
        text_body=f"{evil} {{{{ first_name }}}}",
        preview_q=evil,
    )
    page = boss.post(url("preview", campaign.pk), values).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    frame = boss.post(url("preview_frame", campaign.pk), values)
    # There it is, and the policy and the sandbox are what keeps it from running.
    assert "<script>alert(1)</script>" in frame.content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in frame.content.decode()
    policy = frame.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert not [part for part in policy if part.startswith("script-src")]


def test_the_person_is_not_asked_for_with_a_pattern(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("preview_people"), {"account": str(campaign.account_id), "q": "%@"})
    assert answer.json() == {"people": []}
