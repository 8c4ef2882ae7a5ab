"""People come, change and go during a build: all are counted, and nobody twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from sending.build import build_chunk
from sending.models import Send
from subscribers.addresses import erased_hashes
from subscribers.consent import unsubscribe
from subscribers.models import Subscriber
from subscribers.suppression import suppress
from tests.factories import (
    SubscriberFactory,
)

from .built import finish_build, people_of
from .rows import assert_identity, campaign_to


def _leave(person: Subscriber) -> None:
    person.memberships.update(left_at=timezone.now())


def _unsubscribe(person: Subscriber) -> None:
    unsubscribe(person, evidence="a link")


def _suppress(person: Subscriber) -> None:
    suppress(person.account, person.email, "complaint")


def _delete(person: Subscriber) -> None:
    person.delete()


def _erase(person: Subscriber) -> None:
    """As an erasure does: the address goes, its keyed hash stays and keeps others out."""
    suppress(person.account, person.email, "erased")
    Send.objects.filter(subscriber=person).update(
        email=None, email_hash=erased_hashes(person.email)[0]
    )
    person.delete()


def _change_address(person: Subscriber) -> None:
    Subscriber.objects.filter(pk=person.pk).update(email=f"new-{person.email}")


def _delete_and_return(person: Subscriber) -> None:
    """Gone, and back under a new id, which lies beyond the cursor."""
    segments, account, email = list(person.segments.all()), person.account, person.email
    person.delete()
    SubscriberFactory.create(account=account, email=email, segments=segments)


CHANGES = [_leave, _unsubscribe, _suppress, _delete, _erase, _change_address, _delete_and_return]


@pytest.mark.django_db
@pytest.mark.parametrize("which", [0, -1], ids=["behind the cursor", "beyond it"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_identity_holds_when_people_change_during_the_build(
    change: Callable[[Subscriber], None], which: int
) -> None:
    campaign = campaign_to(6)
    build_chunk(campaign.pk, size=3)
    assert_identity(campaign)
    change(people_of(campaign)[which])
    assert_identity(campaign)
    while not (step := build_chunk(campaign.pk, size=3)) or not step.done:
        assert step is not None
        assert_identity(campaign)
    assert_identity(campaign)
    change(people_of(campaign)[1])
    assert_identity(campaign)
    campaign.refresh_from_db()
    # Only who was gone before the build came to them is not of the audience.
    gone = which == -1 and change in (_leave, _unsubscribe, _delete, _erase)
    assert campaign.audience == (5 if gone else 6)


@pytest.mark.django_db
def test_two_people_swap_addresses_during_the_build() -> None:
    """Nobody's mailbox gets it twice, and every row is a person's."""
    campaign = campaign_to(4)
    build_chunk(campaign.pk, size=2)
    first, *_, last = people_of(campaign)
    Subscriber.objects.filter(pk=first.pk).update(email="between@example.org")
    Subscriber.objects.filter(pk=last.pk).update(email=first.email)
    Subscriber.objects.filter(pk=first.pk).update(email=last.email)
    finish_build(campaign, size=2)
    addresses = list(Send.objects.values_list("email_lower", flat=True))
    assert len(addresses) == len(set(addresses)) == campaign.audience


@pytest.mark.django_db
def test_the_sweep_does_not_count_somebody_again_under_a_new_id() -> None:
    campaign = campaign_to(3)
    build_chunk(campaign.pk, size=100)
    person = people_of(campaign)[0]
    _delete_and_return(person)
    finish_build(campaign)
    assert campaign.audience == Send.objects.count() == 3
