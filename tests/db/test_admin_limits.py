"""What holds mail back, in the admin: limits, pauses, brakes; who sees it, and who lifts it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import CampaignHealth, RateLimit, TransportPause
from subscribers.models import Account, AuditEvent
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, CampaignFactory

pytestmark = pytest.mark.django_db


def slowed(key: str, **fields: Any) -> RateLimit:
    given = {"usual": 4, "rate": 1, "slowed_at": timezone.now(), "reason": "421 slow down"}
    return RateLimit.objects.create(key=key, **{**given, **fields})


@pytest.fixture
def account() -> Account:
    found: Account = AccountFactory.create(name="City Theatre", transport="bulk")
    return found


def listed(client: Client, model: type[Any], query: str = "") -> list[Any]:
    answer = client.get(url(model, "changelist") + query)
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


# --- what is shown -------------------------------------------------------------------------------


def test_a_limit_is_told_in_words(superuser_client: Client, account: Account) -> None:
    slowed(f"account:{account.pk}", usual=20_000 / 3600, rate=0.25)
    slowed("transport:bulk", usual=20, rate=2.5)
    slowed("domain:google", usual=None, rate=0.5)
    RateLimit.objects.create(key="transport:default", usual=10, rate=10)
    page = superuser_client.get(url(RateLimit, "changelist")).content.decode()
    for words in (
        "Account City Theatre", "900 an hour", "20,000 an hour",
        "Transport bulk", "2.5 a second", "20 a second",
        "Mailboxes at google", "1,800 an hour", "no limit",
        "Transport default", "10 a second", "as usual", "421 slow down",
    ):  # fmt: skip
        assert words in page, words
    only = listed(superuser_client, RateLimit, "?slowed=yes")
    assert "transport:default" not in [limit.key for limit in only]
    assert len(only) == 3


def test_a_limit_that_is_shut_says_until_when(superuser_client: Client) -> None:
    slowed("domain:google", usual=None, updated=timezone.now() + timedelta(minutes=5))
    page = superuser_client.get(url(RateLimit, "changelist")).content.decode()
    assert "none before " in page


def test_a_limit_of_an_account_that_is_gone_is_shown_by_its_number(
    superuser_client: Client,
) -> None:
    limit = slowed("account:987654")
    assert "Account 987654" in superuser_client.get(url(RateLimit, "changelist")).content.decode()
    assert superuser_client.get(url(RateLimit, "change", limit.pk)).status_code == 200


def test_a_pause_tells_its_trouble_and_what_lifts_it(
    superuser_client: Client, account: Account
) -> None:
    later = timezone.now() + timedelta(minutes=1)
    login = TransportPause.objects.create(
        alias="bulk", stage="auth", code=535, reason="535 5.7.8 bad password", probe_at=later
    )
    sender = TransportPause.objects.create(
        alias="bulk", account=account, stage="mail", code=553, reason="553 no", probe_at=later
    )
    text = superuser_client.get(url(TransportPause, "changelist")).content.decode()
    assert "Refuses the login" in text
    assert "Refuses the sender address of City Theatre" in text
    page = superuser_client.get(url(TransportPause, "change", login.pk)).content.decode()
    assert "Correct the login in the settings" in page
    assert "the first try that works lifts the pause" in page
    assert f'<a href="{url(TransportPause, "overview")}">Transports and brakes</a>' in page
    assert "a new sender tries at the next planned moment" in page
    page = superuser_client.get(url(TransportPause, "change", sender.pk)).content.decode()
    assert "Correct the sender address of City Theatre" in page


def test_the_brakes_are_shown_beside_the_accounts_limits(superuser_client: Client) -> None:
    campaign = CampaignFactory.create(sending=True, account__max_refusals=30)
    health = CampaignHealth.objects.create(
        campaign=campaign, accepted=375, bounced=25, refused=4, complained=3, in_a_row=2,
        base={"trips": 2, "trip": "25 of 404 addresses are dead"},
    )  # fmt: skip
    page = superuser_client.get(url(CampaignHealth, "change", health.pk)).content.decode()
    page = page.replace("\u00a0", " ")
    for words in (
        "25 (6.19 %, limit 5 %)", "3 (0.80 %, limit 0.1 %)", "2 (limit 30, 4 in all)",
        "2 times", "25 of 404 addresses are dead",
    ):  # fmt: skip
        assert words in page, words
    assert "25 (6.19" in superuser_client.get(url(CampaignHealth, "changelist")).content.decode()
    own = superuser_client.get(url(Campaign, "change", campaign.pk)).content.decode()
    assert "25 (6.19 %, limit 5 %)" in own.replace("\u00a0", " ")
    assert "25 of 404 addresses are dead" in own


def test_a_campaign_whose_brakes_counted_nothing_shows_none(superuser_client: Client) -> None:
    campaign = CampaignFactory.create(sending=True)
    page = superuser_client.get(url(Campaign, "change", campaign.pk)).content.decode()
    assert "<h3>Brakes</h3>" not in page


# --- whose -------------------------------------------------------------------------------------


def test_staff_see_the_limits_of_their_account_and_its_transport_only(account: Account) -> None:
    other = AccountFactory.create(transport="other")
    mine = slowed(f"account:{account.pk}"), slowed("transport:bulk")
    for key in (f"account:{other.pk}", "transport:other", "transport:default", "domain:google"):
        slowed(key)
    client, _ = member_client(account)
    assert set(listed(client, RateLimit)) == set(mine)
    foreign = RateLimit.objects.get(key=f"account:{other.pk}")
    for page in ("change", "delete", "history"):
        assert client.get(url(RateLimit, page, foreign.pk)).status_code in (302, 403, 404)
    client.post(url(RateLimit, "delete", foreign.pk), {"post": "yes"})
    assert RateLimit.objects.get(pk=foreign.pk).slowed_at is not None


@pytest.mark.parametrize("model", [RateLimit, TransportPause, CampaignHealth])
def test_looking_needs_the_permission(account: Account, model: type[Any]) -> None:
    client, user = member_client(account)
    user.user_permissions.clear()
    assert client.get(url(model, "changelist")).status_code == 403
    name = f"view_{model._meta.model_name}"
    user.user_permissions.set(Permission.objects.filter(codename=name))
    assert client.get(url(model, "changelist")).status_code == 200


@pytest.mark.parametrize("model", [RateLimit, TransportPause, CampaignHealth])
def test_nothing_is_added_or_edited_by_hand(superuser_client: Client, model: type[Any]) -> None:
    campaign = CampaignFactory.create(sending=True)
    rows: dict[type[Any], Any] = {
        RateLimit: slowed("transport:bulk"),
        TransportPause: TransportPause.objects.create(
            alias="bulk", stage="auth", probe_at=timezone.now()
        ),
        CampaignHealth: CampaignHealth.objects.create(campaign=campaign),
    }
    row = rows[model]
    assert superuser_client.get(url(model, "add")).status_code == 403
    assert superuser_client.post(url(model, "change", row.pk), {}).status_code == 403


# --- lifting -------------------------------------------------------------------------------------


def test_lifting_a_slow_down_asks_first_and_brings_the_usual_rate_back(
    superuser_client: Client,
) -> None:
    limit = slowed("transport:bulk", tokens=0.5, updated=timezone.now() + timedelta(hours=1))
    page = superuser_client.get(url(RateLimit, "change", limit.pk)).content.decode()
    assert "Lift the slow-down…" in page
    asked = superuser_client.get(url(RateLimit, "delete", limit.pk)).content.decode()
    assert "transport bulk" in asked
    assert "The usual rate holds again at once" in asked
    limit.refresh_from_db()
    assert limit.slowed_at is not None

    answer = superuser_client.post(url(RateLimit, "delete", limit.pk), {"post": "yes"})
    assert answer.status_code == 302
    assert [str(m) for m in get_messages(answer.wsgi_request)] == ["Lifted: transport bulk."]
    after = RateLimit.objects.get(pk=limit.pk)
    assert after.rate == 4
    assert after.slowed_at is None
    assert after.raised_at is None
    assert after.reason == ""
    assert after.tokens == 0.5, "no burst"
    assert after.updated <= timezone.now(), "it is not shut any more"
    assert LogEntry.objects.filter(object_id=str(limit.pk)).exists()


def test_lifting_where_there_is_no_usual_rate_ends_the_limit(superuser_client: Client) -> None:
    limit = slowed("domain:google", usual=None, ceiling=4)
    superuser_client.post(url(RateLimit, "delete", limit.pk), {"post": "yes"})
    assert not RateLimit.objects.filter(pk=limit.pk).exists()


def test_a_limit_that_is_as_usual_can_not_be_lifted(superuser_client: Client) -> None:
    limit = RateLimit.objects.create(key="transport:bulk", usual=4, rate=4)
    answer = superuser_client.post(url(RateLimit, "delete", limit.pk), {"post": "yes"})
    assert answer.status_code == 403
    assert RateLimit.objects.get(pk=limit.pk).rate == 4


def test_one_accounts_staff_lift_their_own_slow_down_and_nobody_elses(
    superuser_client: Client, account: Account
) -> None:
    own, shared = slowed(f"account:{account.pk}"), slowed("transport:bulk")
    client, user = member_client(account)
    page = client.get(url(RateLimit, "change", shared.pk)).content.decode()
    assert "Lift the slow-down" not in page
    refused = client.post(url(RateLimit, "delete", shared.pk), {"post": "yes"})
    assert refused.status_code == 403
    user.user_permissions.remove(Permission.objects.get(codename="delete_ratelimit"))
    assert client.post(url(RateLimit, "delete", own.pk), {"post": "yes"}).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="delete_ratelimit"))
    assert client.post(url(RateLimit, "delete", own.pk), {"post": "yes"}).status_code == 302
    own.refresh_from_db()
    shared.refresh_from_db()
    assert own.slowed_at is None
    assert own.rate == 4
    assert shared.slowed_at is not None


def paused(stage: str = "auth", account: Account | None = None, alias: str = "bulk") -> Any:
    return TransportPause.objects.create(
        alias=alias, account=account, stage=stage, code=None, reason="why",
        probe_at=timezone.now() + timedelta(minutes=9),
    )  # fmt: skip


@pytest.mark.parametrize("stage", ["auth", "mail", "errors"])
def test_a_try_at_once_asks_first_and_ends_no_pause_by_itself(
    superuser_client: Client, account: Account, stage: str
) -> None:
    pause = paused(stage, account if stage == "mail" else None)
    shown = superuser_client.get(url(TransportPause, "change", pause.pk)).content.decode()
    assert "Try now…" in shown
    asked = superuser_client.get(url(TransportPause, "delete", pause.pk)).content.decode()
    assert "no attempt of a recipient is spent" in asked
    pause.refresh_from_db()
    assert pause.probe_at > timezone.now() + timedelta(minutes=8)
    answer = superuser_client.post(url(TransportPause, "delete", pause.pk), {"post": "yes"})
    (said,) = get_messages(answer.wsgi_request)
    assert str(said).startswith("Paused so far: bulk: why. The next try is made now, and ends the")
    pause.refresh_from_db()
    assert pause.probe_at <= timezone.now() + timedelta(seconds=2)
    assert not LogEntry.objects.get(object_id=str(pause.pk)).is_deletion()


def test_a_pause_that_no_mail_goes_by_any_more_is_lifted(
    superuser_client: Client, account: Account
) -> None:
    Account.objects.filter(pk=account.pk).update(transport="default")
    for pause in (paused("auth", alias="gone"), paused("mail", account)):
        superuser_client.post(url(TransportPause, "delete", pause.pk), {"post": "yes"})
    assert not TransportPause.objects.exists()
    assert set(AuditEvent.objects.values_list("verb", flat=True)) == {"transport.lift_pause"}


def test_staff_have_their_transport_tried_where_no_other_accounts_message_is_risked(
    account: Account,
) -> None:
    client, user = member_client(account)
    other = AccountFactory.create(transport="bulk")
    for pause, status in (
        (paused("auth"), 302),
        (paused("errors", account), 302),
        (paused("mail", other), 404),
        (paused("auth", alias="default"), 404),
    ):
        answer = client.post(url(TransportPause, "delete", pause.pk), {"post": "yes"})
        assert answer.status_code in ({status} if status == 302 else {302, 403, 404})
        pause.refresh_from_db()
        is_tried = pause.probe_at < timezone.now() + timedelta(minutes=1)
        assert is_tried is (status == 302), pause
    TransportPause.objects.all().delete()
    risky = paused("errors")
    assert client.post(url(TransportPause, "delete", risky.pk), {"post": "yes"}).status_code == 403
    user.user_permissions.remove(Permission.objects.get(codename="delete_transportpause"))
    TransportPause.objects.update(stage="auth")
    assert client.post(url(TransportPause, "delete", risky.pk), {"post": "yes"}).status_code == 403


def test_what_a_server_said_is_short_in_a_list_and_whole_beside_it(
    superuser_client: Client,
) -> None:
    long = "421 4.7.28 " + "unusual rate " * 30 + "<b>end"
    slowed("domain:google", reason=long)
    page = superuser_client.get(url(RateLimit, "changelist")).content.decode()
    assert page.count("&lt;b&gt;end") == 1
    assert f'title="{long[:40]}' in page
    usual = RateLimit.objects.create(key="transport:bulk", usual=4, rate=4)
    page = superuser_client.get(url(RateLimit, "change", usual.pk)).content.decode()
    assert "not slowed down" in page
    assert "None" not in page


def test_settings_that_are_wrong_are_not_a_relay_that_is_away(superuser_client: Client) -> None:
    pause = TransportPause.objects.create(
        alias="away", stage="connect", probe_at=timezone.now(),
        reason="no transport 'away' in SENDONCE['TRANSPORTS'] (default)",
    )  # fmt: skip
    page = superuser_client.get(url(TransportPause, "change", pause.pk)).content.decode()
    assert "Is misconfigured" in page
    assert "have the account name another" in page
    assert "host, port" not in page


# --- lists at scale ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [RateLimit, TransportPause, CampaignHealth])
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "member"])
def test_a_list_makes_no_query_per_row(
    superuser_client: Client, model: type[Any], superuser: bool
) -> None:
    mine: list[Account] = AccountFactory.create_batch(8)
    client = superuser_client if superuser else member_client(*mine)[0]

    def more(accounts: list[Account]) -> None:
        for account in accounts:
            slowed(f"account:{account.pk}")
            TransportPause.objects.create(
                alias="default", account=account, stage="mail", probe_at=timezone.now()
            )
            campaign = CampaignFactory.create(account=account, sending=True)
            CampaignHealth.objects.create(campaign=campaign, accepted=9, bounced=1)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            listed(client, model)
        return len(caught)

    more(mine[:2])
    queries()
    few = queries()
    more(mine[2:])
    assert queries() == few
    assert len(listed(client, model)) == len(mine)
