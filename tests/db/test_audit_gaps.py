"""Acts of staff by the less usual ways: deleting by URL, adding one membership, exporting all."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.models import Account, AuditEvent, Membership, Segment, Subscriber, Suppression
from tests.db.admin_pages import member_client, seen, url
from tests.factories import (
    AccountFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

ANN = "ann@example.org"


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


def test_deleting_a_segment_is_on_record_with_how_many_were_in_it(account: Account) -> None:
    client, user = member_client(account)
    segment = SegmentFactory.create(account=account, name="Readers")
    for _ in range(2):
        MembershipFactory.create(segment=segment, subscriber__account=account)
    assert client.post(url(Segment, "delete", segment.pk), {"post": "yes"}).status_code == 302
    assert not Segment.objects.exists()
    event = AuditEvent.objects.get(verb="segment.delete")
    assert (event.account, event.subject, event.by) == (account, "Readers", user)
    assert event.detail == {"people": 2}


def by_the_page_of_memberships(person: Subscriber, segment: Segment) -> tuple[str, dict[str, Any]]:
    return url(Membership, "add"), {"segment": segment.pk, "subscriber": person.pk}


def by_the_page_of_the_person(person: Subscriber, segment: Segment) -> tuple[str, dict[str, Any]]:
    return url(Subscriber, "change", person.pk), {
        "email": person.email,
        "consent_source": person.consent_source,
        "attributes": "{}",
        "locale": "",
        "timezone": "",
        "memberships-TOTAL_FORMS": 1,
        "memberships-INITIAL_FORMS": 0,
        "memberships-0-segment": segment.pk,
        "memberships-0-subscriber": person.pk,
        "signups-TOTAL_FORMS": 0,
        "signups-INITIAL_FORMS": 0,
    }


@pytest.mark.parametrize("way", [by_the_page_of_memberships, by_the_page_of_the_person])
def test_putting_one_person_into_a_segment_is_on_record(account: Account, way: Any) -> None:
    client, user = member_client(account)
    person = SubscriberFactory.create(account=account, email=ANN, attributes={})
    segment = SegmentFactory.create(account=account, name="Readers")
    page, body = way(person, segment)
    if way is by_the_page_of_the_person:
        body |= seen(client, person)
    answer = client.post(page, body)
    assert answer.status_code == 302, answer.context["errors"]
    assert Membership.objects.filter(segment=segment, subscriber=person).exists()
    event = AuditEvent.objects.get(verb="membership.add")
    assert (event.account, event.subject, event.by) == (account, ANN, user)
    assert event.detail == {"segment": "Readers"}


def exported(client: Any, **given: Any) -> list[tuple[Any, Any]]:
    """Whose record says that how many entries were taken."""
    body = {"scope": "", "reason": "", "state": "", **given}
    answer = client.post(url(Suppression, "export"), body)
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content)
    events = AuditEvent.objects.filter(verb="suppression.export").order_by("account_id")
    return [(event.account_id, event.detail["entries"]) for event in events]


def test_an_export_of_all_that_one_may_see_is_on_the_record_of_each_account() -> None:
    one, two, other = AccountFactory.create_batch(3)
    client, _ = member_client(one, two)
    for account, count in ((one, 2), (two, 1), (other, 1)):
        for number in range(count):
            SuppressionFactory.create(account=account, email=f"p{number}@example.org")
    assert exported(client) == [(one.pk, 2), (two.pk, 1)]
    assert [event.subject for event in AuditEvent.objects.order_by("account_id")] == [
        str(one), str(two),
    ]  # fmt: skip
