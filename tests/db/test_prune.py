"""``prune``: old rows become counts, and what was promised stays true."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from campaigns import lifecycle
from campaigns.errors import WrongState
from campaigns.gate import enter_exclusive
from campaigns.models import Campaign
from sending import build, doubt, ledger, pruning, sql
from sending.models import ArchivedCount, DeliveryEvent, Send
from sending.story import story
from sending.story_text import story_lines
from tests.factories import SendFactory

from .commands import ONE_OF_EACH, campaign_with, refused, run
from .racing import Racer
from .rows import assert_identity, campaign_to

YEAR = timedelta(days=365)
#: What ends a row, without anything in doubt.
CLOSED = ("sent", "bounced", "failed", "suppressed", "canceled")
MANY = {"sent": 7, "bounced": 2, "failed": 1, "suppressed": 2}

#: Why some stay.
STAY = " (in doubt, open, or with an event newer than that)"


def old(counts: dict[str, int], **given: Any) -> Campaign:
    """A campaign that ended a year ago."""
    campaign = campaign_with(counts, **{"sending": False, "sent": True, **given})
    age(campaign)
    return campaign


def age(campaign: Campaign, by: timedelta = YEAR) -> None:
    """All that happened to it happened so much earlier."""
    then = timezone.now() - by
    Campaign.objects.filter(pk=campaign.pk).update(created=then, approved_at=then)
    Campaign.objects.filter(pk=campaign.pk, started_at__isnull=False).update(started_at=then)
    Campaign.objects.filter(pk=campaign.pk, finished_at__isnull=False).update(finished_at=then)
    rows = Send.objects.filter(campaign=campaign)
    rows.filter(handed_at__isnull=False).update(handed_at=then)
    rows.filter(sent_at__isnull=False).update(sent_at=then)
    DeliveryEvent.objects.filter(send__campaign=campaign).update(at=then)


def prune(campaign: Campaign, *, days: int = 180, batch: int = 3) -> pruning.Step:
    *_, last = pruning.prune(campaign.pk, days=days, batch=batch)
    return last


def archived(campaign: Campaign) -> dict[tuple[str, str], int]:
    rows = ArchivedCount.objects.filter(campaign=campaign)
    return {
        (status, reason): n for status, reason, n in rows.values_list("status", "reason", "number")
    }


# --- counting --------------------------------------------------------------------------------


@pytest.mark.django_db
def test_rows_become_counts_by_status_and_reason_and_the_identity_holds() -> None:
    campaign = old(MANY)
    Send.objects.filter(campaign=campaign, status="sent").order_by("pk").first().delete()  # type: ignore[union-attr]
    SendFactory.create(campaign=campaign, sent=True, reason="treated_as_sent")
    age(campaign)
    before = ledger.counts(campaign)
    step = prune(campaign)
    assert (step.looked, step.pruned, step.done, step.busy) == (12, 12, True, False)
    assert not Send.objects.exists()
    assert ledger.counts(campaign) == before
    assert archived(campaign) == {
        ("sent", ""): 6,
        ("sent", "treated_as_sent"): 1,
        ("bounced", ""): 2,
        ("failed", ""): 1,
        ("suppressed", "suppressed"): 2,
    }
    found = ledger.balance(campaign.pk)
    assert found.holds
    assert found.archived == {"sent": 7, "bounced": 2, "failed": 1, "suppressed": 2}


@pytest.mark.django_db
def test_a_second_time_adds_to_the_counts() -> None:
    campaign = old({"sent": 2})
    prune(campaign)
    SendFactory.create(campaign=campaign, sent=True)
    Campaign.objects.filter(pk=campaign.pk).update(audience=3)
    age(campaign)
    assert prune(campaign).pruned == 1
    assert archived(campaign) == {("sent", ""): 3}
    assert_identity(campaign)


@pytest.mark.django_db
def test_events_go_with_their_rows_and_others_stay() -> None:
    campaign, other = old({"bounced": 2}), old({"bounced": 1})
    for send in Send.objects.all():
        DeliveryEvent.objects.create(
            send=send, account=send.account, kind="bounced", at=timezone.now() - YEAR
        )
    prune(campaign)
    assert [event.send.campaign_id for event in DeliveryEvent.objects.all()] == [other.pk]  # type: ignore[union-attr]


# --- what stays ------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("state", sorted(set(ONE_OF_EACH) - set(CLOSED)))
def test_what_is_open_or_in_doubt_stays(state: str) -> None:
    campaign = old({state: 1, "sent": 1}, sent=False, canceled=True)
    assert prune(campaign).pruned == 1
    assert Send.objects.get().status == {"handed_over": "sending"}.get(state, state)
    assert_identity(campaign)


@pytest.mark.django_db
def test_a_refusal_with_an_earlier_hand_over_in_doubt_stays() -> None:
    campaign = old({"failed": 2})
    doubted = Send.objects.order_by("pk").first()
    assert doubted is not None
    Send.objects.filter(pk=doubted.pk).update(doubt_tokens=["0" * 32])
    prune(campaign)
    assert Send.objects.get() == doubted


@pytest.mark.django_db
def test_a_row_that_was_spoken_of_lately_stays() -> None:
    campaign = old({"sent": 3})
    told, late, _ = Send.objects.order_by("pk")
    DeliveryEvent.objects.create(send=told, account=told.account, kind="complained")
    Send.objects.filter(pk=late.pk).update(sent_at=timezone.now())
    assert prune(campaign).pruned == 1
    assert set(Send.objects.all()) == {told, late}
    assert_identity(campaign)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "approved", "sending", "paused"])
def test_a_campaign_that_is_not_over_is_left_alone(status: str) -> None:
    trait = {} if status == "draft" else {status: True}
    campaign = old({"sent": 2}, sent=False, **trait)
    assert campaign.pk not in [found.id for found in pruning.old_campaigns(days=1)]
    assert prune(campaign).pruned == 0


@pytest.mark.django_db
def test_a_campaign_that_ended_lately_is_left_alone() -> None:
    campaign = campaign_with({"sent": 2}, sending=False, sent=True)
    assert not pruning.old_campaigns(days=180)
    assert prune(campaign).pruned == 0
    age(campaign, timedelta(days=179))
    assert not pruning.old_campaigns(days=180)
    age(campaign, timedelta(days=181))
    assert prune(campaign).pruned == 2


@pytest.mark.django_db
def test_messages_of_no_campaign_are_never_pruned() -> None:
    SendFactory.create(transactional=True, sent=True)
    Send.objects.update(sent_at=timezone.now() - YEAR, handed_at=timezone.now() - YEAR)
    run("prune")
    assert Send.objects.count() == 1


# --- nobody gets it twice --------------------------------------------------------------------


@pytest.mark.django_db
def test_nothing_is_built_again_when_a_row_that_stayed_is_sent_again() -> None:
    campaign = campaign_to(3)
    build.build(campaign.pk, size=100)
    kept, *_ = rows = list(Send.objects.order_by("pk"))
    Send.objects.filter(pk__in=[row.pk for row in rows]).update(
        status="sent", sent_at=timezone.now(), handed_at=timezone.now()
    )
    assert lifecycle.finish(campaign)
    age(campaign)
    Send.objects.filter(pk=kept.pk).update(status="in_doubt", claim_token="1" * 32)
    assert prune(campaign).pruned == 2

    assert doubt.resolve([kept], doubt.SEND_AGAIN) == 1
    campaign.refresh_from_db()
    assert campaign.status == "sending"
    assert campaign.pk not in build.unbuilt()
    assert build.build_chunk(campaign.pk, size=100) is None
    assert list(Send.objects.values_list("pk", "status")) == [(kept.pk, "queued")]
    assert_identity(campaign)
    # Sending again: none of its rows is pruned meanwhile.
    assert prune(campaign).pruned == 0


@pytest.mark.django_db
def test_what_was_archived_cannot_be_sent_again() -> None:
    campaign = old({"failed": 1, "in_doubt": 1})
    rows = list(Send.objects.order_by("pk"))
    prune(campaign)
    failed = next(row for row in rows if row.status == "failed")
    assert doubt.resolve([failed], doubt.SEND_AGAIN, failed=True) == 0
    campaign.refresh_from_db()
    assert campaign.status == "sent"
    with pytest.raises(WrongState):
        lifecycle.resume(campaign)


@pytest.mark.django_db
def test_a_canceled_campaign_whose_build_was_cut_short_is_not_built_on() -> None:
    campaign = campaign_to(4)
    build.build_chunk(campaign.pk, size=2)
    lifecycle.cancel(campaign)
    age(campaign)
    assert prune(campaign).pruned == 2
    assert build.build_chunk(campaign.pk, size=2) is None
    assert not Send.objects.exists()
    assert_identity(campaign)


@pytest.mark.django_db
def test_a_campaign_with_archived_rows_cannot_be_deleted() -> None:
    campaign = old({"sent": 1})
    prune(campaign)
    with pytest.raises(Exception, match="protected"):
        Campaign.objects.get(pk=campaign.pk).delete()


# --- races -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_it_waits_for_nobody_who_decides() -> None:
    campaign = old({"sent": 2})
    with transaction.atomic(), connection.cursor() as cursor:
        enter_exclusive(cursor, campaign.pk)
        racer = Racer(lambda: prune(campaign))
        racer.start()
        assert racer.result().busy
    assert Send.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_news_that_come_while_it_waits_for_the_row_keep_it() -> None:
    campaign = old({"sent": 2})
    told = Send.objects.order_by("pk")[0]
    with transaction.atomic():
        Send.objects.select_for_update().get(pk=told.pk)
        racer = Racer(lambda: prune(campaign))
        racer.start()
        racer.wait_until_blocked()
        DeliveryEvent.objects.create(send=told, account=told.account, kind="complained")
    assert racer.result().pruned == 1
    assert Send.objects.get() == told
    assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_holds_for_long_is_for_another_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = old({"sent": 2})
    monkeypatch.setattr(sql, "RELAXED", sql.RELAXED.replace("10s", "50ms"))
    with transaction.atomic():
        Send.objects.select_for_update().get(pk=Send.objects.latest("pk").pk)
        racer = Racer(lambda: prune(campaign, batch=1))
        racer.start()
        step = racer.result()
    assert (step.pruned, step.busy, step.done) == (1, True, False)
    assert_identity(campaign)
    assert prune(campaign).pruned == 1


@pytest.mark.django_db(transaction=True)
def test_two_at_once_count_every_row_once() -> None:
    campaign = old({"sent": 20, "bounced": 10})
    racers = [Racer(lambda: prune(campaign, batch=2)) for _ in range(2)]
    for racer in racers:
        racer.start()
    steps = [racer.result() for racer in racers]
    assert sum(step.pruned for step in steps) == 30
    assert not any(step.busy for step in steps)
    assert archived(campaign) == {("sent", ""): 20, ("bounced", ""): 10}
    assert_identity(campaign)


# --- the command -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_command_says_what_it_did() -> None:
    assert run("prune") == "No campaign that ended 180 days ago or earlier has rows left.\n"
    first = old({"sent": 3, "in_doubt": 1}, name="Spring")
    second = old({"sent": 1}, name="Summer")
    told = run("prune", "--dry-run", "--older-than", "30")
    assert told.splitlines() == [
        f"campaign {first.pk} (Spring): 3 rows of 4, 1 stay{STAY}",
        f"campaign {second.pk} (Summer): 1 row of 1",
        "4 rows would be archived. Dry run: nothing was changed.",
    ]
    assert Send.objects.count() == 5
    assert run("prune", "--campaign", str(first.pk), "--batch", "2").splitlines() == [
        f"campaign {first.pk} (Spring): 3 rows, 1 stay{STAY}",
        "3 rows archived.",
    ]
    assert Send.objects.count() == 2
    assert "4 archived" not in run("ledger")
    lines = run("ledger", "--campaign", str(first.pk)).splitlines()
    assert any("sent" in line and "3 archived by prune" in line for line in lines)
    assert "every recipient is accounted for" in lines[-1]
    assert run("ledger").splitlines()[1].split()[-2:] == ["0", "3"]


@pytest.mark.django_db
def test_ctrl_c_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = old({"sent": 3}), old({"sent": 5})
    slices = pruning.prune

    def interrupted(campaign_id: int, **given: Any) -> Any:
        for step in slices(campaign_id, **given):
            yield step
            if campaign_id == second.pk:
                raise KeyboardInterrupt

    monkeypatch.setattr(pruning, "prune", interrupted)
    assert refused("prune", "--batch", "2", code=130) == "stopped; 5 rows archived"
    assert Send.objects.count() == 3
    assert archived(first) == {("sent", ""): 3}
    assert archived(second) == {("sent", ""): 2}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("--older-than", given) for given in ("0", "-1", "x", "1.5", "٣", "9" * 30, "")),
        *(("--batch", given) for given in ("0", "x", "20001")),
    ],
)
def test_bad_numbers_exit_2_and_change_nothing(option: str, given: str) -> None:
    old({"sent": 1})
    told = refused("prune", f"{option}={given}", code=2)
    assert told.startswith(f"{option} is a whole number from 1 to ")
    assert Send.objects.count() == 1


@pytest.mark.django_db
def test_a_campaign_that_is_not_over_or_unknown_exits_2() -> None:
    campaign = campaign_with({"sent": 1})
    assert refused("prune", f"--campaign={campaign.pk}", code=2) == (
        f"campaign {campaign.pk} is sending: only what is over is pruned"
    )
    ended = campaign_with({"sent": 1}, sending=False, sent=True)
    assert run("prune", f"--campaign={ended.pk}", "--older-than=1") == (
        f"Campaign {ended.pk} did not end 1 day ago or earlier, or has no rows left.\n"
    )
    assert refused("prune", "--campaign=99999", code=2) == "there is no campaign '99999'"


# --- pages -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_story_says_that_campaigns_were_archived() -> None:
    campaign = old({"sent": 1})
    send = Send.objects.get()
    prune(campaign)
    told = story(send.email or "")
    assert told.archived == 1
    lines = "\n".join(story_lines(told, timezone.now()))
    assert "1 older campaign was archived: who got them is not kept" in lines
    assert "No message was ever made" not in lines
    # Of an address that nobody knows nothing is said.
    assert story("stranger@example.org").archived == 0


@pytest.mark.django_db
def test_the_lists_of_the_admin_say_so(admin_client: Client) -> None:
    campaign, other = old({"sent": 2}), old({"sent": 1})
    prune(campaign)
    listed = reverse("admin:sendonce_sending_send_changelist")
    page = admin_client.get(listed, {"campaign": campaign.pk}).content.decode()
    assert "2 rows of this campaign were archived" in page
    for query in ({}, {"campaign": other.pk}, {"campaign": "x"}):
        assert "were archived" not in admin_client.get(listed, query).content.decode()
    counts = admin_client.get(reverse("admin:sendonce_sending_archivedcount_changelist"))
    assert counts.status_code == 200
    assert campaign.name in counts.content.decode()
