"""Links to unsubscribe that are there and nobody can use."""

from __future__ import annotations

import pytest

from campaigns import preflight
from tests.factories import CampaignFactory

pytestmark = pytest.mark.django_db

URL = "{{ unsubscribe_url }}"


@pytest.mark.parametrize(
    ("way_out", "code"),
    [
        (f'<a href="{URL}"></a>', "unsubscribe.hidden"),
        (f'<a href="{URL}"> <img src="https://a.example/x.png" alt="Leave"></a>', None),
        (
            f'<div style="max-height:0;overflow:hidden"><a href="{URL}">Leave</a></div>',
            "unsubscribe.hidden",
        ),
        (f'<div style="max-height:0px"><a href="{URL}">Leave</a></div>', None),
        (f'<div style="line-height:0;overflow:hidden"><a href="{URL}">Leave</a></div>', None),
        ('<a href="{{ unsubscribe_url|truncatechars:9 }}">Leave</a>', "unsubscribe.changed"),
        ('<a href="{{ unsubscribe_url|upper }}">Leave</a>', "unsubscribe.changed"),
        ('<a href="https://a.example/?to={{ unsubscribe_url|urlencode }}">Leave</a>', None),
    ],
)
def test_a_way_out_that_is_none_is_an_error(way_out: str, code: str | None) -> None:
    body = f"<p>Some words for all to read.</p>{way_out}"
    campaign = CampaignFactory.create(readers=1, body=body, text_body="")
    errors = [error.code for error in preflight.run(campaign).errors]
    assert errors == ([code] if code else [])
