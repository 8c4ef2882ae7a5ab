"""What staff can do to people in the admin, and what they can not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending.models import Send
from subscribers.models import AuditEvent, Membership, Segment, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from tests.db.admin_pages import change, member_client, run_action, url
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
    answer = change(superuser_client, person, form)
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
        ({"locale": "French"}, "locale"),
    ],
)
def test_bad_input_is_the_fields_error(
    superuser_client: Client, person: Subscriber, changes: dict[str, str], field: str
) -> None:
    SubscriberFactory.create(account=person.account, email="taken@example.org")
    SuppressionFactory.create(account=person.account, email="no@example.org")
    answer = change(superuser_client, person, person_form(person, **changes))
    assert answer.status_code == 200
    assert field in answer.context["adminform"].form.errors
    person.refresh_from_db()
    assert (person.email, person.attributes) == ("ann@example.org", {"n": 1})


def test_a_stored_locale_that_is_none_does_not_hinder_other_edits(
    superuser_client: Client, person: Subscriber
) -> None:
    Subscriber.objects.filter(pk=person.pk).update(locale="French")
    form = person_form(person, timezone="Europe/Paris", locale="French")
    assert change(superuser_client, person, form).status_code == 302
    form["locale"] = "pt-BR"
    assert change(superuser_client, person, form).status_code == 302
    person.refresh_from_db()
    assert (person.locale, person.timezone) == ("pt-BR", "Europe/Paris")
    shown = superuser_client.get(url(Subscriber, "change", person.pk)).content.decode()
    assert "Such as fr or pt-BR." in shown
    assert "Such as Europe/Paris." in shown


def test_a_new_person_has_no_attributes_rather_than_null(superuser_client: Client) -> None:
    form = superuser_client.get(url(Subscriber, "add")).context["adminform"].form
    assert form["attributes"].value() == "{}"


def test_an_edit_is_on_record_by_the_names_of_what_changed(
    superuser_client: Client, person: Subscriber
) -> None:
    Subscriber.objects.filter(pk=person.pk).update(consent_source="form")
    change(superuser_client, person, person_form(person))
    assert not AuditEvent.objects.exists()
    form = person_form(person, email="bea@example.org", attributes='{"n": 2}')
    change(superuser_client, person, form)
    act = AuditEvent.objects.get()
    assert (act.account, act.verb, act.subject, act.detail) == (
        person.account, "subscriber.change", "bea@example.org", {"fields": ["attributes", "email"]},
    )  # fmt: skip


def test_confirming_is_one_record(superuser_client: Client) -> None:
    pending = SubscriberFactory.create(pending=True, attributes={"n": 1})
    form = person_form(pending, status="confirmed", consent_source="on paper")
    change(superuser_client, pending, form)
    assert AuditEvent.objects.get().verb == "subscriber.confirm"


# --- do campaigns reach them? --------------------------------------------------------------------

REACHED = "Campaigns reach this person."


def reach_of(client: Client, person: Subscriber) -> str:
    page = client.get(url(Subscriber, "change", person.pk)).content.decode()
    panel = page.split('aria-labelledby="reach">')[1].split("</section>")[0]
    return " ".join(panel.split())


def test_whom_campaigns_reach(superuser_client: Client, person: Subscriber) -> None:
    SuppressionFactory.create(email=person.email)
    past = timezone.now() - timedelta(days=1)
    SuppressionFactory.create(account=person.account, email=person.email, expires=past)
    Subscriber.objects.filter(pk=person.pk).update(paused_until=past)
    assert REACHED in reach_of(superuser_client, person)


@pytest.mark.parametrize(
    ("traits", "says"),
    [
        ({"unsubscribed": True}, "unsubscribed"),
        ({"pending": True}, "not confirmed yet"),
        ({"paused_until": timezone.now() + timedelta(days=9)}, "paused until"),
    ],
)
def test_whose_own_state_keeps_campaigns_away(
    superuser_client: Client, traits: dict[str, Any], says: str
) -> None:
    panel = reach_of(superuser_client, SubscriberFactory.create(**traits))
    assert "No campaign reaches this person" in panel
    assert says in panel


def test_a_suppressed_persons_page_says_so_and_leads_to_the_entry(
    superuser_client: Client, person: Subscriber
) -> None:
    mine = SuppressionFactory.create(
        account=person.account, email="ANN@example.org", reason="complaint"
    )
    everywhere = SuppressionFactory.create(account=None, email=person.email)
    client, user = member_client(person.account)
    for who, sees in ((superuser_client, True), (client, False)):
        panel = reach_of(who, person)
        assert "suppressed since" in panel
        assert "(complained)" in panel
        assert url(Suppression, "change", mine.pk) in panel
        assert "suppressed for all accounts" in panel
        assert (url(Suppression, "change", everywhere.pk) in panel) is sees
    user.user_permissions.remove(*user.user_permissions.filter(codename__contains="suppression"))
    assert "href" not in reach_of(client, person)


def test_an_erased_address_that_the_host_stored_again_is_not_reached(
    superuser_client: Client,
) -> None:
    gone = SubscriberFactory.create(email="Bob@example.org")
    erase_person(gone.account, gone.email, by_name="Bea", reason="asked")
    again = SubscriberFactory.create(account=gone.account, email="Bob@example.org")
    assert "(erased on request)" in reach_of(superuser_client, again)


def test_the_list_is_filtered_by_suppression_and_by_a_single_segment(
    superuser_client: Client, person: Subscriber
) -> None:
    free = SubscriberFactory.create(account=person.account)
    lapsed = SubscriberFactory.create(account=person.account)
    everywhere = SubscriberFactory.create()
    SuppressionFactory.create(account=person.account, email="ANN@example.org")
    SuppressionFactory.create(email=free.email)
    past = timezone.now() - timedelta(days=1)
    SuppressionFactory.create(account=lapsed.account, email=lapsed.email, expires=past)
    SuppressionFactory.create(account=None, email=everywhere.email)
    segment = SegmentFactory.create(account=person.account)
    MembershipFactory.create(segment=segment, subscriber=free)

    def listed(query: str) -> set[Any]:
        answer = superuser_client.get(f"{url(Subscriber, 'changelist')}?{query}")
        return set(answer.context["cl"].result_list)

    assert listed("suppressed=yes") == {person, everywhere}
    assert listed("suppressed=no") == {free, lapsed}
    assert listed(f"segment={segment.pk}") == {free}
    with CaptureQueriesContext(connection) as few:
        listed("suppressed=no")
    SubscriberFactory.create_batch(5, account=person.account)
    with CaptureQueriesContext(connection) as many:
        listed("suppressed=no")
    assert len(many) == len(few)
    page = superuser_client.get(url(Subscriber, "changelist")).content.decode()
    assert f"?segment={segment.pk}" in page


def test_the_segments_offered_are_those_one_may_see(person: Subscriber) -> None:
    SegmentFactory.create(name="Secret segment")
    client, _ = member_client(person.account)
    assert "Secret segment" not in client.get(url(Subscriber, "changelist")).content.decode()


def test_deleting_says_that_it_is_no_erasure(superuser_client: Client, person: Subscriber) -> None:
    client, user = member_client(person.account)
    user.user_permissions.remove(user.user_permissions.get(codename="erase_subscriber"))
    leads = f"{url(Subscriber, 'person')}?subscriber={person.pk}"
    for who, may in ((superuser_client, True), (client, False)):
        page = who.get(url(Subscriber, "delete", person.pk)).content.decode()
        assert "Deleting is no erasure" in page
        assert (leads in page) is may


def test_confirming_by_hand_needs_the_source_of_the_consent(superuser_client: Client) -> None:
    pending = SubscriberFactory.create(pending=True)
    form = person_form(pending, status="confirmed", consent_source="")
    answer = change(superuser_client, pending, form)
    assert "consent_source" in answer.context["adminform"].form.errors
    change(superuser_client, pending, {**form, "consent_source": "on paper"})
    pending.refresh_from_db()
    assert pending.status == Subscriber.Status.CONFIRMED
    assert pending.confirmed_at is not None


def test_staff_can_not_lift_an_unsubscription(superuser_client: Client) -> None:
    gone = SubscriberFactory.create(unsubscribed=True)
    change(superuser_client, gone, person_form(gone, status="confirmed"))
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
        answer = change(superuser_client, person, person_form(person, **inline))
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
