"""Putting people into segments and taking them out, set by set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sending.models import Send
from subscribers.models import Membership, MembershipChange, Segment, Subscriber
from subscribers.segments.members import (
    PASTED,
    Done,
    SegmentGone,
    add,
    ids_of,
    in_chunks,
    members,
    read_pasted,
    remove,
    work,
)
from tests.factories import (
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def segment() -> Segment:
    found: Segment = SegmentFactory.create()
    return found


def present(segment: Segment) -> set[int]:
    rows = Membership.objects.filter(segment=segment, left_at__isnull=True)
    return set(rows.values_list("subscriber_id", flat=True))


# --- adding --------------------------------------------------------------------------------------


def test_each_person_is_added_or_counted_for_what_stands_against_it(segment: Segment) -> None:
    account = segment.account
    new = SubscriberFactory.create(account=account)
    pending = SubscriberFactory.create(account=account, pending=True)
    member = SubscriberFactory.create(account=account, segments=[segment])
    gone = MembershipFactory.create(segment=segment, left=True)
    unsubscribed = SubscriberFactory.create(account=account, unsubscribed=True)
    stranger = SubscriberFactory.create()
    people = [new, pending, member, gone.subscriber, unsubscribed, stranger]
    done = add(segment, [*(one.pk for one in people), new.pk, 999_999_999])
    assert done == Done(added=2, already=1, ended=1, unsubscribed=1, strangers=2)
    assert present(segment) == {new.pk, pending.pk, member.pk}
    before = gone.left_at
    gone.refresh_from_db()
    assert gone.left_at == before


def test_adding_again_changes_nothing(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account)
    add(segment, [person.pk])
    joined = person.memberships.get().joined_at
    assert add(segment, [person.pk]) == Done(already=1)
    assert person.memberships.get().joined_at == joined
    assert not MembershipChange.objects.exists()


def test_nobody_is_added_to_a_segment_that_is_deleted(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account)
    Segment.objects.filter(pk=segment.pk).delete()
    with pytest.raises(SegmentGone):
        add(segment, [person.pk])
    with pytest.raises(SegmentGone):
        remove(segment, [person.pk], source="test")


def test_nobody_at_all(segment: Segment) -> None:
    assert add(segment, []) == Done()
    assert remove(segment, [], source="test") == Done()
    assert list(members(segment)) == []


# --- removing ------------------------------------------------------------------------------------


def test_removing_is_leaving_and_says_who_did_it(segment: Segment) -> None:
    member = SubscriberFactory.create(account=segment.account, segments=[segment])
    other = SubscriberFactory.create(account=segment.account, segments=[segment])
    gone = MembershipFactory.create(segment=segment, left=True)
    source = "removed by \U0001f9d1 in the admin"
    done = remove(segment, [member.pk, gone.subscriber_id, 999_999_999], source=source)
    assert done == Done(removed=1, absent=2)
    assert present(segment) == {other.pk}
    change = MembershipChange.objects.get()
    assert (change.subscriber, change.kind, change.source) == (member, "left", source)
    assert change.at == member.memberships.get().left_at
    assert add(segment, [member.pk]) == Done(ended=1)


def test_removing_withdraws_what_reaches_them_through_it_alone(
    segment: Segment, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    second = SegmentFactory.create(account=segment.account)
    campaign = CampaignFactory.create(
        account=segment.account, segments=[segment, second], sending=True
    )
    alone, both = (
        SubscriberFactory.create(account=segment.account, segments=segments)
        for segments in ([segment], [segment, second])
    )
    sends = [SendFactory.create(campaign=campaign, subscriber=one) for one in (alone, both)]
    with django_capture_on_commit_callbacks(execute=True):
        remove(segment, [alone.pk, both.pk], source="test")
    for send in sends:
        send.refresh_from_db()
    assert [send.status for send in sends] == [Send.Status.SUPPRESSED, Send.Status.QUEUED]


# --- in chunks -----------------------------------------------------------------------------------


def test_members_come_in_chunks_while_they_leave(segment: Segment) -> None:
    people = SubscriberFactory.create_batch(7, account=segment.account, segments=[segment])
    seen = []
    for chunk in members(segment, size=3):
        assert len(chunk) <= 3
        seen += chunk
        remove(segment, chunk, source="test")
    assert seen == [one.pk for one in people]
    assert present(segment) == set()


def test_a_querysets_ids_come_in_chunks(segment: Segment) -> None:
    people = SubscriberFactory.create_batch(5, account=segment.account)
    chunks = list(ids_of(Subscriber.objects.filter(account=segment.account), size=2))
    ids = [one.pk for one in people]
    assert chunks == list(in_chunks(ids, size=2)) == [ids[:2], ids[2:4], ids[4:]]


def test_work_stops_when_its_time_is_over_and_says_so() -> None:
    moments = iter([0.0, 5.0, 10.0])
    dealt: list[list[int]] = []

    def act(chunk: list[int]) -> Done:
        dealt.append(chunk)
        return Done(added=len(chunk))

    done = work([[1], [2], [3], [4]], act, budget=10.0, clock=lambda: next(moments))
    assert (done, dealt) == ((Done(added=2), False), [[1], [2]])
    assert work([[1, 2]], act) == (Done(added=2), True)
    assert work([], act) == (Done(), True)


# --- pasted lists --------------------------------------------------------------------------------


def test_a_pasted_list_is_read_as_people_paste(segment: Segment) -> None:
    ann = SubscriberFactory.create(account=segment.account, email="Ann@example.org")
    bob = SubscriberFactory.create(account=segment.account, email="bob@xn--bcher-kva.example.org")
    odd = SubscriberFactory.create(account=segment.account, email="stored@past every entrance")
    SubscriberFactory.create(email="stranger@example.org")
    text = (
        " ann@EXAMPLE.org ,\r\n\rmailto:bob@b\u00fccher.example.org;\nANN@example.org\n"
        "stranger@example.org\nno address\nstored@past every entrance\n<b>x</b>\n"
    )
    found = read_pasted(segment, text)
    assert found.people == [ann.pk, bob.pk, odd.pk]
    assert found.unknown == ["stranger@example.org"]
    assert [(line, text) for line, text, _ in found.bad] == [(6, "no address"), (8, "<b>x</b>")]
    assert all(why for _, _, why in found.bad)
    assert found.repeated == 1


def test_several_addresses_on_a_line_are_taken_apart(segment: Segment) -> None:
    ann = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    bob = SubscriberFactory.create(account=segment.account, email="bob@example.org")
    text = 'ann@example.org; bob@example.org,,carl@example.org\n;,\n"Lee, Ann" x; y@z'
    found = read_pasted(segment, text)
    assert found.people == [ann.pk, bob.pk]
    assert found.unknown == ["carl@example.org"]
    assert [(n, text) for n, text, _ in found.bad] == [(3, '"Lee, Ann" x'), (3, "y@z")]
    open_quote = read_pasted(segment, 'ann@example.org; "Lee, Ann')
    assert (open_quote.people, [text for _, text, _ in open_quote.bad]) == ([ann.pk], ['"Lee, Ann'])


def test_a_pasted_list_has_a_limit(segment: Segment) -> None:
    SubscriberFactory.create(account=segment.account, email="p1@example.org")
    lines = [f"p{n}@example.org" for n in range(PASTED)]
    assert len(read_pasted(segment, "\n".join([*lines, "", " "])).unknown) == PASTED - 1
    with pytest.raises(ValueError, match=r"At most 10,000 addresses at once, not 10,001"):
        read_pasted(segment, "\n".join([*lines, "one@example.org"]))
