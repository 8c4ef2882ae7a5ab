"""What leaves is the frozen content: whoever changes it behind the admin's back is found."""

from __future__ import annotations

import pytest
from django.db import connection

from campaigns import lifecycle
from campaigns.digest import digest
from campaigns.models import Campaign

from .lifecycles import approved, stored

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "change",
    [
        "subject = 'x'",
        "html = 'x'",
        "text = 'x'",
        "from_email = 'x@example.com'",
        "from_name = 'x'",
        "reply_to = 'x@example.com'",
        """account_fields = '{"name": "x"}'""",
    ],
)
def test_a_content_that_was_changed_is_not_sent(change: str) -> None:
    campaign = approved()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE sendonce_campaigns_content SET {change}")
    assert lifecycle.due(stored(campaign)) is False
    assert stored(campaign).status == "draft"


def test_another_content_is_not_sent() -> None:
    campaign, other = approved(), approved(body="<p>Other words, and enough of them.</p>")
    Campaign.objects.filter(pk=campaign.pk).update(content=other.content)
    assert lifecycle.due(stored(campaign)) is False


def test_what_was_approved_before_contents_were_looked_at_starts() -> None:
    campaign = approved()
    Campaign.objects.filter(pk=campaign.pk).update(approved_digest=digest(stored(campaign)))
    assert lifecycle.due(stored(campaign)) is True
