"""An import brings nobody back who has left."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from subscribers import hooks
from subscribers.importing.report import MOVED
from subscribers.leaving.address_change import AddressChange, change_address
from subscribers.models import (
    Account,
    ImportReject,
    Membership,
    Segment,
    Signup,
    Subscriber,
    Suppression,
)
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed, suppress
from tests.factories import (
    AccountFactory,
    MembershipFactory,
    SignupFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from . import imports
from .imports import Status, counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment


def test_who_unsubscribed_stays_as_they_are(segment: Segment) -> None:
    person = SubscriberFactory.create(
        account=segment.account, email="ann@example.org", unsubscribed=True, attributes={"a": "b"}
    )
    before = Subscriber.objects.values().get()
    report = load("email,status,a\nann@example.org,confirmed,c\n", segment, confirmed=True)
    assert counts(report) == {"unsubscribed": 1}
    assert Subscriber.objects.values().get(pk=person.pk) == before
    assert not Membership.objects.exists()


def test_who_left_the_segment_has_left_it(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    place = MembershipFactory.create(segment=segment, subscriber=person, left=True)
    assert counts(load("email\nann@example.org\n", segment, confirmed=True)) == {"unchanged": 1}
    place.refresh_from_db()
    assert place.left_at is not None


@pytest.mark.parametrize("for_all", [False, True])
def test_a_suppression_stands_and_is_counted(segment: Segment, for_all: bool) -> None:
    account = None if for_all else segment.account
    suppress(account, "ann@example.org", "complaint")
    SuppressionFactory.create(email="bob@example.org")
    SuppressionFactory.create(
        account=account, email="cy@example.org", expires=timezone.now() - timedelta(days=1)
    )
    text = "email\nAnn@example.org\nbob@example.org\ncy@example.org\n"
    assert counts(load(text, segment, confirmed=True)) == {"imported": 3, "suppressed": 1}
    assert is_suppressed(segment.account, "ann@example.org")


def test_an_export_s_suppressions_come_along_and_never_weaken_one(segment: Segment) -> None:
    suppress(segment.account, "b@example.org", "complaint", evidence="reported")
    report = load(
        "email,suppressed\na@example.org,Hard_Bounce\nb@example.org,manual\nc@example.org,\n",
        segment,
    )
    assert counts(report) == {"imported": 3, "pending": 3, "suppressed": 2}
    found = {x.email: x for x in Suppression.objects.all()}
    assert {email: x.reason for email, x in found.items()} == {
        "a@example.org": "hard_bounce",
        "b@example.org": "complaint",
    }
    assert found["a@example.org"].expires is not None
    assert found["a@example.org"].evidence == "import"


@pytest.mark.parametrize("for_all", [False, True])
def test_an_erased_person_is_refused_without_a_trace(
    segment: Segment, tmp_path: Path, for_all: bool
) -> None:
    suppress(None if for_all else segment.account, "ann@example.org", "erased")
    rejects = tmp_path / "rejects.csv"
    report = load(
        "email,name\nbob@example.org,Bob\nANN@example.org,Ann Secret\nann@example.org,Again\n",
        segment,
        reject_file=rejects,
        confirmed=True,
    )
    assert counts(report) == {"imported": 1, "duplicates": 1, "rejected": 1}
    assert Subscriber.objects.get().email == "bob@example.org"
    text = rejects.read_text()
    assert "erased on request" in text
    assert "4," in text
    assert "ann" not in text.lower().replace("erased", "")


def test_an_erasure_in_another_account_does_not_matter_here(segment: Segment) -> None:
    suppress(AccountFactory.create(), "ann@example.org", "erased")
    assert counts(load("email\nann@example.org\n", segment)) == {"imported": 1, "pending": 1}


def test_who_a_file_unsubscribes_is_withdrawn_from_running_campaigns(
    segment: Segment,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    told: list[list[int]] = []

    def withdraw(ids: list[int]) -> int:
        told.append(ids)
        return 0

    monkeypatch.setattr(hooks.withdraw_leavers, "_filled", withdraw)
    ann = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    text = "email,status\nann@example.org,unsubscribed\nbob@example.org,unsubscribed\n"
    with django_capture_on_commit_callbacks(execute=True):
        assert counts(load(text, segment)) == {"imported": 1, "updated": 1, "suppressed": 2}
    assert told == [[ann.pk]]
    ann.refresh_from_db()
    assert ann.status == Status.UNSUBSCRIBED
    assert ann.unsubscribed_at is not None


def _moved(account: Account) -> None:
    """Somebody of this account has changed from old@ to new@example.org."""
    person = SubscriberFactory.create(account=account, email="Old@example.org")
    wish = SignupFactory.create(
        account=account, subscriber=person, kind="address", email="new@example.org", form=None
    )
    assert change_address(wish) is AddressChange.CHANGED


def test_an_address_that_was_given_up_does_not_make_a_second_person(segment: Segment) -> None:
    _moved(segment.account)
    report = load("email\nold@example.org\nother@example.org\n", segment, confirmed=True)
    assert counts(report) == {"imported": 1, "rejected": 1}
    assert members(segment) == {"other@example.org"}
    reject = ImportReject.objects.get()
    assert (reject.line, reject.reason, reject.cells) == (2, MOVED, [])


def test_an_address_that_was_given_up_and_taken_by_somebody_is_theirs(segment: Segment) -> None:
    _moved(segment.account)
    SubscriberFactory.create(account=segment.account, email="old@example.org")
    report = load("email\nold@example.org\n", segment, confirmed=True)
    assert report.rejected == 0
    assert members(segment) == {"old@example.org"}


def test_an_address_that_was_given_up_elsewhere_is_free_here(segment: Segment) -> None:
    _moved(AccountFactory.create())
    report = load("email\nold@example.org\n", segment, confirmed=True)
    assert counts(report) == {"imported": 1}


def test_an_erasure_forgets_the_address_before_too(segment: Segment) -> None:
    _moved(segment.account)
    erase_person(segment.account, "new@example.org", by_name="Bea", reason="asked")
    assert not Signup.objects.filter(former_email__isnull=False).exists()
