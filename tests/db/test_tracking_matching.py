"""Of whom a provider event speaks; what is not shown to be ours changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from sending.models import CampaignHealth, DeliveryEvent, ProviderEvent
from sending.settle import settle
from sending.tracking import inbox as tracking
from subscribers.addresses import erased_hashes
from subscribers.conf import SMTP_BACKEND

from .rows import campaign_to, kinds_of, row, status_of, told
from .tracked import (
    DEAD,
    TOKEN,
    counts,
    event_of,
    handed,
    suppressions,
    tell,
)

pytestmark = pytest.mark.django_db


# --- whom it speaks of -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hard_bounce", "complained", "delivered", "rejected"])
@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"job_id": "campaign:999:999"}, "unknown_job"),
        ({"job_id": "send:999999999"}, "unknown_job"),
        ({"job_id": "send:" + "9" * 200}, "unknown_job"),
        ({"job_id": "send:-1"}, "unknown_job"),
        ({"job_id": "", "message_id": ""}, "unknown_job"),
        ({"job_id": "", "message_id": "another"}, "unknown_job"),
        ({"installation": "f" * 16}, "other_installation"),
        ({"installation": "", "message_id": "another"}, "unknown_job"),
        ({"recipient": "somebody@example.org"}, "wrong_recipient"),
        ({"recipient": "\u4f60@example.org"}, "wrong_recipient"),
    ],
)
def test_what_is_not_shown_to_be_ours_changes_nothing(
    kind: str, fields: dict[str, Any], result: str
) -> None:
    send = row(campaign_to(0), "in_doubt")
    assert tell(send, kind, **fields) == [result]
    assert (send.status, suppressions(), kinds_of(send)) == ("in_doubt", [], [])
    assert counts() == {f"Test {result}": 1}
    assert not CampaignHealth.objects.exists()


def test_another_tenants_job_with_our_recipient_changes_neither() -> None:
    mine, theirs = row(campaign_to(0), "in_doubt"), row(campaign_to(0), "in_doubt")
    assert tell(mine, "hard_bounce", job_id=theirs.job_id) == ["wrong_recipient"]
    assert [status_of(mine), status_of(theirs), suppressions()] == ["in_doubt", "in_doubt", []]


def test_what_was_never_handed_over() -> None:
    send = row(campaign_to(0))
    assert tell(send, "hard_bounce", "delivered", "rejected") == ["never_handed_over"] * 3
    assert (send.status, suppressions(), counts()) == (
        "queued",
        [],
        {"Test never_handed_over": 3},
    )


@pytest.mark.parametrize(
    "spelling", [str.upper, str.lower, lambda e: f" {e} ", lambda e: f"<{e}>", lambda e: ""]
)
def test_a_recipient_as_a_provider_may_spell_it(spelling: Callable[[str], str]) -> None:
    send = row(campaign_to(0), "in_doubt")
    assert send.email
    assert tell(send, "delivered", recipient=spelling(send.email)) == ["applied"]


def test_a_domain_in_either_script_is_one() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt", email="ann@xn--mnchen-3ya.example.org")
    assert tell(send, "delivered", recipient="ann@m\u00fcnchen.example.org") == ["applied"]


def test_a_job_id_may_travel_as_the_rows_number() -> None:
    send = row(campaign_to(0), "in_doubt", job_id="message:1:confirm:\u00fcber")
    assert tell(send, "delivered", job_id=f"send:{send.pk}") == ["applied"]
    assert send.status == "sent"


def test_without_metadata_the_message_id_and_the_recipient_decide() -> None:
    campaign = campaign_to(0)
    first, second = (row(campaign, "sent", provider_message_id="42") for _ in range(2))
    lone = {"esp": "Postal", "job_id": "", "installation": "", "message_id": "42"}
    assert tell(first, "hard_bounce", text=DEAD, **lone) == ["applied"]
    assert (first.status, status_of(second)) == ("bounced", "sent")
    # One id, and nobody says which of the two: nobody.
    assert tell(second, "hard_bounce", recipient="", **lone) == ["unknown_job"]
    assert status_of(second) == "sent"


def test_without_metadata_an_event_waits_for_the_outcome() -> None:
    send, claimed = handed()
    lone = {"esp": "MailerSend", "job_id": "", "installation": "", "message_id": "4711"}
    assert tell(send, "hard_bounce", text=DEAD, **lone) == ["waiting"]
    settle([told(claimed, "sent")], doubt_wait=600)  # the relay's id is 4711
    assert tracking.apply_waiting() == 1
    assert status_of(send) == "bounced"


def test_without_metadata_an_event_waits_but_not_for_ever() -> None:
    send = row(campaign_to(0), "in_doubt")
    lone = {"esp": "MailerSend", "job_id": "", "installation": "", "message_id": "foreign"}
    assert tell(send, "delivered", **lone) == ["waiting"]
    ProviderEvent.objects.update(received=timezone.now() - timedelta(hours=1))
    assert tracking.apply_waiting() == 1
    assert counts() == {"MailerSend unknown_job": 1}


def test_events_that_wait_do_not_hold_up_the_others() -> None:
    send = row(campaign_to(0), "in_doubt")
    lone = {"esp": "Postal", "job_id": "", "installation": "", "message_id": "foreign"}
    tracking.store([event_of(send, "queued", **lone) for _ in range(5)])
    tracking.store([event_of(send, "delivered")])
    assert tracking.apply_waiting(3) == 1
    assert status_of(send) == "sent"


POSTMARK = "anymail.backends.postmark.EmailBackend"


@override_settings(
    SENDONCE={
        "TRANSPORTS": {"default": {"BACKEND": SMTP_BACKEND}, "p:m": {"BACKEND": POSTMARK}},
    }
)
def test_an_event_of_a_provider_that_did_not_carry_it() -> None:
    pytest.importorskip("anymail")
    campaign = campaign_to(0)
    for via, esp, result in [
        ("p:m:abc", "SendGrid", "wrong_provider"),
        ("p:m:abc", "Postmark", "applied"),
        ("default:abc", "SendGrid", "wrong_provider"),  # no metadata went along by SMTP
        ("gone:abc", "SendGrid", "applied"),
        ("", "SendGrid", "applied"),
    ]:
        send = row(campaign, "in_doubt", via=via)
        assert tell(send, "hard_bounce", esp=esp, text=DEAD) == [result]
        assert send.status == ("bounced" if result == "applied" else "in_doubt")
    # The hand-over in doubt may have gone by another transport than the last one.
    send = row(campaign, "in_doubt", via="p:m:abc", doubt_tokens=[TOKEN])
    assert tell(send, "delivered", esp="SendGrid") == ["applied"]


# --- erased persons --------------------------------------------------------------------------


def test_of_an_erased_person_no_address_stays() -> None:
    campaign = campaign_to(0)
    address = "ann@example.org"
    send = row(campaign, "in_doubt", email=None, email_hash=erased_hashes(address)[0])
    send.refresh_from_db()
    said = f"550 5.1.1 <{address}> unknown"
    assert tell(send, "hard_bounce", recipient="Ann@Example.org", text=said) == ["applied"]
    assert (send.status, send.answer_text, suppressions()) == ("bounced", "", [])
    stored = ProviderEvent.objects.get()
    assert (stored.recipient, stored.text, DeliveryEvent.objects.get().text) == ("", "", "")
    assert send.email_hash == erased_hashes(address)[0]


def test_an_erased_person_is_told_from_others_by_the_hash() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt", email=None, email_hash=erased_hashes("ann@example.org")[0])
    assert tell(send, "complained", recipient="bob@example.org") == ["wrong_recipient"]
    assert suppressions() == []
    assert tell(send, "complained", recipient="ann@example.org") == ["applied"]
    assert (send.status, suppressions()) == ("sent", [])
