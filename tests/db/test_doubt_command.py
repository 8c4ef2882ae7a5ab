"""``resolve_doubt``: what an operator decides about doubt, and what comes back."""

from __future__ import annotations

import getpass
from datetime import timedelta

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import DeliveryEvent, Send
from subscribers.command_line import who
from subscribers.models import AuditEvent
from tests.factories import StaffFactory

from .commands import campaign_with, refused, run

pytestmark = pytest.mark.django_db


def statuses(campaign: Campaign) -> dict[str, int]:
    found: dict[str, int] = {}
    for status in Send.objects.filter(campaign=campaign).values_list("status", flat=True):
        found[status] = found.get(status, 0) + 1
    return found


def test_treat_as_sent_says_how_many_and_who() -> None:
    ann = StaffFactory.create(username="ann")
    campaign = campaign_with({"in_doubt": 3, "failed": 1, "sent": 1})
    out = run(
        "resolve_doubt", "--campaign", str(campaign.pk), "--treat-as-sent", "--by", "ann"
    )  # fmt: skip
    assert out == "3 rows treated as sent.\n"
    assert statuses(campaign) == {"sent": 4, "failed": 1}
    assert set(DeliveryEvent.objects.values_list("kind", "by_name")) == {("treat_as_sent", "ann")}
    event = AuditEvent.objects.get()
    assert (event.verb, event.account, event.by, event.by_name, event.from_address) == (
        "send.treat_as_sent", campaign.account, ann, "ann", None,
    )  # fmt: skip
    detail = {"chosen": 3, "decided": 3, "campaigns": [campaign.pk], "via": who()}
    assert event.detail == detail


@pytest.mark.parametrize(
    ("user", "by"),
    [
        ("maria", "maria (command line)"),
        ("\udcff" + "m" * 500, "?" + "m" * 99 + " (command line)"),
        (OSError("nobody"), "command line"),
        (KeyError("uid"), "command line"),
    ],
)
def test_whoever_types_it_is_remembered_by_the_systems_name(
    user: str | Exception, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getuser() -> str:
        if isinstance(user, Exception):
            raise user
        return user

    monkeypatch.setattr(getpass, "getuser", getuser)
    campaign = campaign_with({"in_doubt": 1})
    run("resolve_doubt", "--campaign", str(campaign.pk), "--treat-as-sent")
    assert DeliveryEvent.objects.get().by_name == by
    event = AuditEvent.objects.get()
    assert (event.by, event.by_name, event.detail.get("via")) == (None, by, None)


def test_rows_whose_sender_may_live_are_left_and_that_is_said() -> None:
    campaign = campaign_with({"in_doubt": 3})
    held = Send.objects.filter(campaign=campaign).first()
    assert held is not None
    Send.objects.filter(pk=held.pk).update(lease_until=timezone.now() + timedelta(minutes=1))
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again")
    assert out == (
        "2 rows to be sent again.\n1 row left as before: "
        "the sender that held it may still live, try again in a minute.\n"
    )


def test_send_again_reopens_and_leaves_what_failed() -> None:
    campaign = campaign_with({"in_doubt": 1, "failed": 2}, sending=False, sent=True)
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again")
    assert out == "1 row to be sent again.\n"
    assert statuses(campaign) == {"queued": 1, "failed": 2}
    campaign.refresh_from_db()
    assert campaign.status == "sending"
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again", "--failed")
    assert out == "2 rows to be sent again.\n"
    assert statuses(campaign) == {"queued": 3}


def test_one_address_only() -> None:
    campaign = campaign_with({"in_doubt": 2, "sent": 1})
    chosen = Send.objects.filter(campaign=campaign, status="in_doubt").first()
    assert chosen is not None
    number = str(campaign.pk)
    assert chosen.email is not None
    out = run(
        "resolve_doubt", "--campaign", number, "--treat-as-sent", "--address", chosen.email.upper()
    )
    assert out == "1 row treated as sent.\n"
    chosen.refresh_from_db()
    assert chosen.status == "sent"
    out = run("resolve_doubt", "--campaign", number, "--treat-as-sent", "--address", chosen.email)
    assert out == "0 rows treated as sent.\n"


def test_a_dry_run_changes_nothing() -> None:
    campaign = campaign_with({"in_doubt": 2, "failed": 1})
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again", "--dry-run")
    assert out == "2 rows to be sent again. Dry run: nothing was changed.\n"
    assert not AuditEvent.objects.exists()
    assert statuses(campaign) == {"in_doubt": 2, "failed": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say one of --send-again and --treat-as-sent"),
        (["--send-again", "--treat-as-sent"], "say one of"),
        (["--treat-as-sent", "--failed"], "--failed goes with --send-again"),
        (["--treat-as-sent", "--by", "nobody"], "there is no user 'nobody'"),
        (["--treat-as-sent", "--address", "x@example.org"], "has no row for x@example.org"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], words: str) -> None:
    campaign = campaign_with({"in_doubt": 1, "failed": 1})
    told = refused("resolve_doubt", "--campaign", str(campaign.pk), *arguments, code=2)
    assert words in told
    assert statuses(campaign) == {"in_doubt": 1, "failed": 1}


def test_the_campaign_must_be_named_and_known() -> None:
    assert "--campaign is missing" in refused("resolve_doubt", "--send-again", code=2)
    refused("resolve_doubt", "--send-again", "--campaign", "77", code=2)


def test_a_canceled_campaign_is_not_sent_again_but_may_be_closed() -> None:
    campaign = campaign_with({"in_doubt": 1}, sending=False, canceled=True)
    number = str(campaign.pk)
    told = refused("resolve_doubt", "--campaign", number, "--send-again", code=2)
    assert told == f"campaign {number} is canceled: nothing of it is sent again"
    assert run("resolve_doubt", "--campaign", number, "--treat-as-sent").startswith("1 row ")
