"""The first line of a postal address is the sender's name: it alone is no address."""

from __future__ import annotations

import pytest

from campaigns import lifecycle, preflight
from campaigns.models import Campaign
from tests.factories import CampaignFactory, StaffFactory

pytestmark = pytest.mark.django_db

ADDRESS = "ACME GmbH\nWeg 1\n12345 Berlin"


def written(body: str, **fields: str) -> Campaign:
    campaign: Campaign = CampaignFactory.create(
        readers=1, account__postal_address=ADDRESS, body=body, **{"text_body": "", **fields}
    )
    return campaign


@pytest.mark.parametrize("body_format", ["html", "markdown", "text"])
def test_the_senders_name_in_the_body_is_no_postal_address(body_format: str) -> None:
    campaign = written("News from ACME GmbH, for you to read.", body_format=body_format)
    content = lifecycle.approve(campaign, by=StaffFactory.create()).content
    assert content is not None
    for part in filter(None, (content.html, content.text)):
        assert "account.postal_address" in part


def test_an_address_that_was_typed_is_not_said_twice() -> None:
    campaign = written("<p>Some news for you to read.</p><p>ACME GmbH, Weg 1<br>12345 Berlin</p>")
    content = lifecycle.approve(campaign, by=StaffFactory.create()).content
    assert content is not None
    assert "account.postal_address" not in content.html + content.text


def test_a_text_part_with_the_name_alone_is_an_error() -> None:
    campaign = written(
        "<p>Some news for you to read.</p><p>ACME GmbH, Weg 1, 12345 Berlin</p>",
        text_body="Some news from ACME GmbH: {{ unsubscribe_url }}",
    )
    assert "address.missing" in [error.code for error in preflight.run(campaign).errors]
