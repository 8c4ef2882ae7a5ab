"""Messages from rows: contents come and go in the cache, a lot keeps what it got."""

from __future__ import annotations

import pytest

from sending.compose import KEPT, ComposeError, Composer
from sending.models import Send
from sending.transports import Prepared
from tests.db.rows import held
from tests.factories import ContentFactory, SendFactory

pytestmark = pytest.mark.django_db


def _messages(composer: Composer, sends: list[Send]) -> list[Prepared]:
    wanted = {s.content_id for s in sends if s.content_id is not None}
    loaded = composer.cached(wanted) or composer.load(wanted)
    return [composer.compose(held(s), loaded, as_bytes=True) for s in sends]


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
    assert b"Subject: Mine" in composer.compose(held(mine), loaded, as_bytes=True).data


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
        composer.compose(held(send), {}, as_bytes=True)
