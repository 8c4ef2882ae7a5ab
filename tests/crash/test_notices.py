"""The notice that a campaign is sent leaves by the same road, before a drained sender ends."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import get_user_model

from sending.models import Send
from tests.crash.conftest import Senders, Sink, addresses, make_campaign


def test_a_drained_sender_has_told_the_staff(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink()
    campaign = make_campaign(addresses(3))
    member = get_user_model().objects.create(username="ann", email="ann@example.org")
    campaign.account.members.add(member)
    senders.drain(EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    recipients = sorted(entry["recipient"] for entry in relay.accepted())
    assert recipients == ["ann@example.org", *addresses(3)]
    notice = Send.objects.get(campaign=None)
    assert notice.status == "sent"
    assert notice.job_id.startswith(f"message:{campaign.account_id}:notice:sent:{campaign.pk}:")
