"""The audit trail: in the transaction of the act, read by those whom it concerns, never changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.test import Client, RequestFactory
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import Send, TransportPause
from subscribers.audit import record
from subscribers.models import AuditEvent, Membership, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import release, version
from tests.db.admin_pages import change, member_client, run_action, url
from tests.factories import (
    AccountFactory,
    AuditEventFactory,
    CampaignFactory,
    MembershipFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"

# --- writing -------------------------------------------------------------------------------------


def test_who_did_what_from_where() -> None:
    account, user = AccountFactory.create(), StaffFactory.create(username="bea")
    request = RequestFactory().get("/", REMOTE_ADDR="192.0.2.7")
    request.user = user
    event = record(
        account, "test.act", subject=ANN, reason="asked", detail={"n": 1}, request=request
    )
    event.refresh_from_db()
    assert (event.by, event.by_name, event.from_address) == (user, "bea", "192.0.2.7")
    assert (event.subject, event.subject_lower) == (ANN, "Ann@example.org".lower())
    assert event.at is not None
    user.delete()
    event.refresh_from_db()
    assert (event.by, event.by_name) == (None, "bea")


def test_a_stranger_and_a_command() -> None:
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    assert record(None, "test.act", request=request, by_name="the person").by is None
    assert record(None, "test.act", by_name="ops (command line)").by_name == "ops (command line)"


def test_without_the_act_there_is_no_record_of_it() -> None:
    row = SuppressionFactory.create()

    def die_after_it() -> None:
        with transaction.atomic():
            release(row.pk, seen=version(row), words="a mistake", by_name="Bea")
            raise RuntimeError("the machine is gone")

    with pytest.raises(RuntimeError):
        die_after_it()
    assert not AuditEvent.objects.exists()
    assert Suppression.objects.exists()


def last(verb: str) -> AuditEvent:
    return AuditEvent.objects.get(verb=verb)


def test_what_staff_do_to_people_is_on_record() -> None:
    account = AccountFactory.create()
    client, user = member_client(account)
    person = SubscriberFactory.create(account=account, email=ANN)
    membership = MembershipFactory.create(segment__account=account, subscriber=person)
    pending = SubscriberFactory.create(account=account, pending=True)
    form = {
        "email": pending.email, "status": "confirmed", "consent_source": "on paper",
        "attributes": "{}", "locale": "", "timezone": "",
        "memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0,
        "signups-TOTAL_FORMS": 0, "signups-INITIAL_FORMS": 0,
    }  # fmt: skip
    change(client, pending, form)
    run_action(client, Membership, "leave_selected", membership, confirmed="yes")
    run_action(client, Subscriber, "unsubscribe_selected", person, confirmed="yes")
    for verb, subject in (
        ("subscriber.confirm", pending.email),
        ("membership.leave", ANN),
        ("subscriber.unsubscribe", ANN),
    ):
        event = last(verb)
        assert (event.account, event.subject, event.by) == (account, subject, user)


def test_what_staff_decide_about_campaigns_is_on_record() -> None:
    account = AccountFactory.create()
    client, user = member_client(account)
    campaign = CampaignFactory.create(account=account, sending=True)
    for verb in ("pause", "resume", "cancel"):
        client.post(url(Campaign, verb, campaign.pk))
        event = last(f"campaign.{verb}")
        assert (event.account, event.by, event.detail) == (
            account, user, {"campaign": campaign.pk},
        )  # fmt: skip
    # What was refused is no act.
    client.post(url(Campaign, "pause", campaign.pk))
    assert AuditEvent.objects.filter(verb="campaign.pause").count() == 1


def test_deciding_about_doubt_is_on_record() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    campaign = CampaignFactory.create(account=account, sending=True)
    send = SendFactory.create(campaign=campaign, in_doubt=True)
    run_action(client, Send, "treat_as_sent", send, confirmed="yes")
    event = last("send.treat_as_sent")
    assert (event.account, event.subject) == (account, campaign.name)
    assert event.detail == {"chosen": 1, "decided": 1, "campaigns": [campaign.pk]}


@pytest.mark.parametrize("shared", [False, True])
def test_trying_a_paused_transport_is_on_record(superuser_client: Client, shared: bool) -> None:
    account = None if shared else AccountFactory.create()
    pause = TransportPause.objects.create(
        alias="default", account=account, stage="mail", reason="why", probe_at=timezone.now()
    )
    superuser_client.post(url(TransportPause, "delete", pause.pk), {"post": "yes"})
    event = last("transport.try_now")
    assert (event.account, event.subject) == (account, "default")


# --- reading -------------------------------------------------------------------------------------


def listed(client: Client, query: str = "") -> list[Any]:
    answer = client.get(f"{url(AuditEvent, 'changelist')}?{query}")
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def test_nothing_of_it_can_be_changed_or_deleted(superuser_client: Client) -> None:
    event = AuditEventFactory.create(detail={"n": 1}, reason="asked")
    page = superuser_client.get(url(AuditEvent, "change", event.pk))
    assert page.status_code == 200
    assert "asked" in page.content.decode()
    assert 'name="_save"' not in page.content.decode()
    assert superuser_client.get(url(AuditEvent, "add")).status_code == 403
    assert superuser_client.post(url(AuditEvent, "change", event.pk), {}).status_code == 403
    assert (
        superuser_client.post(url(AuditEvent, "delete", event.pk), {"post": "yes"}).status_code
        == 403
    )
    run_action(superuser_client, AuditEvent, "delete_selected", event, post="yes")
    assert AuditEvent.objects.get() == event


def test_staff_see_their_accounts_and_never_what_is_for_all(superuser_client: Client) -> None:
    mine = AuditEventFactory.create()
    other, everywhere = AuditEventFactory.create(), AuditEventFactory.create(account=None)
    client, _ = member_client(mine.account)
    assert listed(client) == [mine]
    for event in (other, everywhere):
        assert client.get(url(AuditEvent, "change", event.pk)).status_code == 302
    assert listed(superuser_client) == [everywhere, other, mine]


def test_search_and_filters(superuser_client: Client) -> None:
    plain = AuditEventFactory.create(subject=ANN, verb="a.b")
    AuditEventFactory.create(subject="bob@example.org", verb="c.d", account=plain.account)
    assert listed(superuser_client, "q=aNN@") == [plain]
    assert listed(superuser_client, "act=a.b") == [plain]
    assert len(listed(superuser_client, f"account={plain.account_id}")) == 2
    assert listed(superuser_client, "at__gte=2999-01-01 00:00:00%2B00:00") == []
    erase_person(plain.account, ANN, by_name="Bea", reason="asked")
    found = listed(superuser_client, f"q={ANN}")
    assert {event.verb for event in found} == {"a.b", "person.erase"}
    assert listed(superuser_client, "q=ann@exam") == []


def test_the_filter_offers_no_acts_of_others() -> None:
    AuditEventFactory.create(verb="secret.act")
    client, _ = member_client(AuditEventFactory.create().account)
    assert "secret.act" not in client.get(url(AuditEvent, "changelist")).content.decode()
