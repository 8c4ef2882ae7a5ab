"""A test of a campaign over a real line: by a real sender, to a mail server that keeps what it got,
whoever is killed meanwhile."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from sending import ledger
from sending.models import Send
from tests.crash.conftest import Senders, Sink, make_campaign

KEY = "0123456789abcdef" * 2
#: Where a sender dies, and whether the message may have left then.
POINTS = {"hand_over:before_commit": False, "body:after_dot": True, "settle:before_commit": True}


@pytest.fixture
def campaign(own_database: str) -> Campaign:
    found = make_campaign(["ann@example.org"])
    Campaign.objects.filter(pk=found.pk).update(
        status="draft", approved_digest="", content=None, approved_at=None, scheduled_for=None
    )
    found.refresh_from_db()
    found.preheader = "The line after the subject"
    found.body = (
        "<html><head><style>p { color: #123456 }</style></head><body><p>Hello {{ name }}</p>"
        '<a href="{{ unsubscribe_url }}">Leave</a></body></html>'
    )
    found.save()
    return found


@pytest.fixture
def ask(campaign: Campaign) -> Callable[..., Any]:
    """``ask(addresses)`` posts the form of a test."""
    user = get_user_model().objects.create_superuser("boss", "boss@example.org")
    client = Client()
    client.force_login(user)

    def post(addresses: str, key: str = KEY) -> Any:
        where = reverse("admin:sendonce_campaigns_campaign_test", args=[campaign.pk])
        return client.post(where, {"key": key, "addresses": addresses}, follow=True)

    return post


def kept(folder: Path) -> list[EmailMessage]:
    return [
        message_from_bytes(file.read_bytes(), policy=policy.SMTP)
        for file in sorted(folder.iterdir())
    ]


def test_what_arrives_is_the_campaigns_message_marked_as_a_test(
    campaign: Campaign,
    ask: Callable[..., Any],
    sink: Callable[..., Sink],
    senders: Senders,
    tmp_path: Path,
) -> None:
    relay = sink("--keep", str(tmp_path / "kept"))
    before = ledger.counts(campaign)
    page = ask("one@example.org, two@example.org")
    assert "no sender is alive" in page.content.decode()
    ask("one@example.org, two@example.org")
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    senders.drain(**mail)
    senders.drain(**mail)
    got = Counter(entry["recipient"] for entry in relay.accepted())
    assert got == {"one@example.org": 1, "two@example.org": 1}
    for message in kept(tmp_path / "kept"):
        assert message["Subject"] == "[Test] For N° 0"
        assert message["From"].addresses[0].addr_spec == "news@example.org"
        assert message["List-Unsubscribe"] is None
        html = message.get_body(("html",))
        text = message.get_body(("plain",))
        assert html is not None
        assert text is not None
        assert 'style="color: #123456' in html.get_content()
        assert "The line after the subject" in html.get_content()
        assert "Hello N° 0" in text.get_content()
        for part in (html, text):
            assert "/u/test" in part.get_content()
            assert part.get_content().count("/u/") == part.get_content().count("/u/test")
    assert ledger.counts(campaign) == before
    page = ask("one@example.org, two@example.org")
    assert page.content.decode().count("The relay accepted it") == 2


@pytest.mark.django_db
def test_what_is_known_of_another_database_is_forgotten(request: pytest.FixtureRequest) -> None:
    """This process's own one may have numbered the content types anew."""
    foreign = ContentType(pk=10**6, app_label="sendonce_campaigns", model="campaign")
    ContentType.objects._add_to_cache("default", foreign)  # type: ignore[attr-defined]
    request.getfixturevalue("own_database")
    assert ContentType.objects.get_for_model(Campaign).pk < foreign.pk


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_sender_sends_it_once_or_leaves_it_in_doubt(
    point: str, ask: Callable[..., Any], sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    ask("one@example.org")
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    victim = senders.start_killable(point, 1, "--lanes", "1", **mail)
    assert victim.wait(60) == -signal.SIGKILL, senders.log.read_text()
    senders.drain("--lanes", "1", **mail)
    accepted = len(relay.accepted())
    status = Send.objects.get().status
    if POINTS[point]:
        assert accepted <= 1
        assert accepted == 1 or status == "in_doubt"
    else:
        assert (accepted, status) == (1, "sent")
