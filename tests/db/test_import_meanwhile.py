"""What happens beside an import while it runs, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction

from subscribers.consent import unsubscribe
from subscribers.importing import ImportRefused, Step
from subscribers.models import ImportJob, ImportRow, Membership, Segment, Subscriber
from subscribers.suppression import suppress
from tests.db.racing import Race
from tests.factories import SubscriberFactory

from . import imports
from .imports import Status, counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment


def when_staged(happens: Callable[[], object]) -> Callable[[Step], None]:
    """A ``progress`` that lets something happen on another connection, in the middle of the
    import: the file has been read, nobody is written yet."""
    left = [happens]

    def progress(step: Step) -> None:
        if left:
            with Race() as race:
                race.start(left.pop()).result()

    return progress


@pytest.mark.django_db(transaction=True)
def test_who_unsubscribes_while_the_file_is_read_is_unsubscribed(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    report = load(
        "email,city\nann@example.org,Lyon\n",
        segment,
        confirmed=True,
        progress=when_staged(lambda: unsubscribe(person, evidence="x")),
    )
    assert counts(report) == {"unsubscribed": 1, "suppressed": 1}
    person.refresh_from_db()
    assert person.status == Status.UNSUBSCRIBED
    assert not Membership.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_is_erased_while_the_file_is_read_is_refused(segment: Segment) -> None:
    happens = when_staged(lambda: suppress(segment.account, "ann@example.org", "erased"))
    report = load("email\nann@example.org\n", segment, progress=happens)
    assert counts(report) == {"rejected": 1}
    assert not Subscriber.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("for_all", [False, True])
def test_an_erasure_waits_for_the_import_and_then_sees_whom_it_brought(
    segment: Segment, for_all: bool
) -> None:
    def erase() -> int:
        with transaction.atomic():
            suppress(None if for_all else segment.account, "ann@example.org", "erased")
            return Subscriber.objects.filter(email_lower="ann@example.org").delete()[0]

    with Race() as race:
        with transaction.atomic():
            load("email\nann@example.org\n", segment)
            erasing = race.start(erase)
            erasing.wait_until_blocked()
        assert erasing.result()
    assert not Subscriber.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_the_same_people_at_once_add_them_once(segment: Segment) -> None:
    text = "email\n" + "".join(f"p{i}@example.org\n" for i in range(500))
    backwards = "email\n" + "".join(f"p{i}@example.org\n" for i in reversed(range(500)))
    with Race() as race:
        with transaction.atomic():
            first = load(text, segment)
            other = race.start(lambda: load(backwards, segment))
            other.wait_until_blocked()
        assert counts(first) == {"imported": 500, "pending": 500}
        assert counts(other.result()) == {"unchanged": 500}
    assert Membership.objects.count() == 500


@pytest.mark.django_db(transaction=True)
def test_a_segment_that_goes_while_the_file_is_read_refuses_the_import(segment: Segment) -> None:
    happens = when_staged(lambda: Segment.objects.all().delete())
    with pytest.raises(ImportRefused, match="segment was deleted"):
        load("email\nann@example.org\n", segment, progress=happens)
    assert not Subscriber.objects.exists()
    assert not ImportRow.objects.exists()
    assert ImportJob.objects.get().status == "failed"


@pytest.mark.django_db(transaction=True)
def test_a_segment_does_not_go_under_an_import_that_is_being_written(segment: Segment) -> None:
    with Race() as race:
        with transaction.atomic():
            load("email\nann@example.org\n", segment)
            deleting = race.start(Segment.objects.filter(pk=segment.pk).delete)
            deleting.wait_until_blocked()
        # It did not see the new member; asked again, it does.
        with pytest.raises(IntegrityError):
            deleting.result()
    assert members(segment) == {"ann@example.org"}
    Segment.objects.filter(pk=segment.pk).delete()


def test_two_imports_in_one_transaction_of_the_caller_s(segment: Segment) -> None:
    # The second finds the first one's temporary tables.
    load("email\nann@example.org\n", segment)
    load("email\nbob@example.org\n", segment)
    assert members(segment) == {"ann@example.org", "bob@example.org"}
