"""The build: who becomes a row, in which state, and that all are counted, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from campaigns import gate, lifecycle
from campaigns.models import Campaign
from sending import build, ledger, sql
from sending.build import Progress, build_chunk, unbuilt
from sending.models import Send
from subscribers.addresses import erased_hashes
from subscribers.consent import unsubscribe
from subscribers.models import Membership, Subscriber, Suppression
from subscribers.suppression import suppress
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .racing import Race
from .rows import assert_identity, campaign_to, kinds_of, member


def _rows(campaign: Campaign) -> dict[str | None, str]:
    """``{address: status}``."""
    return dict(Send.objects.filter(campaign=campaign).values_list("email", "status"))


def _people(campaign: Campaign) -> list[Subscriber]:
    return list(Subscriber.objects.filter(account=campaign.account).order_by("id"))


def _finish_build(campaign: Campaign, *, size: int = 100) -> None:
    build.build(campaign.pk, size=size)
    campaign.refresh_from_db()
    assert campaign.built_at is not None
    assert_identity(campaign)


# --- who -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_person_becomes_one_queued_row_with_a_derived_job_id() -> None:
    campaign = campaign_to(0)
    person = member(campaign, email="Ann@Example.ORG")
    _finish_build(campaign)
    send = Send.objects.get()
    assert (send.account, send.campaign, send.subscriber) == (campaign.account, campaign, person)
    assert (send.email, send.email_lower) == ("Ann@Example.ORG", "ann@example.org")
    assert send.job_id == f"campaign:{campaign.pk}:{person.pk}"
    assert (send.status, send.attempts, send.doubt_tokens, send.reason) == ("queued", 0, [], "")
    assert campaign.audience == 1


@pytest.mark.django_db
def test_somebody_in_three_segments_is_one_row() -> None:
    campaign = campaign_to(0)
    others = SegmentFactory.create_batch(2, account=campaign.account)
    campaign.segments.add(*others)
    member(campaign)
    _finish_build(campaign)
    assert Send.objects.count() == campaign.audience == 1


@pytest.mark.django_db
def test_only_confirmed_members_of_a_chosen_segment_get_it() -> None:
    campaign = campaign_to(0)
    segment = campaign.segments.get()
    excluded = SegmentFactory.create(account=campaign.account)
    campaign.exclude_segments.add(excluded)

    inside = member(campaign)
    back = member(campaign)
    MembershipFactory.create(segment=excluded, subscriber=back, left=True)
    # None of these:
    member(campaign, pending=True)
    member(campaign, unsubscribed=True)
    MembershipFactory.create(segment=excluded, subscriber=member(campaign))
    MembershipFactory.create(segment=segment, left=True)
    SubscriberFactory.create(account=campaign.account)
    elsewhere = SegmentFactory.create(account=campaign.account)
    SubscriberFactory.create(account=campaign.account, segments=[elsewhere])
    # A membership across accounts, which only a fault could make.
    MembershipFactory.create(segment=segment, subscriber=SubscriberFactory.create())

    _finish_build(campaign)
    assert set(_rows(campaign)) == {inside.email, back.email}
    assert campaign.audience == 2


@pytest.mark.django_db
def test_suppressed_members_are_accounted_for_and_say_why() -> None:
    campaign = campaign_to(0)
    free, own, for_all, lapsed, elsewhere = (member(campaign) for _ in range(5))
    suppress(campaign.account, own.email.upper(), "complaint")
    suppress(None, for_all.email, "manual")
    SuppressionFactory.create(
        account=campaign.account,
        email=lapsed.email,
        reason=Suppression.Reason.HARD_BOUNCE,
        expires=timezone.now() - timedelta(days=1),
    )
    suppress(AccountFactory.create(), elsewhere.email, "complaint")
    _finish_build(campaign)
    assert _rows(campaign) == {
        free.email: "queued",
        own.email: "suppressed",
        for_all.email: "suppressed",
        lapsed.email: "queued",
        elsewhere.email: "queued",
    }
    assert campaign.audience == 5
    for send in Send.objects.filter(campaign=campaign):
        assert kinds_of(send) == (["suppressed"] if send.status == "suppressed" else [])


@pytest.mark.django_db
def test_two_campaigns_to_the_same_people_do_not_meet() -> None:
    first = campaign_to(3)
    second = CampaignFactory.create(
        account=first.account, segments=list(first.segments.all()), sending=True
    )
    _finish_build(first)
    _finish_build(second)
    assert Send.objects.count() == 6


# --- chunks ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_empty_chunk_is_not_the_end() -> None:
    """listmonk 1931: a batch whose rows were all ineligible finished the campaign early."""
    campaign = campaign_to(0)
    nobody = [SubscriberFactory.create(account=campaign.account) for _ in range(5)]
    last = member(campaign)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=False)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=False)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=1, done=False)
    campaign.refresh_from_db()
    assert (campaign.audience_cursor, campaign.built_at) == (last.pk, None)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=True)
    assert build_chunk(campaign.pk, size=2) is None
    assert len(nobody) == 5
    assert set(_rows(campaign)) == {last.email}


@pytest.mark.django_db
def test_a_sparse_segment_of_a_large_account_is_walked_in_growing_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    Subscriber.objects.bulk_create(
        Subscriber(account=campaign.account, email=f"p{n}@example.org", status="confirmed")
        for n in range(300)
    )
    chosen = _people(campaign)[::100]
    Membership.objects.bulk_create(
        Membership(segment=campaign.segments.get(), subscriber=person) for person in chosen
    )
    steps: list[Progress | None] = []

    def counting(campaign_id: int, *, size: int) -> Progress | None:
        steps.append(build_chunk(campaign_id, size=size))
        return steps[-1]

    monkeypatch.setattr(build, "build_chunk", counting)
    _finish_build(campaign, size=5)
    assert set(_rows(campaign)) == {person.email for person in chosen}
    assert len(steps) <= 8, "60 chunks of five ids without growing"


@pytest.mark.django_db
def test_the_identity_holds_after_every_chunk_and_draining_may_start_with_the_first() -> None:
    campaign = campaign_to(7)
    done = False
    while not done:
        step = build_chunk(campaign.pk, size=3)
        assert step is not None
        assert_identity(campaign)
        assert ledger.counts(campaign)["audience"] >= 3
        done = step.done
    assert ledger.counts(campaign)["audience"] == 7


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_build_stops_with_its_campaign_and_goes_on_where_it_was(verb: str) -> None:
    campaign = campaign_to(4)
    build_chunk(campaign.pk, size=2)
    assert unbuilt() == [campaign.pk]
    getattr(lifecycle, verb)(campaign)
    assert build_chunk(campaign.pk, size=2) is None
    assert unbuilt() == []
    assert_identity(campaign)
    if verb == "pause":
        lifecycle.resume(campaign)
        _finish_build(campaign)
        assert campaign.audience == Send.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "approved", "paused", "sent", "canceled"])
def test_only_a_sending_campaign_is_built(status: str) -> None:
    campaign = CampaignFactory.create(**({} if status == "draft" else {status: True}))
    member(campaign)
    assert build_chunk(campaign.pk, size=10) is None
    assert not Send.objects.exists()


# --- while people come and go ----------------------------------------------------------------


def _leave(person: Subscriber) -> None:
    person.memberships.update(left_at=timezone.now())


def _unsubscribe(person: Subscriber) -> None:
    unsubscribe(person, evidence="a link")


def _suppress(person: Subscriber) -> None:
    suppress(person.account, person.email, "complaint")


def _delete(person: Subscriber) -> None:
    person.delete()


def _erase(person: Subscriber) -> None:
    """As an erasure does: the address goes, its keyed hash stays and keeps others out."""
    suppress(person.account, person.email, "erased")
    Send.objects.filter(subscriber=person).update(
        email=None, email_hash=erased_hashes(person.email)[0]
    )
    person.delete()


def _change_address(person: Subscriber) -> None:
    Subscriber.objects.filter(pk=person.pk).update(email=f"new-{person.email}")


def _delete_and_return(person: Subscriber) -> None:
    """Gone, and back under a new id, which lies beyond the cursor."""
    segments, account, email = list(person.segments.all()), person.account, person.email
    person.delete()
    SubscriberFactory.create(account=account, email=email, segments=segments)


CHANGES = [_leave, _unsubscribe, _suppress, _delete, _erase, _change_address, _delete_and_return]


@pytest.mark.django_db
@pytest.mark.parametrize("which", [0, -1], ids=["behind the cursor", "beyond it"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_identity_holds_when_people_change_during_the_build(
    change: Callable[[Subscriber], None], which: int
) -> None:
    campaign = campaign_to(6)
    build_chunk(campaign.pk, size=3)
    assert_identity(campaign)
    change(_people(campaign)[which])
    assert_identity(campaign)
    while not (step := build_chunk(campaign.pk, size=3)) or not step.done:
        assert step is not None
        assert_identity(campaign)
    assert_identity(campaign)
    change(_people(campaign)[1])
    assert_identity(campaign)
    campaign.refresh_from_db()
    # Only who was gone before the build came to them is not of the audience.
    gone = which == -1 and change in (_leave, _unsubscribe, _delete, _erase)
    assert campaign.audience == (5 if gone else 6)


@pytest.mark.django_db
def test_two_people_swap_addresses_during_the_build() -> None:
    """Nobody's mailbox gets it twice, and every row is a person's."""
    campaign = campaign_to(4)
    build_chunk(campaign.pk, size=2)
    first, *_, last = _people(campaign)
    Subscriber.objects.filter(pk=first.pk).update(email="between@example.org")
    Subscriber.objects.filter(pk=last.pk).update(email=first.email)
    Subscriber.objects.filter(pk=first.pk).update(email=last.email)
    _finish_build(campaign, size=2)
    addresses = list(Send.objects.values_list("email_lower", flat=True))
    assert len(addresses) == len(set(addresses)) == campaign.audience


@pytest.mark.django_db
def test_the_sweep_does_not_count_somebody_again_under_a_new_id() -> None:
    campaign = campaign_to(3)
    build_chunk(campaign.pk, size=100)
    person = _people(campaign)[0]
    _delete_and_return(person)
    _finish_build(campaign)
    assert campaign.audience == Send.objects.count() == 3


# --- two builders, and one that dies ---------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["cursor", "control"])
def test_two_builders_at_once_build_a_chunk_once(
    guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(4)
    if not guarded:
        unguarded = f"UPDATE {sql.CAMPAIGN} SET audience_cursor = %(upto)s WHERE id = %(campaign)s"
        monkeypatch.setattr(sql, "CHUNK_CURSOR", unguarded)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        first = race.start_to(halt, lambda: build_chunk(campaign.pk, size=4))
        second = race.start(lambda: build_chunk(campaign.pk, size=4))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() == Progress(inserted=4, done=False)
        after = second.result()
    if guarded:
        assert after is None
        assert_identity(campaign)
    else:
        # Rows are unique all the same, but a cursor that two move at once can go backwards.
        assert after == Progress(inserted=0, done=False), "control: the chunk was built twice"
    assert Send.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_count_once() -> None:
    campaign = campaign_to(3)
    assert build_chunk(campaign.pk, size=100) is not None
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update().get(pk=campaign.pk)
            both = [race.start(lambda: build_chunk(campaign.pk, size=9)) for _ in range(2)]
            for racer in both:
                racer.wait_until_blocked()
        results = [racer.result() for racer in both]
    assert sorted(results, key=lambda r: r is None) == [Progress(inserted=0, done=True), None]
    assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_builder_that_dies_in_a_chunk_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ghost 30230: a restart during the build dropped the tail."""
    campaign = campaign_to(6)
    assert build_chunk(campaign.pk, size=2) is not None
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        dying = race.start_to(halt, lambda: build_chunk(campaign.pk, size=2))
        dying.kill_backend()
        halt.released.set()
        with pytest.raises(OperationalError):
            dying.result()
    assert Send.objects.count() == 2
    assert_identity(campaign)
    _finish_build(campaign, size=2)
    assert campaign.audience == Send.objects.count() == 6


