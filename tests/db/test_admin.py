"""The admin as staff meet it: who sees what, and what can be done to people and the ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Approval, Campaign, Content
from sending import status as sending_status
from sending.installation import installation
from sending.models import DeliveryEvent, Installation, Send, TransportPause, Worker
from subscribers import paging
from subscribers.models import Account, Membership, Segment, Subscriber, Suppression
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ContentFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

LABELS = ("sendonce_subscribers", "sendonce_campaigns", "sendonce_sending")
OURS = [model for model in admin.site._registry if model._meta.app_label in LABELS]
#: Rows of the whole installation, no tenant's.
SHARED = {Worker, Installation}
SECRET = "secretname"


def url(model: type[Any], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def grant_all(user: Any) -> None:
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=LABELS))


def member_client(*accounts: Account) -> tuple[Client, Any]:
    """A member of the accounts, with every permission on our models."""
    user = StaffFactory.create()
    grant_all(user)
    for account in accounts:
        account.members.add(user)
    client = Client()
    client.force_login(user)
    return client, user


@pytest.fixture
def superuser_client() -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    return client


def one_of_each(account: Account) -> dict[type[Any], Any]:
    """One row of every tenant's model, all of ``account`` and all recognisable by ``SECRET``."""
    segment = SegmentFactory.create(account=account, name=f"{SECRET} segment")
    person = SubscriberFactory.create(account=account, email=f"{SECRET}@example.org")
    content = ContentFactory.create(account=account, subject=f"{SECRET} subject")
    campaign = CampaignFactory.create(
        account=account, name=f"{SECRET} campaign", segments=[segment], sending=True
    )
    send = SendFactory.create(campaign=campaign, subscriber=person, in_doubt=True)
    now = timezone.now()
    return {
        Account: account,
        Segment: segment,
        Subscriber: person,
        Membership: MembershipFactory.create(segment=segment, subscriber=person),
        Suppression: SuppressionFactory.create(account=account, email=f"{SECRET}@x.example.org"),
        Content: content,
        Campaign: campaign,
        Approval: Approval.objects.create(
            campaign=campaign,
            by_name=SECRET,
            at=now,
            digest="0" * 64,
            scheduled_for=now,
            content=content,
        ),
        Send: send,
        DeliveryEvent: DeliveryEvent.objects.create(
            send=send, account=account, kind="in_doubt", text=SECRET
        ),
        TransportPause: TransportPause.objects.create(
            alias="default", account=account, stage="mail", reason=SECRET, probe_at=now
        ),
    }


# --- registration ------------------------------------------------------------------------------


def test_every_model_is_registered_and_can_be_registered_again() -> None:
    from django.apps import apps

    models = {m for label in LABELS for m in apps.get_app_config(label).get_models()}
    assert models == set(OURS)
    site = admin.AdminSite(name="host")
    for model in models:
        stock = type(admin.site._registry[model])
        site.register(model, type(f"Host{stock.__name__}", (stock,), {}))
    assert all(site.is_registered(model) for model in models)


@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_lists_do_not_count_or_join_without_bound(model: type[Any]) -> None:
    own = admin.site._registry[model]
    assert own.date_hierarchy is None
    assert own.list_select_related is not True
    if model is not Installation:
        assert own.show_full_result_count is False
        assert own.show_facets is admin.ShowFacets.NEVER
        assert own.paginator is paging.BoundedPaginator


