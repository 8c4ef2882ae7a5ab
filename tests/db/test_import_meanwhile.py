"""What happens beside an import while it runs, and what it leaves behind."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction

from subscribers.consent import unsubscribe
from subscribers.importing import ImportRefused, import_csv
from subscribers.models import Membership, Segment, Subscriber
from subscribers.suppression import suppress
from tests.db.racing import Race
from tests.factories import SubscriberFactory

from . import imports
from .imports import Status, counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment


class AtEnd(io.BytesIO):
    """A file at whose end something happens on another connection, in the middle of the import."""

    def __init__(self, text: str, happens: Callable[[], object]) -> None:
        super().__init__(text.encode())
        self.happens: Callable[[], object] | None = happens

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data and self.happens is not None:
            happens, self.happens = self.happens, None
            with Race() as race:
                race.start(happens).result()
        return data


@pytest.mark.django_db(transaction=True)
def test_who_unsubscribes_while_the_file_is_read_is_unsubscribed(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    file = AtEnd("email,city\nann@example.org,Lyon\n", lambda: unsubscribe(person, evidence="x"))
    report = import_csv(file, account=segment.account, segment=segment, confirmed=True)
    assert counts(report) == {"unsubscribed": 1, "suppressed": 1}
    person.refresh_from_db()
    assert person.status == Status.UNSUBSCRIBED
    assert not Membership.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_is_erased_while_the_file_is_read_is_refused(segment: Segment) -> None:
    file = AtEnd(
        "email\nann@example.org\n", lambda: suppress(segment.account, "ann@example.org", "erased")
    )
    report = import_csv(file, account=segment.account, segment=segment)
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
    file = AtEnd("email\nann@example.org\n", lambda: Segment.objects.all().delete())
    with pytest.raises(ImportRefused, match="segment was deleted"):
        import_csv(file, account=segment.account, segment=segment)
    assert not Subscriber.objects.exists()


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


def test_the_transaction_s_tables_are_gone_with_it(segment: Segment) -> None:
    # Two in one transaction of the caller's: the second finds the first one's tables.
    load("email\nann@example.org\n", segment)
    load("email\nbob@example.org\n", segment)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sendonce_staged")
        assert cursor.fetchone()[0] == 1
