"""Two builders at once, one that dies, and rows that come or go beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from campaigns import gate
from campaigns.models import Campaign
from sending import build, ledger, sql
from sending.build import Progress, build_chunk
from sending.models import Send
from subscribers.models import Subscriber

from .built import finish_build, people_of, rows_of
from .racing import Race
from .rows import assert_identity, campaign_to, member


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["cursor", "control"])
def test_two_builders_at_once_build_a_chunk_once(
    guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(4)
    if not guarded:
        unguarded = f"UPDATE {sql.CAMPAIGN} SET audience_cursor = %(upto)s WHERE id = %(campaign)s"
        monkeypatch.setattr(sql, "CHUNK_CURSOR", unguarded)
        monkeypatch.setattr(sql, "CHUNK_INSERT", sql.CHUNK_INSERT_BESIDE)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        first = race.start_to(halt, lambda: build_chunk(campaign.pk, size=4))
        second = race.start(lambda: build_chunk(campaign.pk, size=4))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() == Progress(inserted=4, done=False)
        after = second.result()
    if guarded:
        assert after is None
        assert_identity(campaign)
    else:
        # Rows are unique all the same, but a cursor that two move at once can go backwards.
        assert after == Progress(inserted=0, done=False), "control: the chunk was built twice"
    assert Send.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_count_once() -> None:
    campaign = campaign_to(3)
    assert build_chunk(campaign.pk, size=100) is not None
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update().get(pk=campaign.pk)
            both = [race.start(lambda: build_chunk(campaign.pk, size=9)) for _ in range(2)]
            for racer in both:
                racer.wait_until_blocked()
        results = [racer.result() for racer in both]
    assert sorted(results, key=lambda r: r is None) == [Progress(inserted=0, done=True), None]
    assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_builder_that_dies_in_a_chunk_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ghost 30230: a restart during the build dropped the tail."""
    campaign = campaign_to(6)
    assert build_chunk(campaign.pk, size=2) is not None
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        dying = race.start_to(halt, lambda: build_chunk(campaign.pk, size=2))
        dying.kill_backend()
        halt.released.set()
        with pytest.raises(OperationalError):
            dying.result()
    assert Send.objects.count() == 2
    assert_identity(campaign)
    finish_build(campaign, size=2)
    assert campaign.audience == Send.objects.count() == 6


@pytest.mark.django_db(transaction=True)
def test_a_chunk_with_somebody_deleted_meanwhile_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(3)
    gone = people_of(campaign)[1]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        building = race.start_to(halt, lambda: build_chunk(campaign.pk, size=10))
        gone.delete()
        halt.released.set()
        assert building.result() == Progress(inserted=2, done=False)
    assert not Send.objects.filter(email=gone.email).exists()
    finish_build(campaign)
    assert campaign.audience == Send.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_an_import_that_commits_behind_the_cursor_is_swept_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(2)

    with Race() as race:
        halt = race.halt()

        def slow_import() -> Subscriber:
            with transaction.atomic():
                person = member(campaign)
                halt.here()
                return person

        importing = race.start_to(halt, slow_import)
        later = member(campaign)
        step = build_chunk(campaign.pk, size=100)
        assert step == Progress(inserted=3, done=False)
        halt.released.set()
        late = importing.result()
    campaign.refresh_from_db()
    assert late.pk < later.pk == campaign.audience_cursor
    assert build_chunk(campaign.pk, size=100) == Progress(inserted=1, done=True)
    campaign.refresh_from_db()
    assert late.email in rows_of(campaign)
    assert campaign.audience == 4
    assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_long_lock_wait_ends_in_an_error_and_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(1)
    monkeypatch.setattr(sql, "RELAXED", sql.RELAXED.replace("10s", "50ms"))
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
            with pytest.raises(OperationalError, match="lock timeout"):
                race.start(lambda: build_chunk(campaign.pk, size=10)).result()
        assert race.start(lambda: build_chunk(campaign.pk, size=10)).result() is not None


@pytest.mark.django_db(transaction=True)
def test_a_build_leaves_a_campaign_alone_about_which_somebody_decides() -> None:
    campaign = campaign_to(1)
    with Race() as race:
        with transaction.atomic():
            with connection.cursor() as cursor:
                gate.enter_exclusive(cursor, campaign.pk)
            assert race.start(lambda: build_chunk(campaign.pk, size=10)).result() is None
            assert rows_of(campaign) == {}
        assert build_chunk(campaign.pk, size=10) == Progress(inserted=1, done=False)


@contextmanager
def _losing(address: str) -> Iterator[None]:
    """A database that drops this person's row without a word, as only a fault would."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION lose_a_row() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN RETURN CASE WHEN NEW.email = ''{address}'' THEN NULL ELSE NEW END; END'"
        )
        cursor.execute(
            f"CREATE TRIGGER lose_a_row BEFORE INSERT ON {sql.SEND} "
            "FOR EACH ROW EXECUTE FUNCTION lose_a_row()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER lose_a_row ON {sql.SEND}; DROP FUNCTION lose_a_row()")


@pytest.mark.django_db
def test_people_are_counted_although_their_row_is_lost() -> None:
    campaign = campaign_to(3)
    lost = people_of(campaign)[1]
    with _losing(lost.email):
        assert build_chunk(campaign.pk, size=100) == Progress(inserted=2, done=False)
        assert ledger.balance(campaign.pk).difference == 1
        step = build_chunk(campaign.pk, size=100)
        assert step == Progress(inserted=0, done=True)
        assert ledger.balance(campaign.pk).difference == 1
