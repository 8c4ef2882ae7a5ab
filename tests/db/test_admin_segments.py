"""Segments in the admin: their numbers, and people put in and taken out by staff."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending.models import Send
from subscribers.models import AuditEvent, Membership, MembershipChange, Segment, Subscriber
from subscribers.segments import acts as segment_acts
from subscribers.segments import members as segments
from tests.db.admin_pages import change, member_client, run_action, url
from tests.factories import (
    CampaignFactory,
    MembershipChangeFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

HTML = "<script>alert(1)</script>"


@pytest.fixture
def segment() -> Segment:
    found: Segment = SegmentFactory.create(name="Readers", account__timezone="Europe/Paris")
    return found


@pytest.fixture
def boss(segment: Segment) -> Client:
    """Everything may be done to the account of ``segment``, and nothing to others."""
    return member_client(segment.account)[0]


def words(answer: Any) -> str:
    """What a page says, without its marks."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


def present(segment: Segment) -> set[str]:
    rows = Membership.objects.filter(segment=segment, left_at__isnull=True)
    return set(rows.values_list("subscriber__email", flat=True))


# --- the list ------------------------------------------------------------------------------------


def test_the_list_counts_the_people_of_its_page_in_one_statement(
    boss: Client, segment: Segment
) -> None:
    MembershipFactory.create_batch(3, segment=segment)
    MembershipFactory.create(segment=segment, left=True)
    SegmentFactory.create(account=segment.account, name="Nobody")
    boss.get(url(Segment, "changelist"))
    with CaptureQueriesContext(connection) as queries:
        answer = boss.get(url(Segment, "changelist"))
    counting = [q for q in queries if "membership" in q["sql"] and "count(*)" in q["sql"].lower()]
    assert len(counting) == 1
    shown = {row.name: row.present for row in answer.context["cl"].result_list}
    assert shown == {"Readers": 3, "Nobody": 0}


# --- the page ------------------------------------------------------------------------------------


def test_the_page_of_a_segment_tells_its_people(boss: Client, segment: Segment) -> None:
    ann = SubscriberFactory.create(
        account=segment.account, segments=[segment], email="ann@example.org"
    )
    bob = SubscriberFactory.create(account=segment.account, segments=[segment])
    SuppressionFactory.create(account=segment.account, email=bob.email)
    SubscriberFactory.create(account=segment.account, segments=[segment], pending=True)
    MembershipChangeFactory.create(
        segment=segment, subscriber__email="eve@example.org", source=f"said {HTML}"
    )
    answer = boss.get(url(Segment, "change", segment.pk))
    text = words(answer)
    assert "3 people" in text
    assert "a campaign reaches now 1 suppressed 1" in text
    assert "2 of them have confirmed" in text
    assert ann.email in text
    assert "eve@example.org left said" in text
    assert HTML not in answer.content.decode()
    today = timezone.localtime(timezone.now(), answer.context["zone"]).date()
    assert answer.context["moves"][0].since == today
    assert (answer.context["moves"][0].joined, answer.context["moves"][0].left) == (3, 1)
    assert len(answer.context["chart"].bars) == 2
    by_week = boss.get(url(Segment, "change", segment.pk), {"by": "week"})
    assert len(by_week.context["moves"]) == 26
    assert len(boss.get(url(Segment, "change", segment.pk), {"by": "x"}).context["moves"]) == 30


def test_an_empty_segment_has_a_page(boss: Client, segment: Segment) -> None:
    text = words(boss.get(url(Segment, "change", segment.pk)))
    assert "Nobody is in it." in text
    assert "Nobody joined or left" in text


def test_names_of_people_and_buttons_are_for_those_who_may(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, segments=[segment])
    MembershipChangeFactory.create(segment=segment, subscriber=person)
    user = StaffFactory.create()
    segment.account.members.add(user)
    user.user_permissions.set(Permission.objects.filter(codename="view_segment"))
    client = Client()
    client.force_login(user)
    answer = client.get(url(Segment, "change", segment.pk))
    assert "1 person" in words(answer)
    assert person.email not in answer.content.decode()
    assert answer.context["people_links"] == []
    for page in ("add_people", "remove_people"):
        assert client.get(url(Segment, page, segment.pk)).status_code == 403
        answer = client.post(url(Segment, page, segment.pk), {"addresses": person.email})
        assert answer.status_code == 403


