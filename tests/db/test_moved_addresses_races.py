"""Addresses that change while a build counts people, and twice at once: the ledger's identity
holds, and a row ends at the address that its person has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from sending.build import build_chunk
from sending.models import Send
from sending.sql.tables import SEND
from sending.withdraw import withdraw_leavers
from subscribers.models import Subscriber
from tests.factories import MembershipFactory, SubscriberFactory

from .racing import Race
from .rows import assert_identity, campaign_to, member, row

pytestmark = pytest.mark.django_db(transaction=True)

_KEY = 424_242


@pytest.fixture
def barrier(transactional_db: None) -> Iterator[str]:
    """Whoever inserts rows of the ledger waits for the lock that this statement takes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION insert_barrier() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" PERFORM pg_advisory_xact_lock({_KEY}); RETURN NEW; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER insert_barrier BEFORE INSERT ON {SEND}"
            " FOR EACH ROW EXECUTE FUNCTION insert_barrier()"
        )
    yield f"SELECT pg_advisory_xact_lock({_KEY})"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER insert_barrier ON {SEND}")
        cursor.execute("DROP FUNCTION insert_barrier()")


def test_a_row_does_not_come_to_an_address_that_the_sweep_is_just_counting(barrier: str) -> None:
    """Committed late and behind the build's cursor: somebody whom only the sweep finds. While it
    inserts their row, they move on, and somebody who has a row takes their address."""
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    build_chunk(campaign.pk, size=100)
    assert Send.objects.get().email == "a@example.org"
    late = SubscriberFactory.create(
        pk=ann.pk - 1000, account=campaign.account, email="x@example.org"
    )
    MembershipFactory.create(segment=campaign.segments.get(), subscriber=late)

    def take_over() -> None:
        Subscriber.objects.filter(pk=late.pk).update(email="y@example.org")
        Subscriber.objects.filter(pk=ann.pk).update(email="x@example.org")
        withdraw_leavers([ann.pk])

    with Race() as race:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(barrier)
            sweep = race.start(lambda: build_chunk(campaign.pk, size=100))
            sweep.wait_until_blocked()
            following = race.start(take_over)
            following.wait_until_blocked()
        sweep.result()
        following.result()
    assert_identity(campaign)
    assert set(Send.objects.values_list("subscriber_id", flat=True)) == {ann.pk, late.pk}


def test_of_two_changes_at_once_the_row_follows_the_later() -> None:
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    send = row(campaign, subscriber=ann)
    Subscriber.objects.filter(pk=ann.pk).update(email="b@example.org")
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=send.pk)
            first = race.start(lambda: withdraw_leavers([ann.pk]))
            first.wait_until_blocked()
            Subscriber.objects.filter(pk=ann.pk).update(email="c@example.org")
            withdraw_leavers([ann.pk])
        first.result()
    send.refresh_from_db()
    assert (send.status, send.email) == ("queued", "c@example.org")


def test_somebody_who_moves_while_they_are_withdrawn_for_another_reason_is_left_to_that() -> None:
    """The other call found nobody who had moved, so it holds no build back: it must not move the
    row, and must not close it either."""
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    waiting = row(campaign, subscriber=ann)
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update(no_key=True).get(pk=waiting.pk)
            other = race.start(lambda: withdraw_leavers([ann.pk]))
            other.wait_until_blocked()
            mine = Subscriber.objects.filter(pk=ann.pk)
            race.start(lambda: mine.update(email="x@example.org")).result()
        assert other.result() == 0
    waiting.refresh_from_db()
    assert (waiting.status, waiting.email) == ("queued", "a@example.org")
    withdraw_leavers([ann.pk])
    waiting.refresh_from_db()
    assert (waiting.status, waiting.email) == ("queued", "x@example.org")
