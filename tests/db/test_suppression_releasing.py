"""What staff added and the person's own unsubscription are two things on one entry."""

from __future__ import annotations

import pytest

from subscribers.models import Account, AuditEvent, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import NotReleased, lift, release, version, why_not
from subscribers.suppression import is_suppressed, suppress
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db

ANN = "ann@example.org"


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


def both(account: Account, *order: str) -> Suppression:
    for reason in order:
        suppress(account, ANN, reason)
    return Suppression.objects.get()


ORDERS = [("manual", "unsubscribed"), ("unsubscribed", "manual")]


@pytest.mark.parametrize("order", ORDERS)
def test_a_sign_up_does_not_take_back_what_staff_decided(
    account: Account, order: tuple[str, str]
) -> None:
    entry = both(account, *order)
    assert (entry.reason, entry.former_reason) == ("unsubscribed", "manual")
    assert not lift(account, ANN)
    assert is_suppressed(account, ANN)


@pytest.mark.parametrize("order", ORDERS)
def test_staff_release_their_part_and_the_person_theirs(
    account: Account, order: tuple[str, str]
) -> None:
    entry = both(account, *order)
    assert why_not(entry) == ""
    release(entry.pk, seen=version(entry), words="a mix-up", by_name="Bea")
    entry.refresh_from_db()
    assert (entry.reason, entry.former_reason) == ("unsubscribed", "")
    assert is_suppressed(account, ANN), "what the person wished is not taken back"
    assert AuditEvent.objects.get().verb == "suppression.release"
    with pytest.raises(NotReleased, match="Only the person"):
        release(entry.pk, seen=version(entry), words="again", by_name="Bea")
    assert lift(account, ANN)
    assert not is_suppressed(account, ANN)


def test_staff_who_saw_the_unsubscription_alone_release_nothing(account: Account) -> None:
    entry = both(account, "manual")
    seen = version(entry)
    suppress(account, ANN, "unsubscribed")
    with pytest.raises(NotReleased, match="changed"):
        release(entry.pk, seen=seen, words="a mix-up", by_name="Bea")


@pytest.mark.parametrize("order", ORDERS)
def test_an_erasure_remembers_the_staff_s_part(account: Account, order: tuple[str, str]) -> None:
    both(account, *order)
    erase_person(account, ANN, by_name="Bea", reason="asked")
    assert Suppression.objects.get().former_reason == "manual"
    suppress(account, ANN, "unsubscribed")
    assert not lift(account, ANN)


def test_a_complaint_outweighs_both(account: Account) -> None:
    entry = both(account, "manual", "unsubscribed", "complaint")
    assert entry.reason == "complaint"
    assert "Nothing takes this back" in why_not(entry)
    assert not lift(account, ANN)