@pytest.mark.django_db(transaction=True)
def test_a_chunk_with_somebody_deleted_meanwhile_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(3)
    gone = _people(campaign)[1]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(build, "Progress", halt.behind(Progress))
        building = race.start_to(halt, lambda: build_chunk(campaign.pk, size=10))
        gone.delete()
        halt.released.set()
        assert building.result() == Progress(inserted=2, done=False)
    assert not Send.objects.filter(email=gone.email).exists()
    _finish_build(campaign)
    assert campaign.audience == Send.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_an_import_that_commits_behind_the_cursor_is_swept_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(2)

    with Race() as race:
        halt = race.halt()

        def slow_import() -> Subscriber:
            with transaction.atomic():
                person = member(campaign)
                halt.here()
                return person

        importing = race.start_to(halt, slow_import)
        later = member(campaign)
        step = build_chunk(campaign.pk, size=100)
        assert step == Progress(inserted=3, done=False)
        halt.released.set()
        late = importing.result()
    campaign.refresh_from_db()
    assert late.pk < later.pk == campaign.audience_cursor
    assert build_chunk(campaign.pk, size=100) == Progress(inserted=1, done=True)
    campaign.refresh_from_db()
    assert late.email in _rows(campaign)
    assert campaign.audience == 4
    assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_long_lock_wait_ends_in_an_error_and_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(1)
    monkeypatch.setattr(sql, "READ_COMMITTED", sql.READ_COMMITTED.replace("10s", "50ms"))
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
            with pytest.raises(OperationalError, match="lock timeout"):
                race.start(lambda: build_chunk(campaign.pk, size=10)).result()
        assert race.start(lambda: build_chunk(campaign.pk, size=10)).result() is not None


