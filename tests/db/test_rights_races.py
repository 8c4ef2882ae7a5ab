"""An erasure and what others do at the same moment: nothing comes back, nobody is stuck."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, OperationalError, transaction

from campaigns.models import Campaign
from sending import build
from sending.models import Send
from subscribers.consent import unsubscribe
from subscribers.joining.asking import Origin
from subscribers.joining.confirming import State, confirm_signup
from subscribers.models import Account, Signup, Subscriber, Suppression
from subscribers.rights import forgetting
from subscribers.rights.acts import Erasure, erase_person
from subscribers.suppression import hold_erasures, is_suppressed, suppress
from tests.db.known_person import ANN, everything_of, everything_stored
from tests.db.racing import Race
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    SignupFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)


def erase(account: Account) -> Erasure:
    return erase_person(account, ANN, by_name="Bea", reason="asked")


def test_it_waits_for_an_import_and_then_takes_what_that_wrote() -> None:
    account = AccountFactory.create()
    with Race() as race:
        with transaction.atomic():
            hold_erasures(account.pk)
            erasing = race.start(lambda: erase(account))
            erasing.wait_until_blocked()
            SubscriberFactory.create(account=account, email=ANN)
        assert erasing.result().forgotten["subscribers"] == 1
    assert not Subscriber.objects.exists()


def test_an_import_of_another_account_does_not_stop_it() -> None:
    account, other = AccountFactory.create(), AccountFactory.create()
    with Race() as race, transaction.atomic():
        hold_erasures(other.pk)
        assert race.start(lambda: erase(account)).result().forgotten == {}


def test_a_long_import_stops_no_suppression() -> None:
    account = AccountFactory.create()
    with Race() as race, transaction.atomic():
        hold_erasures(account.pk)
        assert race.start(lambda: suppress(account, ANN, "complaint")).result().pk


def test_a_campaign_that_is_just_taking_the_person_in() -> None:
    campaign = CampaignFactory.create(sending=True)
    segment, account = campaign.segments.get(), campaign.account
    SubscriberFactory.create(account=account, email=ANN, segments=[segment])
    SubscriberFactory.create(account=account, email="bob@example.org", segments=[segment])

    def build_while_erased() -> None:
        with transaction.atomic():
            progress = build.build_chunk(campaign.pk, size=100)
            assert progress is not None
            assert progress.inserted == 2
            with Race() as race:
                race.start(lambda: erase(account)).result()

    # The chunk names somebody who is no more: it is built again, without them.
    with pytest.raises(IntegrityError):
        build_while_erased()
    assert build.build(campaign.pk, size=100) == 1
    assert list(Send.objects.values_list("email", flat=True)) == ["bob@example.org"]
    assert Campaign.objects.get().audience == 1


def test_a_campaign_that_has_just_taken_the_person_in(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = CampaignFactory.create(sending=True)
    segment, account = campaign.segments.get(), campaign.account
    SubscriberFactory.create(account=account, email=ANN, segments=[segment])
    with Race() as race:
        halt = race.halt()
        # It stands between its look at who it is and its look at their sends.
        stopping = halt.behind(lambda rows: list(rows.values_list("pk", flat=True)))
        monkeypatch.setattr("subscribers.rights.acts._lock", stopping)
        erasing = race.start_to(halt, lambda: erase(account))
        assert build.build(campaign.pk, size=100) == 1
        halt.released.set()
        erasing.result()
    send = Send.objects.get()
    assert (send.email, send.status, send.subscriber) == (None, "suppressed", None)


def test_confirming_at_the_same_moment_finds_nothing_to_confirm() -> None:
    signup = SignupFactory.create(email=ANN)
    with Race() as race:
        with transaction.atomic():
            erase(signup.account)
            confirming = race.start(lambda: confirm_signup(signup.pk, Origin()))
            confirming.wait_until_blocked()
        assert confirming.result().state is State.OVER
    assert not Subscriber.objects.exists()
    assert is_suppressed(signup.account, ANN)


def test_confirming_a_moment_before_is_erased_with_all_else() -> None:
    signup = SignupFactory.create(email=ANN)
    with Race() as race:
        with transaction.atomic():
            assert confirm_signup(signup.pk, Origin()).state is State.CONFIRMED
            erasing = race.start(lambda: erase(signup.account))
            erasing.wait_until_blocked()
        assert erasing.result().forgotten["subscribers"] == 1
    assert Signup.objects.get().email is None
    assert is_suppressed(signup.account, ANN)


def test_two_erasures_at_once() -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, email=ANN)
    with Race() as race:
        with transaction.atomic():
            assert erase(account).forgotten["subscribers"] == 1
            second = race.start(lambda: erase(account))
            second.wait_until_blocked()
        assert second.result().forgotten == {}
    assert Suppression.objects.count() == 1


@pytest.mark.parametrize("step", ["forget_signups", "replace_suppressions", "forget_admin_log"])
def test_a_session_that_is_lost_in_between_leaves_all_as_it_was(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, email=ANN)
    SignupFactory.create(account=account, email=ANN)
    suppress(account, ANN, "manual")
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(forgetting, step, halt.behind(getattr(forgetting, step)))
        erasing = race.start_to(halt, lambda: erase(account))
        erasing.kill_backend()
        halt.released.set()
        with pytest.raises(OperationalError):
            erasing.result()
    assert Subscriber.objects.filter(email=ANN).exists()
    assert Signup.objects.filter(email=ANN).exists()
    assert Suppression.objects.get().reason == "manual"
    assert erase(account).forgotten["subscribers"] == 1


# --- people and their list ------------------------------------------------------------------------


def test_a_suppression_at_the_same_moment_does_not_write_the_address_down_again() -> None:
    account = AccountFactory.create()
    everything_of(account)
    with Race() as race:
        with transaction.atomic():
            erase(account)
            other = race.start(lambda: suppress(account, ANN, "complaint", evidence="ARF"))
            other.wait_until_blocked()
        assert other.result().reason == "erased"
    row = Suppression.objects.get()
    assert (row.email, row.former_reason) == (None, "complaint")


def test_a_suppression_a_moment_before_is_replaced_with_all_others() -> None:
    account = AccountFactory.create()
    with Race() as race:
        with transaction.atomic():
            suppress(account, ANN, "complaint")
            other = race.start(lambda: erase(account))
            other.wait_until_blocked()
        assert other.result().forgotten == {"suppressions": 1}
    row = Suppression.objects.get()
    assert (row.email, row.former_reason) == (None, "complaint")


def test_an_unsubscription_at_the_same_moment_ends_well_either_way() -> None:
    account = AccountFactory.create()
    person = everything_of(account)
    with Race() as race:
        with transaction.atomic():
            erase(account)
            other = race.start(lambda: unsubscribe(person, evidence=f"{ANN} clicked"))
            other.wait_until_blocked()
        assert other.result() is False
    assert "ann@" not in everything_stored().lower()

    person = everything_of(account, "cid@example.org")
    with Race() as race:
        with transaction.atomic():
            unsubscribe(person, evidence="clicked")
            erasing = race.start(
                lambda: erase_person(account, "cid@example.org", by_name="Bea", reason="asked")
            )
            erasing.wait_until_blocked()
        assert erasing.result().forgotten["subscribers"] == 1
    assert "cid@" not in everything_stored().lower()


def test_a_change_of_address_a_moment_before_is_followed() -> None:
    account = AccountFactory.create()
    person = everything_of(account)
    with Race() as race:
        with transaction.atomic():
            Subscriber.objects.filter(pk=person.pk).update(email="new@example.org")
            erasing = race.start(lambda: erase(account))
            erasing.wait_until_blocked()
        erasing.result()
    assert "new@" not in everything_stored().lower()
    assert is_suppressed(account, "new@example.org")
