"""People who leave, come back or are deleted at the very moment in which staff change a segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from subscribers.consent import leave, rejoin
from subscribers.models import Membership, MembershipChange, Segment, Subscriber
from subscribers.segments.members import Done, SegmentGone, add, delete, remove
from tests.factories import MembershipFactory, SegmentFactory, SubscriberFactory

from .racing import Race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def membership() -> Any:
    return MembershipFactory.create()


def test_who_leaves_while_staff_add_them_stays_away(membership: Membership) -> None:
    segment, person = membership.segment, membership.subscriber
    with Race() as race:
        with transaction.atomic():
            leave([membership], source="their own page")
            adding = race.start(lambda: add(segment, [person.pk]))
            adding.wait_until_blocked()
        # In it when staff looked; the membership is there, ended or not.
        assert adding.result() == Done(already=1)
        membership.refresh_from_db()
        assert membership.left_at is not None
    assert add(segment, [person.pk]) == Done(ended=1)


def test_who_leaves_while_staff_remove_them_left_by_themselves(membership: Membership) -> None:
    with Race() as race:
        with transaction.atomic():
            leave([membership], source="their own page")
            removal = race.start(
                lambda: remove(membership.segment, [membership.subscriber_id], source="staff")
            )
            removal.wait_until_blocked()
        assert removal.result() == Done(absent=1)
    assert MembershipChange.objects.get().source == "their own page"


def test_who_comes_back_while_staff_remove_them_stays(membership: Membership) -> None:
    """The removal looked before their confirmed sign-up was there."""
    leave([membership], source="their own page")
    with Race() as race, transaction.atomic():
        rejoin(membership.subscriber, [membership.segment], source="sign-up")
        removal = race.start(
            lambda: remove(membership.segment, [membership.subscriber_id], source="staff")
        )
        assert removal.result() == Done(absent=1)
    membership.refresh_from_db()
    assert membership.left_at is None


def test_two_of_the_staff_who_remove_the_same_people(membership: Membership) -> None:
    segment = membership.segment
    people = [membership.subscriber_id, MembershipFactory.create(segment=segment).subscriber_id]
    with Race() as race:
        with transaction.atomic():
            assert remove(segment, people, source="one") == Done(removed=2)
            second = race.start(lambda: remove(segment, people[::-1], source="two"))
            second.wait_until_blocked()
        assert second.result() == Done(absent=2)
    assert set(MembershipChange.objects.values_list("source", flat=True)) == {"one"}


def test_two_of_the_staff_who_add_the_same_people() -> None:
    segment = SegmentFactory.create()
    people = [one.pk for one in SubscriberFactory.create_batch(3, account=segment.account)]
    with Race() as race:
        with transaction.atomic():
            assert add(segment, people) == Done(added=3)
            second = race.start(lambda: add(segment, people[::-1]))
            second.wait_until_blocked()
        assert second.result() == Done(already=3)
    assert Membership.objects.count() == 3


def test_a_person_deleted_meanwhile_does_not_stop_the_others() -> None:
    segment = SegmentFactory.create()
    one, other = SubscriberFactory.create_batch(2, account=segment.account)
    with Race() as race:
        with transaction.atomic():
            Subscriber.objects.filter(pk=one.pk).delete()
            adding = race.start(lambda: add(segment, [one.pk, other.pk]))
            adding.wait_until_blocked()
        assert adding.result() == Done(added=1, strangers=1)


@pytest.mark.parametrize("first", ["add", "delete"])
def test_a_segment_that_is_deleted_while_people_are_added(
    membership: Membership, first: str
) -> None:
    segment = membership.segment
    new = SubscriberFactory.create(account=segment.account)

    def adds() -> Done:
        return add(segment, [new.pk])

    def deletes() -> None:
        delete(Segment.objects.get(pk=segment.pk))

    now: Callable[[], object] = adds if first == "add" else deletes
    later: Callable[[], object] = deletes if first == "add" else adds
    with Race() as race:
        with transaction.atomic():
            now()
            other = race.start(later)
            other.wait_until_blocked()
        if first == "add":
            other.result()
        else:
            with pytest.raises(SegmentGone):
                other.result()
    assert not Segment.objects.filter(pk=segment.pk).exists()
    assert not Membership.objects.exists()
