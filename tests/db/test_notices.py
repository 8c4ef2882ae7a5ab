"""Mail to the staff: what happened is told once, whoever looks, and never about a notice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.test import override_settings
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign, Content
from campaigns.rendering import Renderer
from sending import health, notice_texts, notices, transactional
from sending.answers import Answer, Stage
from sending.models import CampaignHealth, Send, TransportPause
from sending.pauses import pause
from sending.sql.pauses import ERRORS
from subscribers.models import Account
from tests.factories import AccountFactory, CampaignFactory, SendFactory, StaffFactory

from .racing import Race

REASON = "20 refusals in a row (policy): 550 5.7.1 blocked <us>"
REFUSED = Answer(Stage.CONNECT, None, "", "connection refused")
LOGIN = Answer(Stage.AUTH, 535, "5.7.8", "bad password")


@pytest.fixture
def account(db: None) -> Account:
    made: Account = AccountFactory.create(
        name="Tea & Sons", members=[StaffFactory.create(email="Ann@example.org")]
    )
    return made


def campaign_of(account: Account, status: str, **fields: Any) -> Campaign:
    campaign: Campaign = CampaignFactory.create(
        account=account, name="Spring {{ sale }} <3", **{status: True}, **fields
    )
    return campaign


def tripped(account: Account) -> Campaign:
    """A campaign that a brake has just paused."""
    campaign = campaign_of(account, "sending")
    assert health.pause(campaign.pk, REASON)
    return campaign


def queued(kind: str = "") -> list[Send]:
    return list(Send.objects.filter(job_id__contains=f":notice:{kind}").order_by("pk"))


def rendered(send: Send) -> Any:
    assert send.content is not None
    context = {**(send.context or {}), "email": send.email, "account": send.content.account_fields}
    return Renderer(send.content).render(context)


def backdate(model: Any, **ages: timedelta) -> None:
    model.objects.update(**{name: timezone.now() - age for name, age in ages.items()})


def test_they_go_by_the_road_that_the_settings_name(account: Account) -> None:
    tripped(account)
    given = {**settings.SENDONCE, "NOTICES_TRANSPORT": "staff"}
    with override_settings(SENDONCE=given):
        assert notices.tell() == 1
    assert [send.transport for send in queued()] == ["staff"]


# --- a brake ---------------------------------------------------------------------------------


def test_a_pause_is_told_once_with_the_reason_and_the_way_to_it(account: Account) -> None:
    campaign = tripped(account)
    assert notices.tell() == 1
    assert notices.tell() == 0
    (send,) = queued()
    assert send.job_id == (
        f"message:{account.pk}:notice:paused:{campaign.pk}:1:{account.members.get().pk}"
    )
    assert (send.email, send.campaign, send.status) == ("Ann@example.org", None, "queued")
    assert send.expires is not None
    assert timedelta(hours=47) < send.expires - timezone.now() <= timedelta(days=2)
    message = rendered(send)
    assert message.subject == "Paused: Spring {{ sale }} <3"
    assert f'The campaign "Spring {{{{ sale }}}} <3" was paused: {REASON}.' in message.text
    assert "Nothing more of it leaves until somebody resumes it." in message.text
    assert "nobody was suppressed" in message.text
    url = f"http://127.0.0.1:8000/admin/sendonce_campaigns/campaign/{campaign.pk}/change/"
    assert url in message.text
    assert f'<a href="{url}">' in message.html
    assert "blocked &lt;us&gt;" in message.html
    assert "Tea &amp; Sons" in message.html


def test_the_next_pause_is_told_again(account: Account) -> None:
    campaign = tripped(account)
    notices.tell()
    lifecycle.resume(campaign)
    health.look()
    assert health.pause(campaign.pk, "25 of 80 addresses are dead (31.25 %; the limit is 5 %)")
    assert notices.tell() == 1
    assert "Look at where it comes from" in rendered(queued()[1]).text


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (lifecycle.resume, "Somebody has resumed it since."),
        (lifecycle.cancel, "Somebody has canceled it since."),
    ],
)
def test_what_is_told_late_says_how_it_is_now(account: Account, verb: Any, words: str) -> None:
    campaign = tripped(account)
    verb(campaign)
    assert notices.tell() == 1
    assert words in rendered(queued()[0]).text


def test_a_pause_by_staff_is_no_news(account: Account) -> None:
    lifecycle.pause(campaign_of(account, "sending"))
    assert notices.tell() == 0


def test_it_goes_to_active_members_with_an_address_each_address_once(account: Account) -> None:
    account.members.add(
        StaffFactory.create(email=""),
        StaffFactory.create(email="gone@example.org", is_active=False),
        StaffFactory.create(email="ann@EXAMPLE.org"),
        StaffFactory.create(email="no address"),
        StaffFactory.create(email="ben@example.org"),
    )
    StaffFactory.create(email="stranger@example.org")
    tripped(account)
    assert notices.tell() == 2
    assert [s.email for s in queued()] == ["Ann@example.org", "ben@example.org"]
    assert Content.objects.filter(sends__in=queued()).distinct().count() == 1


@pytest.mark.parametrize("members", [0, 1])
def test_who_has_no_members_or_wants_no_notices_gets_none(account: Account, members: int) -> None:
    if members:
        Account.objects.update(notices=False)
    else:
        account.members.clear()
    tripped(account)
    campaign_of(account, "sent")
    pause("default", None, LOGIN)
    assert notices.tell() == 0
    # Nor later, about what is over by then.
    Account.objects.update(notices=True)
    account.members.add(StaffFactory.create())
    TransportPause.objects.all().delete()
    assert notices.tell() == 0


@override_settings(ROOT_URLCONF="subscribers.urls")
def test_a_site_without_admin_gets_no_link(account: Account) -> None:
    tripped(account)
    assert notices.tell() == 1
    message = rendered(queued()[0])
    assert "http" not in message.text
    assert "<a " not in message.html


# --- sent ------------------------------------------------------------------------------------


def test_a_campaign_that_is_sent_is_told_with_its_counts(account: Account) -> None:
    campaign = campaign_of(account, "sent", audience=4)
    for state in ("sent", "sent", "bounced", "in_doubt"):
        SendFactory.create(campaign=campaign, **{state: True})
    assert notices.tell() == 1
    assert notices.tell() == 0
    text = rendered(queued("sent:")[0]).text
    assert "is sent. Of 4 people:\n\n2 accepted\n1 bounced: " in text
    assert "1 in doubt: handed over, and no answer came" in text
    assert "treat as sent" in text
    assert "failed" not in text


def test_a_worker_that_died_before_the_notice_loses_none_but_old_ones_are_no_news(
    account: Account,
) -> None:
    campaign_of(account, "sent")
    backdate(Campaign, finished_at=timedelta(hours=25))
    assert notices.tell() == 0
    backdate(Campaign, finished_at=timedelta(hours=23))
    assert notices.tell() == 1


def test_a_campaign_that_is_sent_again_is_not_told_again(account: Account) -> None:
    campaign = campaign_of(account, "sent")
    notices.tell()
    Campaign.objects.filter(pk=campaign.pk).update(status="sending", finished_at=None)
    assert lifecycle.finish(campaign)
    assert notices.tell() == 0


@pytest.mark.django_db(transaction=True)
def test_nothing_is_told_when_the_worker_dies_half_way_and_everything_afterwards(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.members.add(StaffFactory.create(email="ben@example.org"))
    campaign_of(account, "sent")

    def dies_at_the_second(*args: Any, **given: Any) -> Send:
        if given["to"].startswith("ben"):
            raise KeyboardInterrupt
        return transactional.enqueue(*args, **given)

    with monkeypatch.context() as patched:
        patched.setattr("sending.notices.enqueue", dies_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            notices.tell()
    assert queued() == []
    assert notices.tell() == 2


@pytest.mark.django_db(transaction=True)
def test_workers_that_tell_at_once_queue_each_notice_once(account: Account) -> None:
    tripped(account)
    campaign_of(account, "sent")
    pause("default", None, LOGIN)
    with Race() as race:
        with transaction.atomic():
            # All of them have seen that it is due before the first may tell.
            CampaignHealth.objects.select_for_update().get()
            racers = [race.start(notices.tell) for _ in range(3)]
            for racer in racers:
                racer.wait_until_blocked()
        told = [racer.result() for racer in racers]
    assert len(queued()) == len(queued("paused")) + len(queued("sent")) + len(queued("transport"))
    assert [len(queued(kind)) for kind in ("paused", "sent", "transport")] == [1, 1, 1]
    assert sum(told) >= 3
    assert notices.tell() == 0


# --- in doubt --------------------------------------------------------------------------------


def in_doubt(campaign: Campaign, age: timedelta, **fields: Any) -> Send:
    send: Send = SendFactory.create(
        campaign=campaign, in_doubt=True, handed_at=timezone.now() - age, **fields
    )
    return send


def test_held_doubt_is_told_when_no_answer_can_come_any_more(account: Account) -> None:
    campaign = campaign_of(account, "sending")
    in_doubt(campaign, timedelta(minutes=9))
    in_doubt(campaign, timedelta(minutes=11), settle_at=timezone.now() + timedelta(minutes=1))
    assert notices.tell() == 0, "one may be answered yet, the other settles itself"
    backdate(Send, handed_at=timedelta(minutes=11))
    assert notices.tell() == 1
    assert "1 message is in doubt in the campaign" in rendered(queued()[0]).text


def test_doubt_is_told_once_a_day_and_only_when_more_has_come(account: Account) -> None:
    campaign = campaign_of(account, "sending")
    in_doubt(campaign, timedelta(minutes=11))
    assert notices.tell() == 1
    in_doubt(campaign, timedelta(minutes=11))
    assert notices.tell() == 0

    def told_ago(hours: float) -> None:
        at = (timezone.now() - timedelta(hours=hours)).isoformat()
        CampaignHealth.objects.update(base={"told_doubt": at})
        Send.objects.filter(job_id__contains="doubt").update(job_id=f"of {at}")

    told_ago(23.9)
    assert notices.tell() == 0
    told_ago(24.1)
    assert notices.tell() == 1
    assert "2 messages are in doubt" in rendered(queued()[0]).text
    told_ago(30)
    backdate(Send, handed_at=timedelta(hours=40))
    assert notices.tell() == 0, "nobody is told again of the same rows"


def test_the_notice_that_it_is_sent_tells_of_the_doubt_too(account: Account) -> None:
    in_doubt(campaign_of(account, "sent"), timedelta(minutes=11))
    assert notices.tell() == 1
    assert notices.tell() == 0
    assert len(queued("sent:")) == 1


# --- rates of what is sent -------------------------------------------------------------------


def test_complaints_about_a_campaign_that_is_sent_are_told_once(account: Account) -> None:
    campaign = campaign_of(account, "sent")
    notices.tell()
    CampaignHealth.objects.filter(pk=campaign.pk).update(accepted=1000, complained=2)
    assert notices.tell() == 0
    CampaignHealth.objects.filter(pk=campaign.pk).update(complained=3)
    assert notices.tell() == 1
    CampaignHealth.objects.filter(pk=campaign.pk).update(complained=30)
    assert notices.tell() == 0
    campaign.refresh_from_db()
    assert campaign.status == "sent"
    assert "3 complaints about 1000 messages" in rendered(queued("rates:")[0]).text


# --- transports ------------------------------------------------------------------------------


def test_a_paused_transport_is_told_when_it_lasts(account: Account) -> None:
    AccountFactory.create(transport="other", members=[StaffFactory.create()])
    pause("default", None, REFUSED)
    assert notices.tell() == 0
    backdate(TransportPause, since=timedelta(minutes=6))
    assert notices.tell() == 1
    assert notices.tell() == 0
    message = rendered(queued()[0])
    assert message.subject == "Paused: transport default"
    assert "The transport default can't be reached." in message.text
    assert "It said: connection refused" in message.text
    assert "/admin/sendonce_sending/transportpause/" in message.text


def test_errors_in_a_row_are_told_when_they_last(account: Account) -> None:
    pause("default", None, REFUSED, stage=ERRORS, words="10 errors in a row: http: 500 oops")
    assert notices.tell() == 0
    backdate(TransportPause, since=timedelta(minutes=6))
    assert notices.tell() == 1
    assert "fails one message after another" in rendered(queued()[0]).text


@pytest.mark.parametrize(
    "answer", [LOGIN, Answer(Stage.HTTP, 401, "", "bad key"), Answer(Stage.MAIL, 530, "", "login")]
)
def test_a_refused_login_is_told_at_once(account: Account, answer: Answer) -> None:
    pause("default", None, answer)
    assert notices.tell() == 1
    text = rendered(queued()[0]).text
    assert "refuses the login" in text
    assert "Correct the login in the settings" in text


def test_a_login_that_is_refused_for_now_may_yet_work(account: Account) -> None:
    pause("default", None, Answer(Stage.AUTH, 454, "4.7.0", "try later"))
    assert notices.tell() == 0


def test_all_who_use_it_are_told_each_person_once(account: Account) -> None:
    ann = account.members.get()
    AccountFactory.create(members=[ann, StaffFactory.create(email="ben@example.org")])
    AccountFactory.create(notices=False, members=[StaffFactory.create()])
    pause("default", None, LOGIN)
    assert notices.tell() == 2
    assert sorted(s.email or "" for s in queued()) == ["Ann@example.org", "ben@example.org"]


def test_a_pause_of_one_account_is_told_to_that_one(account: Account) -> None:
    AccountFactory.create(members=[StaffFactory.create()])
    pause("default", account.pk, Answer(Stage.MAIL, 550, "5.7.1", "not allowed"))
    backdate(TransportPause, since=timedelta(minutes=6))
    assert notices.tell() == 1
    assert "refuses the sender address of Tea & Sons" in rendered(queued()[0]).text


def test_a_transport_that_comes_and_goes_is_told_once_an_hour(account: Account) -> None:
    for hour, told in ((0, 1), (0, 0), (1, 1)):
        TransportPause.objects.all().delete()
        pause("default", None, LOGIN)
        since = timezone.now().replace(minute=5) - timedelta(hours=5 - hour)
        TransportPause.objects.update(since=since)
        assert notices.tell() == told


# --- no loop ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["failed", "bounced", "in_doubt", "suppressed"])
def test_the_end_of_a_notice_is_no_news(account: Account, end: str) -> None:
    tripped(account)
    notices.tell()
    (send,) = queued()
    given: dict[str, Any] = {"status": end, "handed_at": Now() - timedelta(hours=1), "attempts": 1}
    if end == "in_doubt":
        given["claim_token"] = "00000000-0000-4000-8000-000000000001"
    Send.objects.filter(pk=send.pk).update(**given)
    assert notices.tell() == 0
    assert len(queued()) == 1
    assert CampaignHealth.objects.count() == 1


# --- words -----------------------------------------------------------------------------------


def test_counts_read_as_people_say_them() -> None:
    counts = dict.fromkeys(Send.Status.values, 0) | {"audience": 1, "sent": 1}
    assert "Of 1 person:\n\n1 accepted" in notice_texts.sent("x", counts).words
    counts |= {"audience": 12_345, "sent": 12_000, "failed": 345}
    assert (
        "Of 12,345 people:\n\n12,000 accepted\n345 failed" in notice_texts.sent("x", counts).words
    )


def test_a_campaign_to_nobody_is_sent_too() -> None:
    counts = dict.fromkeys([*Send.Status.values, "audience"], 0)
    assert "nobody was left to write to" in notice_texts.sent("x", counts).words


def test_base_url_is_the_settings() -> None:
    with override_settings(SENDONCE={**settings.SENDONCE, "BASE_URL": "https://news.example.org"}):
        assert notices.admin_url("sendonce_sending_transportpause_changelist") == (
            "https://news.example.org/admin/sendonce_sending/transportpause/"
        )
