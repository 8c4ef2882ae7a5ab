"""One person's copy of what the ledger knows of them."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from sending.erasure import erase_personal_data
from sending.models import Send
from sending.personal_data import personal_data
from subscribers.suppression import suppress
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ContentFactory,
    SendFactory,
    SubscriberFactory,
)

from .rows import campaign_to, member, row
from .tracked import tell

pytestmark = pytest.mark.django_db


def _again(send: Send) -> Send:
    return Send.objects.get(pk=send.pk)


# --- a person's copy -------------------------------------------------------------------------


def test_a_person_s_copy_holds_their_sends_and_what_was_told() -> None:
    account = AccountFactory.create()
    campaign = CampaignFactory.create(account=account, sent=True, name="May", subject="Hi {{ x }}")
    person = SubscriberFactory.create(account=account, email="Ann@example.org")
    mine = SendFactory.create(
        campaign=campaign, subscriber=person, sent=True, answer_text="queued as 1"
    )
    SendFactory.create(campaign=campaign)
    old = SendFactory.create(
        transactional=True, account=account, email="ann@EXAMPLE.org", subscriber=None,
        context={"n": 1}, content=ContentFactory.create(account=account, subject="Confirm"),
    )  # fmt: skip
    assert tell(mine, "delivered", text="taken") == ["applied"]
    other = campaign_to(0)
    tell(row(other, "sent", subscriber=member(other, email="ann@example.org")), "delivered")
    copy = personal_data(account.pk, person.pk, "ann@example.org")
    first, second = copy["sends"]
    assert (first["campaign"], first["subject"], first["to"]) == (
        "May", "Hi {{ x }}", "Ann@example.org",
    )  # fmt: skip
    assert (first["status"], first["last_answer"]) == ("sent", "250 queued as 1")
    assert first["sent"] == _again(mine).sent_at.isoformat()  # type: ignore[union-attr]
    assert [(e["what"], e["answer"]) for e in first["events"]] == [("delivered", "taken")]
    assert (second["campaign"], second["subject"], second["data"]) == (None, "Confirm", {"n": 1})
    assert second["to"] == old.email
    assert [(e["what"], e["recipient"]) for e in copy["provider_events"]] == [
        ("delivered", "Ann@example.org")
    ]
    assert json.loads(json.dumps(copy)) == copy


def test_nothing_is_known_of_a_stranger() -> None:
    account = AccountFactory.create()
    SendFactory.create(sent=True)
    assert personal_data(account.pk, None, "who@example.org") == {
        "sends": [],
        "provider_events": [],
    }


def test_a_suppressed_address_needs_no_ledger_to_be_forgotten() -> None:
    account = AccountFactory.create()
    suppress(account, "ann@example.org", "erased")
    with transaction.atomic():
        counts = erase_personal_data(account.pk, None, "ann@example.org", "x")
    assert not any(counts.values())
