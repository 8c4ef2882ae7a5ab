"""Erasing and exporting one person, and the rows of others: who had the address before, who has a
former address now, whose address ends alike, and who is another account's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from sending.tracking import inbox
from subscribers.addresses import erased_hashes
from subscribers.leaving.address_change import AddressChange, change_address
from subscribers.models import Account, AuditEvent, Signup, Subscriber
from subscribers.rights.acts import erase_person, export_person
from subscribers.tokens import Kind, make_token
from tests.factories import (
    AccountFactory,
    AuditEventFactory,
    CampaignFactory,
    ImportJobFactory,
    ImportRejectFactory,
    SignupFactory,
    SubscriberFactory,
)

from .forgotten import places_of
from .rows import campaign_to, member, row
from .signups import asked, visitor
from .test_preferences_address import confirmed
from .tracked import event_of

pytestmark = pytest.mark.django_db(transaction=True)


def move(person: Subscriber, email: str) -> None:
    assert change_address(confirmed(person, email)) is AddressChange.CHANGED
    person.refresh_from_db()


def exported(account: Account, email: str) -> str:
    return json.dumps(export_person(account, email), ensure_ascii=False)


# --- an address that had another owner -----------------------------------------------------------


def test_erasing_somebody_forgets_nothing_of_who_has_their_former_address() -> None:
    campaign = campaign_to(0)
    ann, bob = member(campaign, email="a@example.org"), member(campaign, email="b@example.org")
    anns = row(campaign, "sent", subscriber=ann)
    move(ann, "ann.new@example.org")
    move(bob, "a@example.org")
    later = CampaignFactory.create(
        account=campaign.account, sending=True, segments=list(campaign.segments.all())
    )
    bobs = row(later, subscriber=bob)
    erase_person(campaign.account, "ann.new@example.org", reason="asked")
    bobs.refresh_from_db()
    anns.refresh_from_db()
    assert (bobs.status, bobs.email, bobs.subscriber_id) == ("queued", "a@example.org", bob.pk)
    assert (anns.status, anns.email) == ("sent", None)
    assert list(Subscriber.objects.values_list("email", flat=True)) == ["a@example.org"]


def test_erasing_an_address_keeps_what_its_former_owner_agreed_to() -> None:
    account = AccountFactory.create()
    bob = SubscriberFactory.create(account=account, email="x@example.org")
    agreed = SignupFactory.create(
        account=account, email="x@example.org", confirmed=True, subscriber=bob
    )
    words = (agreed.consent_id, agreed.requested_from, agreed.confirmed_from)
    move(bob, "bob@example.org")
    SubscriberFactory.create(account=account, email="x@example.org")
    erase_person(account, "x@example.org", reason="asked")
    agreed.refresh_from_db()
    assert agreed.subscriber_id == bob.pk
    assert (agreed.consent_id, agreed.requested_from, agreed.confirmed_from) == words
    assert (agreed.email, agreed.email_hash) == (None, erased_hashes("x@example.org")[0])


def test_an_export_does_not_tell_what_was_sent_to_the_former_owner() -> None:
    campaign = campaign_to(0, name="The secret campaign")
    bob = member(campaign, email="x@example.org")
    row(campaign, "sent", subscriber=bob)
    move(bob, "bob@example.org")
    member(campaign, email="x@example.org")
    told = exported(campaign.account, "x@example.org")
    assert "The secret campaign" not in told
    assert make_token(Kind.PREFERENCES, bob.pk, None) not in told
    assert "The secret campaign" in exported(campaign.account, "bob@example.org")


def test_an_export_does_not_tell_where_the_former_owner_asked_from() -> None:
    campaign = campaign_to(0)
    bob = member(campaign, email="b@example.org")
    wish = confirmed(bob, "x@example.org")
    Signup.objects.filter(pk=wish.pk).update(requested_from="198.51.100.77")
    visitor().post(f"/u/{make_token(Kind.CONFIRM, wish.pk, None)}")
    bob.refresh_from_db()
    assert bob.email == "x@example.org"
    assert "198.51.100.77" in exported(campaign.account, "x@example.org")
    move(bob, "bob@example.org")
    member(campaign, email="x@example.org")
    assert "198.51.100.77" not in exported(campaign.account, "x@example.org")


# --- addresses that end alike --------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", ["o'brien@example.org", "o\u2019brien@example.org", "r&brien@example.org"]
)
def test_an_address_with_an_apostrophe_is_not_its_ending(other: str) -> None:
    account = AccountFactory.create()
    job = ImportJobFactory.create(account=account, status="done")
    cells = [other, "Secretville"]
    reject = ImportRejectFactory.create(job=job, cells=cells, reason="late")
    entry = AuditEventFactory.create(account=account, subject=other, reason=f"{other} called")
    SubscriberFactory.create(account=account, email="brien@example.org")
    assert "Secretville" not in exported(account, "brien@example.org")
    erase_person(account, "brien@example.org", reason="asked")
    reject.refresh_from_db()
    entry.refresh_from_db()
    assert reject.cells == cells
    assert (entry.subject, entry.reason) == (other, f"{other} called")


def test_an_address_between_apostrophes_is_found_all_the_same() -> None:
    account = AccountFactory.create()
    AuditEventFactory.create(account=account, subject="x", reason="they wrote 'brien@example.org'")
    erase_person(account, "brien@example.org", reason="asked")
    assert places_of("brien@example.org") == []


def test_a_quoted_local_part_is_found_in_every_form_in_which_it_is_stored() -> None:
    account = AccountFactory.create()
    email = '"john smith"@example.org'
    SubscriberFactory.create(account=account, email=email)
    job = ImportJobFactory.create(account=account, status="done", preview={"rows": [[email, "x"]]})
    ImportRejectFactory.create(job=job, cells=[email, "x"], reason="late")
    AuditEventFactory.create(account=account, subject="x", detail={"was": [email]})
    assert places_of("john smith")
    erase_person(account, email, reason="asked")
    assert places_of("john smith") == []


# --- what is in an export ------------------------------------------------------------------------


def test_an_export_has_no_link_with_which_somebody_could_act_as_the_person() -> None:
    form, link = asked("ann@example.org")
    told = exported(form.account, "ann@example.org")
    assert link.removeprefix("/u/") not in told
    assert "(link)" in told


def test_an_event_that_waits_to_be_applied_is_told_to_its_own_account_alone() -> None:
    send = row(campaign_to(0), "sent")
    assert send.email is not None
    inbox.store([event_of(send, "bounced", text="the secret words")])
    assert "the secret words" in exported(send.account, send.email)
    assert "the secret words" not in exported(AccountFactory.create(), send.email)


def test_an_export_of_an_erased_person_does_not_write_the_address_down_again(
    tmp_path: Path,
) -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, email="ann@example.org")
    erase_person(account, "ann@example.org", reason="asked")
    output = str(tmp_path / "ann.json")
    call_command("export_person", "ann@example.org", account=account.slug, output=output)
    assert places_of("ann@example.org") == []
    entry = AuditEvent.objects.get(verb="person.export")
    assert entry.subject_hash == erased_hashes("ann@example.org")[0]