@pytest.mark.parametrize(
    "model",
    [Send, DeliveryEvent, Worker, Approval, Content, Installation],
    ids=lambda m: m.__name__,
)
def test_the_ledger_is_read_only_even_for_superusers(
    model: type[Any], superuser_client: Client
) -> None:
    rows = one_of_each(AccountFactory.create())
    rows[Worker] = WorkerFactory.create()
    rows[Installation] = installation()
    pk = rows[model].pk
    assert superuser_client.get(url(model, "add")).status_code == 403
    assert superuser_client.get(url(model, "change", pk)).status_code == 200
    assert superuser_client.post(url(model, "change", pk), {}).status_code == 403
    assert superuser_client.post(url(model, "delete", pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=pk).exists()


# --- tenants -----------------------------------------------------------------------------------


@pytest.fixture
def stranger() -> tuple[Client, dict[type[Any], Any]]:
    """A member of one account with every permission, and the rows of another account."""
    client, _ = member_client(AccountFactory.create(transport="other"))
    other = AccountFactory.create(name=f"{SECRET} account", slug=SECRET)
    return client, one_of_each(other)


def test_lists_show_nothing_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model in rows:
        for query in ("", f"?q={SECRET[:-1]}", "?account=1", f"?account={rows[Account].pk}"):
            answer = client.get(url(model, "changelist") + query, follow=True)
            assert answer.status_code == 200, (model, query)
            shown = answer.context["cl"].result_list if "cl" in answer.context else []
            assert rows[model] not in list(shown), (model, query)
            assert SECRET not in answer.content.decode(), (model, query)


def test_guessed_urls_of_another_account_lead_nowhere(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model, row in rows.items():
        pages = ["change", "history", "delete"]
        if model is Campaign:
            pages += ["approve", "cancel"]
        for page in pages:
            answer = client.get(url(model, page, row.pk))
            assert answer.status_code in (302, 403, 404), (model, page)
            assert SECRET not in answer.content.decode()
            answer = client.post(url(model, page, row.pk), {"post": "yes"})
            assert answer.status_code in (302, 403, 404, 405), (model, page)
        assert model._default_manager.filter(pk=row.pk).exists()
    for verb in ("withdraw", "pause", "resume"):
        answer = client.post(url(Campaign, verb, rows[Campaign].pk))
        assert answer.status_code in (302, 403, 404)
    rows[Campaign].refresh_from_db()
    assert rows[Campaign].status == Campaign.Status.SENDING
    assert not LogEntry.objects.exists()


def test_actions_do_not_reach_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    for model, row in rows.items():
        names = [*(admin.site._registry[model].actions or ()), "delete_selected"]
        for name in names:
            client.post(
                url(model, "changelist"),
                {"action": name, "_selected_action": [row.pk], "confirmed": "yes", "post": "yes"},
            )
        assert model._default_manager.filter(pk=row.pk).exists(), model
    rows[Campaign].refresh_from_db()
    rows[Send].refresh_from_db()
    rows[Subscriber].refresh_from_db()
    rows[Membership].refresh_from_db()
    assert rows[Campaign].status == Campaign.Status.SENDING
    assert rows[Send].status == Send.Status.IN_DOUBT
    assert rows[Subscriber].status == Subscriber.Status.CONFIRMED
    assert rows[Membership].left_at is None


AUTOCOMPLETES = [
    (model, field) for model in OURS for field in admin.site._registry[model].autocomplete_fields
]


@pytest.mark.parametrize(("model", "field"), AUTOCOMPLETES, ids=str)
def test_autocompletes_offer_nothing_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]], model: type[Any], field: str
) -> None:
    client, _ = stranger
    options = {
        "app_label": model._meta.app_label,
        "model_name": model._meta.model_name,
        "field_name": field,
    }
    for term in ("", SECRET):
        answer = client.get(reverse("admin:autocomplete"), {**options, "term": term})
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()


def test_a_forged_post_can_not_name_a_row_of_another_account(
    stranger: tuple[Client, dict[type[Any], Any]],
) -> None:
    client, rows = stranger
    account = rows[Account]
    for model, data in {
        Segment: {"account": account.pk, "name": "mine", "slug": "mine"},
        Subscriber: {"account": account.pk, "email": "new@example.org", "status": "pending"},
        Suppression: {"account": account.pk, "email": "new@example.org", "reason": "manual"},
        Membership: {"segment": rows[Segment].pk, "subscriber": rows[Subscriber].pk},
        Campaign: {
            "account": account.pk,
            "name": "n",
            "subject": "s",
            "body": "b",
            "body_format": "text",
            "segments": [rows[Segment].pk],
        },
    }.items():
        before = model._default_manager.count()
        answer = client.post(url(model, "add"), data)
        assert answer.status_code == 200
        assert answer.context["errors"], model
        assert SECRET not in answer.content.decode()
        assert model._default_manager.count() == before


def test_staff_without_permissions_get_nothing_of_their_own_account() -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    user = StaffFactory.create()
    account.members.add(user)
    client = Client()
    client.force_login(user)
    for model, row in rows.items():
        assert client.get(url(model, "changelist")).status_code == 403
        assert client.get(url(model, "change", row.pk)).status_code == 403


def test_members_see_their_own_rows(superuser_client: Client) -> None:
    account = AccountFactory.create()
    rows = one_of_each(account)
    client, _ = member_client(account)
    for model, row in rows.items():
        for who in (client, superuser_client):
            assert row in who.get(url(model, "changelist")).context["cl"].result_list
            assert who.get(url(model, "change", row.pk)).status_code == 200
            assert who.get(url(model, "history", row.pk)).status_code == 200


