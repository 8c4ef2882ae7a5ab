"""Messages from rows: contents come and go in the cache, a lot keeps what it got."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import format_datetime
from quopri import decodestring
from typing import Any

import pytest

from sending.compose import KEPT, ComposeError, Composer
from sending.handover import give_back, hand_over
from sending.models import Send
from sending.smtp_envelope import wire_body
from sending.transports import Prepared, Transport, transport
from subscribers.models import Account, Subscriber
from subscribers.tokens import preferences_url, unsubscribe_url, web_url
from tests.db.rows import campaign_to, held, member, row, take
from tests.factories import ContentFactory, SendFactory

pytestmark = pytest.mark.django_db


def _messages(composer: Composer, sends: list[Send]) -> list[Prepared]:
    wanted = {s.content_id for s in sends if s.content_id is not None}
    loaded = composer.cached(wanted) or composer.load(wanted)
    return [composer.compose(held(s), loaded, over=transport("default")) for s in sends]


def test_a_lot_of_more_contents_than_are_kept_is_made_completely() -> None:
    sends = [
        SendFactory.create(transactional=True, claimed=True, content__subject=f"Number {n}")
        for n in range(KEPT + 3)
    ]
    composer = Composer()
    made = _messages(composer, sends)
    assert [b"Subject: Number %d\r\n" % n in m.data for n, m in enumerate(made)] == [True] * (
        KEPT + 3
    )


def test_what_one_lane_loads_does_not_take_another_lanes_away() -> None:
    composer = Composer()
    mine = SendFactory.create(transactional=True, claimed=True, content__subject="Mine")
    loaded = composer.load({mine.content_id})
    composer.load({ContentFactory.create().pk for _ in range(KEPT)})
    assert composer.cached({mine.content_id}) is None, "gone from the cache"
    assert b"Subject: Mine" in composer.compose(held(mine), loaded, over=transport("default")).data


def test_what_is_used_stays() -> None:
    composer = Composer()
    old = ContentFactory.create().pk
    composer.load({old})
    for _ in range(KEPT + 5):
        assert composer.cached({old}) is not None
        composer.load({ContentFactory.create().pk})


def test_a_content_that_was_deleted_fails_its_row_with_the_reason() -> None:
    send = SendFactory.create(transactional=True, claimed=True)
    composer = Composer()
    composer.load(set())
    with pytest.raises(ComposeError, match="its content was deleted"):
        composer.compose(held(send), {}, over=transport("default"))


@pytest.fixture
def resend(settings: Any) -> Transport:
    settings.ANYMAIL = {"RESEND_API_KEY": "re_test"}
    settings.SENDONCE = {
        **settings.SENDONCE,
        "TRANSPORTS": {"default": {"BACKEND": "anymail.backends.resend.EmailBackend"}},
    }
    return transport("default")


def test_over_a_transport_that_deduplicates_every_attempt_is_the_same(resend: Transport) -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    assert send.subscriber is not None
    composer = Composer()
    (first,) = take([campaign.pk], 1)
    loaded = composer.load({first.content_id})
    before = composer.compose(first, loaded, over=resend)
    assert hand_over([first], lease=60, via=resend.via, window=resend.window).go == [first]
    assert give_back([first]) == 1

    # Everything that could come into the message changes meanwhile.
    Subscriber.objects.filter(pk=send.subscriber.pk).update(attributes={"name": "Another"})
    Account.objects.filter(pk=send.account_id).update(name="Another", slug="another")
    (again,) = take([campaign.pk], 1)
    other = Composer()
    after = other.compose(again, other.load({again.content_id}), over=resend)
    assert before.wire_bytes() == after.wire_bytes()
    assert (before.metadata, before.esp_extra) == (after.metadata, after.esp_extra)
    assert before.metadata["job_id"] == send.job_id


def test_over_any_other_transport_an_attempt_tells_what_holds_now() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    assert send.subscriber is not None
    composer = Composer()
    (first,) = take([campaign.pk], 1)
    composer.compose(first, composer.load({first.content_id}), over=transport("default"))
    assert first.frozen is None


def test_what_a_transport_takes_as_bytes_is_the_message_of_any_other(resend: Transport) -> None:
    campaign = campaign_to(0)
    row(campaign)
    (first,) = take([campaign.pk], 1)
    composer = Composer()
    loaded = composer.load({first.content_id})
    composer.compose(first, loaded, over=resend)
    assert first.frozen is not None
    smtp = Transport("other", "sending.smtp.EmailBackend")
    fixed = first.frozen
    as_fixed = composer.compose(first, loaded, over=smtp)
    first.frozen = None
    anew = composer.compose(first, loaded, over=smtp)
    assert first.frozen is None
    assert (as_fixed.envelope_from, as_fixed.recipient) == (anew.envelope_from, anew.recipient)
    date = format_datetime(datetime.fromisoformat(fixed["date"])).encode()
    assert b"Date: " + date in as_fixed.data
    assert without_date(as_fixed.data) == without_date(anew.data)
    for made in (as_fixed, anew):
        assert made.stuffed
        assert wire_body(made.data) == made.data


def without_date(data: bytes) -> bytes:
    return re.sub(rb"(?m)^Date: .*$", b"", data)


def test_links_are_those_that_the_pages_know() -> None:
    links = "{{ unsubscribe_url }}\n{{ preferences_url }}\n{{ web_url }}\n"
    campaign = campaign_to(0, content__text=links, content__html="")
    ids = row(campaign).subscriber_id or 0, campaign.pk
    composer = Composer()
    (first,) = take([campaign.pk], 1)
    made = composer.compose(first, composer.load({first.content_id}), over=transport("default"))
    head, _, text = decodestring(made.data).decode().partition("\r\n\r\n")
    assert text.split("\r\n") == [
        unsubscribe_url(*ids),
        preferences_url(*ids),
        web_url(*ids),
        "",
    ]
    assert f"\r\nList-Unsubscribe: <{unsubscribe_url(*ids)}>\r\n" in head


def test_one_persons_data_fails_that_row_only() -> None:
    campaign = campaign_to(0)
    for name in ("x" * 60_000, "Zoë"):
        row(campaign, subscriber=member(campaign, attributes={"first_name": name}))
    bad, good = take([campaign.pk], 2)
    composer = Composer()
    loaded = composer.load({bad.content_id})
    with pytest.raises(ComposeError, match="longer than 50000 characters"):
        composer.compose(bad, loaded, over=transport("default"))
    assert composer.compose(good, loaded, over=transport("default")).recipient == good.email
