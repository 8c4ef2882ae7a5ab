"""What staff can do to people in the admin, and what they can not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from sending.models import Send
from subscribers.models import AuditEvent, Membership, Segment, Subscriber, Suppression
from tests.db.admin_pages import run_action, url
from tests.factories import (
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

# --- people --------------------------------------------------------------------------------------


@pytest.fixture
def person() -> Subscriber:
    found: Subscriber = SubscriberFactory.create(email="ann@example.org", attributes={"n": 1})
    return found


def person_form(person: Subscriber, **changes: Any) -> dict[str, Any]:
    return {
        "email": person.email,
        "consent_source": "form",
        "attributes": '{"n": 1}',
        "locale": "",
        "timezone": "",
        "memberships-TOTAL_FORMS": 0,
        "memberships-INITIAL_FORMS": 0,
        "signups-TOTAL_FORMS": 0,
        "signups-INITIAL_FORMS": 0,
        **changes,
    }


def test_an_edited_address_is_stored_in_its_one_form(
    superuser_client: Client, person: Subscriber
) -> None:
    form = person_form(person, email=" mailto:Ann@B\u00dcCHER.example.org ")
    answer = superuser_client.post(url(Subscriber, "change", person.pk), form)
    assert answer.status_code == 302
    person.refresh_from_db()
    assert person.email == "Ann@xn--bcher-kva.example.org"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"email": "not an address"}, "email"),
        ({"email": "TAKEN@example.org"}, "email"),
        ({"email": "no@example.org"}, "email"),
        ({"email": "a@example.org\r\nBcc: b@example.org"}, "email"),
        ({"attributes": "[1]"}, "attributes"),
        ({"attributes": "{"}, "attributes"),
        ({"timezone": "Mars/Base"}, "timezone"),
    ],
)
def test_bad_input_is_the_fields_error(
    superuser_client: Client, person: Subscriber, changes: dict[str, str], field: str
) -> None:
    SubscriberFactory.create(account=person.account, email="taken@example.org")
    SuppressionFactory.create(account=person.account, email="no@example.org")
    answer = superuser_client.post(
        url(Subscriber, "change", person.pk), person_form(person, **changes)
    )
    assert answer.status_code == 200
    assert field in answer.context["adminform"].form.errors
    person.refresh_from_db()
    assert (person.email, person.attributes) == ("ann@example.org", {"n": 1})


def test_confirming_by_hand_needs_the_source_of_the_consent(superuser_client: Client) -> None:
    pending = SubscriberFactory.create(pending=True)
    form = person_form(pending, status="confirmed", consent_source="")
    answer = superuser_client.post(url(Subscriber, "change", pending.pk), form)
    assert "consent_source" in answer.context["adminform"].form.errors
    superuser_client.post(
        url(Subscriber, "change", pending.pk), {**form, "consent_source": "on paper"}
    )
    pending.refresh_from_db()
    assert pending.status == Subscriber.Status.CONFIRMED
    assert pending.confirmed_at is not None


def test_staff_can_not_lift_an_unsubscription(superuser_client: Client) -> None:
    gone = SubscriberFactory.create(unsubscribed=True)
    superuser_client.post(url(Subscriber, "change", gone.pk), person_form(gone, status="confirmed"))
    gone.refresh_from_db()
    assert gone.status == Subscriber.Status.UNSUBSCRIBED


def test_unsubscribing_asks_and_then_is_done_for_good(
    superuser_client: Client, person: Subscriber
) -> None:
    asked = run_action(superuser_client, Subscriber, "unsubscribe_selected", person)
    assert asked.status_code == 200
    assert "ann@example.org" in asked.content.decode()
    person.refresh_from_db()
    assert person.status == Subscriber.Status.CONFIRMED

    run_action(superuser_client, Subscriber, "unsubscribe_selected", person, confirmed="yes")
    person.refresh_from_db()
    assert person.status == Subscriber.Status.UNSUBSCRIBED
    assert Suppression.objects.get(email_lower="ann@example.org").reason == "unsubscribed"
    assert LogEntry.objects.filter(object_id=str(person.pk)).exists()


def test_a_segment_of_another_account_can_not_be_joined(
    superuser_client: Client, person: Subscriber
) -> None:
    own, other = SegmentFactory.create(account=person.account), SegmentFactory.create()
    for segment, errors in ((other, True), (own, False)):
        inline = {
            "memberships-TOTAL_FORMS": 1,
            "memberships-0-segment": segment.pk,
            "memberships-0-subscriber": person.pk,
        }
        answer = superuser_client.post(
            url(Subscriber, "change", person.pk), person_form(person, **inline)
        )
        assert (answer.status_code == 200) is errors
        answer = superuser_client.post(
            url(Membership, "add"), {"segment": other.pk, "subscriber": person.pk}
        )
        assert "segment" in answer.context["adminform"].form.errors
    assert [m.segment for m in person.memberships.all()] == [own]


def test_leaving_is_recorded_and_withdraws_open_rows(
    superuser_client: Client, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    segment = SegmentFactory.create()
    person = SubscriberFactory.create(account=segment.account, segments=[segment])
    campaign = CampaignFactory.create(account=segment.account, segments=[segment], sending=True)
    send = SendFactory.create(campaign=campaign, subscriber=person)
    membership = person.memberships.get()
    with django_capture_on_commit_callbacks(execute=True):
        run_action(superuser_client, Membership, "leave_selected", membership, confirmed="yes")
    membership.refresh_from_db()
    send.refresh_from_db()
    assert membership.left_at is not None
    assert send.status == Send.Status.SUPPRESSED


def test_a_segment_that_a_campaign_names_can_not_be_deleted(superuser_client: Client) -> None:
    campaign = CampaignFactory.create()
    used, free = campaign.segments.get(), SegmentFactory.create(account=campaign.account)
    MembershipFactory.create(segment=free)
    assert "1" in superuser_client.get(url(Segment, "delete", free.pk)).content.decode()
    for segment, status in ((used, 403), (free, 302)):
        answer = superuser_client.post(url(Segment, "delete", segment.pk), {"post": "yes"})
        assert answer.status_code == status
    assert list(Segment.objects.all()) == [used]


def test_a_subscriber_can_be_deleted_and_the_ledger_stays(superuser_client: Client) -> None:
    send = SendFactory.create(sent=True)
    answer = superuser_client.post(url(Subscriber, "delete", send.subscriber_id), {"post": "yes"})
    assert answer.status_code == 302
    send.refresh_from_db()
    assert (send.subscriber, send.status) == (None, Send.Status.SENT)
    act = AuditEvent.objects.get()
    assert (act.verb, act.subject) == ("subscriber.delete", send.email)