def test_a_saved_segment_stays_as_it_was_typed(boss: Client, segment: Segment) -> None:
    form = {"name": HTML, "slug": segment.slug, "description": "", "public": "on"}
    assert change(boss, segment, form).status_code == 302
    for page in ("change", "add_people", "remove_people"):
        answer = boss.get(url(Segment, page, segment.pk))
        assert answer.status_code == 200
        assert HTML not in answer.content.decode()


# --- adding --------------------------------------------------------------------------------------


def test_adding_a_pasted_list_says_what_became_of_each(boss: Client, segment: Segment) -> None:
    account = segment.account
    for email in ("ann@example.org", "bob@example.org"):
        SubscriberFactory.create(account=account, email=email)
    SubscriberFactory.create(account=account, email="in@example.org", segments=[segment])
    SubscriberFactory.create(account=account, email="un@example.org", unsubscribed=True)
    gone = MembershipFactory.create(segment=segment, left=True)
    SubscriberFactory.create(email="stranger@example.org")
    answer = boss.post(
        url(Segment, "add_people", segment.pk),
        {
            "addresses": "Ann@example.org\nbob@example.org\nin@example.org\nun@example.org\n"
            f"{gone.subscriber.email}\nstranger@example.org\n{HTML}\nann@example.org"
        },
    )
    text = words(answer)
    assert (
        "2 added in it already 1 left it earlier 1 unsubscribed 1 not known 1 no address 1 "
        "given twice 1" in text
    )
    assert "was not brought back" in text
    assert "stranger@example.org" in text
    assert HTML not in answer.content.decode()
    assert present(segment) == {"ann@example.org", "bob@example.org", "in@example.org"}
    event = AuditEvent.objects.get()
    assert (event.account, event.verb, event.subject) == (account, "segment.add", "Readers")
    assert event.detail == {
        "segment": segment.pk,
        "from": "a pasted list",
        "added": 2,
        "already": 1,
        "ended": 1,
        "unsubscribed": 1,
    }
    assert event.by_name.startswith("staff")
    assert LogEntry.objects.get().object_id == str(segment.pk)