@pytest.mark.django_db(transaction=True)
def test_a_build_leaves_a_campaign_alone_about_which_somebody_decides() -> None:
    campaign = campaign_to(1)
    with Race() as race:
        with transaction.atomic():
            with connection.cursor() as cursor:
                gate.enter_exclusive(cursor, campaign.pk)
            assert race.start(lambda: build_chunk(campaign.pk, size=10)).result() is None
            assert _rows(campaign) == {}
        assert build_chunk(campaign.pk, size=10) == Progress(inserted=1, done=False)


@contextmanager
def _losing(address: str) -> Iterator[None]:
    """A database that drops this person's row without a word, as only a fault would."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION lose_a_row() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN RETURN CASE WHEN NEW.email = ''{address}'' THEN NULL ELSE NEW END; END'"
        )
        cursor.execute(
            f"CREATE TRIGGER lose_a_row BEFORE INSERT ON {sql.SEND} "
            "FOR EACH ROW EXECUTE FUNCTION lose_a_row()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER lose_a_row ON {sql.SEND}; DROP FUNCTION lose_a_row()")


@pytest.mark.django_db
def test_people_are_counted_although_their_row_is_lost() -> None:
    campaign = campaign_to(3)
    lost = _people(campaign)[1]
    with _losing(lost.email):
        assert build_chunk(campaign.pk, size=100) == Progress(inserted=2, done=False)
        assert ledger.balance(campaign.pk).difference == 1
        step = build_chunk(campaign.pk, size=100)
        assert step == Progress(inserted=0, done=True)
        assert ledger.balance(campaign.pk).difference == 1
