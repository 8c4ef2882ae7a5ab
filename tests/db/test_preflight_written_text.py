"""A text part that somebody wrote beside the HTML has links of its own."""

from __future__ import annotations

import pytest

from campaigns import preflight
from tests.factories import CampaignFactory

pytestmark = pytest.mark.django_db


def test_links_of_a_written_text_part_are_looked_at() -> None:
    campaign = CampaignFactory.create(
        readers=1,
        text_body="Our news.\nLook: http://localhost:8000/spring and {{ unsubscribe_url }}\n",
    )
    found = [f for f in preflight.run(campaign).errors if f.code == "link.local"]
    assert [(f.field, f.line, f.column) for f in found] == [("text_body", 2, 7)]