def test_adding_everybody_of_another_segment(
    boss: Client, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CHUNK", 2)
    source = SegmentFactory.create(account=segment.account, name="Source")
    people = SubscriberFactory.create_batch(5, account=segment.account, segments=[source])
    MembershipFactory.create(segment=source, left=True)
    answer = boss.post(url(Segment, "add_people", segment.pk), {"source": source.pk})
    assert "5 added" in words(answer)
    assert present(segment) == {one.email for one in people}
    # One act of three transactions: one entry, with the numbers of all.
    assert AuditEvent.objects.get().detail == {
        "segment": segment.pk,
        "from": "the segment Source",
        "added": 5,
    }


def test_what_one_request_can_not_do_the_next_goes_on_with(
    boss: Client, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CHUNK", 2)
    monkeypatch.setattr(segments, "BUDGET", -1.0)
    source = SegmentFactory.create(account=segment.account)
    SubscriberFactory.create_batch(3, account=segment.account, segments=[source])
    answer = boss.post(url(Segment, "add_people", segment.pk), {"source": source.pk})
    assert "Not all yet: 2 added" in words(answer)
    assert "press the button again" in words(answer)
    assert len(present(segment)) == 2
    assert f'value="{source.pk}" selected' in answer.content.decode()
    assert AuditEvent.objects.get().detail["added"] == 2
    monkeypatch.setattr(segments, "BUDGET", 20.0)
    answer = boss.post(url(Segment, "add_people", segment.pk), {"source": source.pk})
    assert "1 added in it already 2" in words(answer)
    assert len(present(segment)) == 3


def test_an_act_that_breaks_off_is_on_record_as_far_as_it_came(
    boss: Client, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CHUNK", 2)
    source = SegmentFactory.create(account=segment.account)
    SubscriberFactory.create_batch(3, account=segment.account, segments=[source])
    calls: list[Any] = []

    def dies(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("the process dies here")
        return segments.add(*arguments)

    monkeypatch.setattr(segment_acts, "add", dies)
    with pytest.raises(RuntimeError):
        boss.post(url(Segment, "add_people", segment.pk), {"source": source.pk})
    assert len(present(segment)) == 2
    assert AuditEvent.objects.get().detail["added"] == 2


@pytest.mark.parametrize("page", ["add_people", "remove_people"])
def test_wrong_input_is_the_forms_error(boss: Client, segment: Segment, page: str) -> None:
    other = SegmentFactory.create(account=segment.account)
    foreign = SegmentFactory.create()
    for given, said in (
        ({}, "Paste addresses, or choose a segment."),
        ({"addresses": " \n "}, "Paste addresses, or choose a segment."),
        ({"addresses": "a@example.org", "source": other.pk}, "not both"),
        ({"addresses": "a@example.org\n" * 10_001}, "At most 10,000 addresses at once"),
        ({"addresses": "a\0@example.org"}, "Null characters are not allowed"),
        ({"source": foreign.pk}, "not one of the available choices"),
        ({"source": segment.pk}, "not one of the available choices"),
        ({"source": "x"}, "not one of the available choices"),
    ):
        answer = boss.post(url(Segment, page, segment.pk), {**given, "confirmed": "yes"})
        assert answer.status_code == 200
        assert said in words(answer), given
    assert not Membership.objects.exists()
    assert not AuditEvent.objects.exists()


# --- removing ------------------------------------------------------------------------------------


def test_removing_asks_first_and_then_says_what_it_did(
    boss: Client, segment: Segment, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    ann = SubscriberFactory.create(
        account=segment.account, segments=[segment], email="ann@example.org"
    )
    SubscriberFactory.create(account=segment.account, email="bob@example.org")
    campaign = CampaignFactory.create(account=segment.account, segments=[segment], sending=True)
    send = SendFactory.create(campaign=campaign, subscriber=ann)
    page = url(Segment, "remove_people", segment.pk)
    form = {"addresses": f"ann@example.org\nbob@example.org\nnot@example.org\n{HTML}"}
    asked = boss.post(page, form)
    assert "Remove 2 people from Readers?" in words(asked)
    assert HTML not in asked.content.decode()
    assert present(segment) == {"ann@example.org"}
    assert not AuditEvent.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        answer = boss.post(page, {**form, "confirmed": "yes"})
    assert "1 removed not in it 1 not known 1 no address 1" in words(answer)
    assert present(segment) == set()
    send.refresh_from_db()
    assert send.status == Send.Status.SUPPRESSED
    change = MembershipChange.objects.get()
    event = AuditEvent.objects.get()
    assert change.source == f"removed by {event.by_name} in the admin"
    assert (event.verb, event.detail["removed"], event.detail["absent"]) == ("segment.remove", 1, 1)


def test_removing_everybody_of_another_segment(boss: Client, segment: Segment) -> None:
    source = SegmentFactory.create(account=segment.account, name="Source")
    both = SubscriberFactory.create(account=segment.account, segments=[segment, source])
    stays = SubscriberFactory.create(account=segment.account, segments=[segment])
    page = url(Segment, "remove_people", segment.pk)
    asked = words(boss.post(page, {"source": source.pk}))
    assert "Remove everybody of Source from Readers?" in asked
    assert "1 person is in Source" in asked
    boss.post(page, {"source": source.pk, "confirmed": "yes"})
    assert present(segment) == {stays.email}
    assert present(source) == {both.email}


# --- the list of people --------------------------------------------------------------------------


def test_a_selection_is_added_to_a_segment(boss: Client, segment: Segment) -> None:
    people = SubscriberFactory.create_batch(2, account=segment.account)
    gone = MembershipFactory.create(segment=segment, left=True).subscriber
    asked = run_action(boss, Subscriber, "add_to_segment", *people, gone)
    assert people[0].email in words(asked)
    assert not present(segment)
    answer = run_action(
        boss,
        Subscriber,
        "add_to_segment",
        *people,
        gone,
        confirmed="yes",
        segment=segment.pk,
    )
    assert answer.status_code == 302
    said = words(boss.get(answer.headers["Location"]))
    assert "Readers: 2 added, 1 left it earlier and not brought back." in said
    assert present(segment) == {one.email for one in people}
    assert AuditEvent.objects.get().verb == "segment.add"


def test_everybody_that_a_filter_shows_is_removed(
    boss: Client, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter is the segment itself: the set shrinks while it is walked."""
    monkeypatch.setattr(segments, "CHUNK", 2)
    SubscriberFactory.create_batch(5, account=segment.account, segments=[segment])
    stays = SubscriberFactory.create(account=segment.account, segments=[segment], unsubscribed=True)
    answer = boss.post(
        url(Subscriber, "changelist") + f"?segment={segment.pk}&status__exact=confirmed",
        {
            "action": "remove_from_segment",
            "select_across": "1",
            "_selected_action": [stays.pk],
            "confirmed": "yes",
            "segment": segment.pk,
        },
    )
    assert answer.status_code == 302
    assert present(segment) == {stays.email}
    assert AuditEvent.objects.get().detail["removed"] == 5


def test_an_action_without_a_segment_asks_again(boss: Client, segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account)
    foreign = SegmentFactory.create()
    for given in ({}, {"segment": foreign.pk}, {"segment": "x"}):
        answer = run_action(boss, Subscriber, "add_to_segment", person, confirmed="yes", **given)
        assert answer.status_code == 200
        assert answer.context["form"].errors
    assert not Membership.objects.exists()


def test_people_of_another_account_are_passed_over(
    superuser_client: Client, segment: Segment
) -> None:
    mine, stranger = SubscriberFactory.create(account=segment.account), SubscriberFactory.create()
    run_action(
        superuser_client,
        Subscriber,
        "add_to_segment",
        mine,
        stranger,
        confirmed="yes",
        segment=segment.pk,
    )
    assert present(segment) == {mine.email}
    said = words(superuser_client.get(url(Subscriber, "changelist")))
    assert "1 added, 1 of another account and passed over" in said


# --- other accounts ------------------------------------------------------------------------------


def test_pages_and_actions_do_not_reach_another_account(boss: Client) -> None:
    foreign = SegmentFactory.create(name="secretname")
    inside = SubscriberFactory.create(
        account=foreign.account, email="secretname@example.org", segments=[foreign]
    )
    outside = SubscriberFactory.create(account=foreign.account, email="out@example.org")
    for page in ("add_people", "remove_people"):
        for answer in (
            boss.get(url(Segment, page, foreign.pk)),
            boss.post(
                url(Segment, page, foreign.pk),
                {"addresses": f"{inside.email}\n{outside.email}", "confirmed": "yes"},
            ),
        ):
            assert answer.status_code == 302
            assert "secretname" not in answer.content.decode()
    for name in ("add_to_segment", "remove_from_segment"):
        run_action(boss, Subscriber, name, inside, outside, confirmed="yes", segment=foreign.pk)
    assert present(foreign) == {inside.email}
    assert not AuditEvent.objects.exists()


def test_foreign_people_can_not_be_put_into_an_own_segment(boss: Client, segment: Segment) -> None:
    stranger = SubscriberFactory.create(email="stranger@example.org")
    run_action(boss, Subscriber, "add_to_segment", stranger, confirmed="yes", segment=segment.pk)
    answer = boss.post(url(Segment, "add_people", segment.pk), {"addresses": stranger.email})
    assert "not known 1" in words(answer)
    assert present(segment) == set()


# --- deleting ------------------------------------------------------------------------------------


def test_a_segment_with_a_history_can_be_deleted(boss: Client, segment: Segment) -> None:
    MembershipFactory.create(segment=segment)
    MembershipChangeFactory.create(segment=segment, at=timezone.now() - timedelta(days=1))
    answer = boss.post(url(Segment, "delete", segment.pk), {"post": "yes"})
    assert answer.status_code == 302
    assert not Segment.objects.filter(pk=segment.pk).exists()
    assert not MembershipChange.objects.exists()