def test_what_is_for_all_accounts_is_for_superusers() -> None:
    everywhere = SuppressionFactory.create(account=None, email="all@example.org")
    client, _ = member_client(AccountFactory.create())
    assert client.get(url(Suppression, "change", everywhere.pk)).status_code == 302
    answer = client.post(url(Suppression, "add"), {"email": "x@example.org", "reason": "manual"})
    assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.filter(email="x@example.org").exists()


def test_membership_and_transport_of_an_account_are_for_superusers(
    superuser_client: Client,
) -> None:
    account = AccountFactory.create()
    client, user = member_client(account)
    stranger = StaffFactory.create()
    form = {
        "name": "Renamed",
        "slug": account.slug,
        "from_email": account.from_email,
        "timezone": "Europe/Paris",
        "in_doubt_policy": "hold",
        "transport": "stolen",
        "members": [stranger.pk],
    }
    assert client.post(url(Account, "change", account.pk), form).status_code == 302
    account.refresh_from_db()
    assert (account.name, account.transport) == ("Renamed", "default")
    assert list(account.members.all()) == [user]
    assert superuser_client.get(url(Account, "change", account.pk)).status_code == 200


def test_an_account_that_is_used_can_not_be_deleted(superuser_client: Client) -> None:
    used, empty = SubscriberFactory.create().account, AccountFactory.create(members=[])
    for account, status in ((used, 403), (empty, 302)):
        answer = superuser_client.post(url(Account, "delete", account.pk), {"post": "yes"})
        assert answer.status_code == status
    assert list(Account.objects.all()) == [used]


# --- lists at scale ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [m for m in OURS if m not in {Installation, TransportPause, Account}],
    ids=lambda m: m.__name__,
)
def test_a_list_makes_no_query_per_row(model: type[Any]) -> None:
    account = AccountFactory.create()
    client, _ = member_client(account, AccountFactory.create())

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert client.get(url(model, "changelist")).status_code == 200
        return len(caught)

    def more(n: int) -> None:
        segment = SegmentFactory.create(account=account)
        campaign = CampaignFactory.create(account=account, segments=[segment])
        content = ContentFactory.create(account=account)
        for person in SubscriberFactory.create_batch(n, account=account, segments=[segment]):
            send = SendFactory.create(campaign=campaign, subscriber=person)
            DeliveryEvent.objects.create(send=send, account=account, kind="retry")
            SuppressionFactory.create(account=account)
            WorkerFactory.create()
            SegmentFactory.create(account=account)
            CampaignFactory.create(account=account, segments=[segment])
            Approval.objects.create(
                campaign=campaign,
                by_name="x",
                at=timezone.now(),
                digest="0" * 64,
                scheduled_for=timezone.now(),
                content=content,
            )

    more(3)
    queries()
    few = queries()
    more(6)
    assert queries() == few


def test_a_list_counts_no_further_than_it_pages(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging.BoundedPaginator, "limit", 5)
    account = AccountFactory.create()
    SubscriberFactory.create_batch(7, account=account)
    with CaptureQueriesContext(connection) as caught:
        answer = superuser_client.get(url(Subscriber, "changelist"))
    assert "5+ subscribers" in " ".join(answer.content.decode().split())
    counting = [q["sql"] for q in caught if "COUNT(" in q["sql"] and "LIMIT" not in q["sql"]]
    assert counting == []


def test_search_finds_the_beginning_of_an_address_in_any_case(superuser_client: Client) -> None:
    found = SubscriberFactory.create(email="Ann.Lee@example.org")
    SubscriberFactory.create(email="joann.lee@example.org")
    answer = superuser_client.get(url(Subscriber, "changelist"), {"q": "ANN."})
    assert list(answer.context["cl"].result_list) == [found]


@pytest.mark.parametrize("value", ["x", "-1", "9" * 40, "1'", "\u0661"])
@pytest.mark.parametrize(
    ("model", "name"),
    [(Subscriber, "account"), (Subscriber, "segment"), (Send, "campaign")],
)
def test_a_filter_survives_what_is_no_id(
    superuser_client: Client, model: type[Any], name: str, value: str
) -> None:
    answer = superuser_client.get(url(model, "changelist"), {name: value})
    assert answer.status_code == 200
    assert list(answer.context["cl"].result_list) == []


def test_filters_narrow_the_list(superuser_client: Client) -> None:
    segment = SegmentFactory.create()
    inside = SubscriberFactory.create(account=segment.account, segments=[segment])
    gone = SubscriberFactory.create(account=segment.account)
    MembershipFactory.create(segment=segment, subscriber=gone, left=True)
    send = SendFactory.create(subscriber__segments=[])
    for model, query, rows in (
        (Subscriber, {"segment": segment.pk}, [inside]),
        (Subscriber, {"account": segment.account_id}, [gone, inside]),
        (Send, {"campaign": send.campaign_id}, [send]),
        (Send, {"status__exact": "sent"}, []),
    ):
        answer = superuser_client.get(url(model, "changelist"), query)
        assert list(answer.context["cl"].result_list) == rows


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


def run_action(client: Client, model: type[Any], name: str, *rows: Any, **more: Any) -> Any:
    data = {"action": name, "_selected_action": [row.pk for row in rows], **more}
    return client.post(url(model, "changelist"), data)


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


# --- suppressions --------------------------------------------------------------------------------


def test_suppressing_by_hand_goes_through_the_verb(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {
        "account": account.pk,
        "email": " Bad@EXAMPLE.org",
        "reason": "manual",
        "evidence": "asked on the phone",
    }
    assert superuser_client.post(url(Suppression, "add"), form).status_code == 302
    row = Suppression.objects.get()
    assert (row.account, row.email) == (account, "Bad@example.org")
    assert row.evidence.startswith("asked on the phone\nAdded by staff")
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_weaker_reason_by_hand_does_not_replace_a_stronger(superuser_client: Client) -> None:
    row = SuppressionFactory.create(reason="complaint", email="a@example.org", evidence="ARF")
    form = {"account": row.account_id, "email": "A@example.org", "reason": "manual"}
    answer = superuser_client.post(url(Suppression, "add"), form, follow=True)
    assert "stronger reason" in answer.content.decode()
    stored = Suppression.objects.get()
    assert (stored.reason, stored.evidence) == ("complaint", "ARF")


@pytest.mark.parametrize(
    "form",
    [
        {"email": "nonsense", "reason": "manual"},
        {"email": "a@example.org", "reason": "erased"},
        {
            "email": "a@example.org",
            "reason": "complaint",
            "expires_0": "2999-01-01",
            "expires_1": "00:00",
        },
        {
            "email": "a@example.org",
            "reason": "manual",
            "expires_0": "2001-01-01",
            "expires_1": "00:00",
        },
        {"email": "", "reason": ""},
    ],
)
def test_a_wrong_suppression_is_an_error_of_its_form(
    superuser_client: Client, form: dict[str, str]
) -> None:
    answer = superuser_client.post(url(Suppression, "add"), form)
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()


@pytest.mark.parametrize(
    ("reason", "status"),
    [("manual", 302), ("hard_bounce", 302), ("unsubscribed", 403), ("complaint", 403)],
)
def test_only_what_is_not_a_persons_wish_can_be_lifted(
    superuser_client: Client, reason: str, status: int
) -> None:
    row = SuppressionFactory.create(reason=reason)
    answer = superuser_client.post(url(Suppression, "delete", row.pk), {"post": "yes"})
    assert answer.status_code == status
    assert Suppression.objects.exists() is (status == 403)


# --- doubt ---------------------------------------------------------------------------------------


@pytest.fixture
def doubtful() -> Send:
    found: Send = SendFactory.create(
        in_doubt=True, campaign__sending=False, campaign__sent=True, answer_text="no answer"
    )
    return found


def test_a_send_tells_its_story(superuser_client: Client, doubtful: Send) -> None:
    DeliveryEvent.objects.create(
        send=doubtful,
        account=doubtful.account,
        kind="in_doubt",
        stage="dot",
        reason="connection_lost",
        text="<b>gone</b>",
        attempt=1,
    )
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert "dot: &lt;b&gt;gone&lt;/b&gt;" in page
    assert "connection lost" in page
    assert 'value="send_again"' in page
    assert 'value="treat_as_sent"' in page


def test_a_story_says_each_part_of_an_answer_once_and_leaves_nothing_out(
    superuser_client: Client, doubtful: Send
) -> None:
    events = [
        DeliveryEvent(
            send=doubtful,
            account=doubtful.account,
            kind="failed",
            stage="dot",
            code=550,
            enhanced="5.7.1",
            text="5.7.1 blocked",
            attempt=number,
        )
        for number in range(1, 206)
    ]
    DeliveryEvent.objects.bulk_create(events)
    Send.objects.filter(pk=doubtful.pk).update(
        answer_code=451, answer_enhanced="4.7.1", answer_text="4.7.1 later"
    )
    answer = superuser_client.get(url(Send, "change", doubtful.pk))
    assert len(answer.context["story"]) == 205
    page = answer.content.decode()
    assert "dot: 550 5.7.1 blocked" in page
    assert "dot: 451 4.7.1 later" in page


@pytest.mark.parametrize(
    ("fields", "state"),
    [({}, "alive"), ({"seen": timedelta(seconds=30)}, "lost"), ({"ended": timedelta()}, "ended")],
)
def test_a_worker_is_what_sender_status_says(
    superuser_client: Client, fields: dict[str, timedelta], state: str
) -> None:
    now = timezone.now()
    worker = WorkerFactory.create(**{name: now - ago for name, ago in fields.items()})
    page = superuser_client.get(url(Worker, "changelist")).content.decode()
    assert f'<td class="field-state">{state}</td>' in page
    assert superuser_client.get(url(Worker, "change", worker.pk)).status_code == 200
    facts = {fact.id: fact.state for fact in sending_status.workers(sending_status.database_time())}
    assert facts[worker.pk] == state


def test_sending_again_asks_first_and_reopens_the_campaign(
    superuser_client: Client, doubtful: Send
) -> None:
    asked = run_action(superuser_client, Send, "send_again", doubtful)
    assert "would get it twice" in asked.content.decode()
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.IN_DOUBT

    run_action(superuser_client, Send, "send_again", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.QUEUED
    assert Campaign.objects.get().status == Campaign.Status.SENDING
    assert DeliveryEvent.objects.get(kind="send_again").by_name.startswith("staff")


def test_treating_as_sent(superuser_client: Client, doubtful: Send) -> None:
    run_action(superuser_client, Send, "treat_as_sent", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.SENT


def test_deciding_leaves_rows_in_other_states_alone(superuser_client: Client) -> None:
    sent = SendFactory.create(sent=True)
    failed = SendFactory.create(failed=True)
    answer = run_action(superuser_client, Send, "send_again", sent, failed, confirmed="yes")
    assert answer.status_code == 302
    sent.refresh_from_db()
    failed.refresh_from_db()
    assert (sent.status, failed.status) == (Send.Status.SENT, Send.Status.QUEUED)


def test_a_row_of_a_canceled_campaign_is_not_offered_again_and_that_is_said(
    superuser_client: Client,
) -> None:
    canceled = {"campaign__sending": False, "campaign__canceled": True}
    doubtful = SendFactory.create(in_doubt=True, **canceled)
    page = superuser_client.get(url(Send, "change", doubtful.pk)).content.decode()
    assert 'value="send_again"' not in page
    assert 'value="treat_as_sent"' in page
    assert "The campaign is canceled: nothing of it is sent again." in page
    failed = SendFactory.create(failed=True, **canceled)
    page = superuser_client.get(url(Send, "change", failed.pk)).content.decode()
    assert "your decision" not in page


def test_what_a_decision_left_is_said_with_the_reason(
    superuser_client: Client, doubtful: Send
) -> None:
    canceled = SendFactory.create(in_doubt=True, campaign__sending=False, campaign__canceled=True)
    held = SendFactory.create(in_doubt=True, lease_until=timezone.now() + timedelta(minutes=1))
    single = SendFactory.create(
        transactional=True, in_doubt=True, lease_until=timezone.now() + timedelta(minutes=1)
    )
    answer = run_action(
        superuser_client, Send, "send_again", doubtful, canceled, held, single, confirmed="yes"
    )
    assert [str(message) for message in get_messages(answer.wsgi_request)] == [
        "Send again: 1 of 4 rows.",
        "1 left as before: the campaign is canceled, nothing of it is sent again.",
        "2 left as before: the sender that held it may still live, try again in a minute.",
    ]


def test_deciding_needs_its_own_permission(doubtful: Send) -> None:
    client, user = member_client(doubtful.account)
    user.user_permissions.remove(Permission.objects.get(codename="resolve_doubt"))
    run_action(client, Send, "send_again", doubtful, confirmed="yes")
    doubtful.refresh_from_db()
    assert doubtful.status == Send.Status.IN_DOUBT
    assert "send_again" not in client.get(url(Send, "change", doubtful.pk)).content.decode()


def test_a_transports_own_pause_is_lifted_by_superusers_only(superuser_client: Client) -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    now = timezone.now()
    shared = TransportPause.objects.create(alias="default", stage="connect", probe_at=now)
    elsewhere = TransportPause.objects.create(alias="x", stage="connect", probe_at=now)
    assert client.get(url(TransportPause, "change", shared.pk)).status_code == 200
    assert client.get(url(TransportPause, "change", elsewhere.pk)).status_code == 302
    for who, status in ((client, 403), (superuser_client, 302)):
        answer = who.post(url(TransportPause, "delete", shared.pk), {"post": "yes"})
        assert answer.status_code == status
    assert list(TransportPause.objects.all()) == [elsewhere]
