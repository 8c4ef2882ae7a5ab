"""The factories make rows that the database accepts, in every state they offer."""

from __future__ import annotations

from typing import Any

import pytest

from campaigns.models import Campaign
from sending.models import Send
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "made_by",
    [
        factories.StaffFactory,
        factories.AccountFactory,
        factories.SegmentFactory,
        factories.SubscriberFactory,
        factories.MembershipFactory,
        factories.SuppressionFactory,
        factories.MembershipChangeFactory,
        factories.AttributeDefinitionFactory,
        factories.AuditEventFactory,
        factories.ImportChunkFactory,
        factories.ImportRejectFactory,
        factories.SignupFormFactory,
        factories.ConsentTextFactory,
        factories.SignupFactory,
        factories.SignupAttemptFactory,
        factories.ContentFactory,
        factories.CampaignFactory,
        factories.WorkerFactory,
        factories.SendFactory,
    ],
)
def test_two_of_each_are_valid_side_by_side(made_by: Any) -> None:
    made_by.create().full_clean()
    made_by.create().full_clean()


@pytest.mark.parametrize("status", Campaign.Status.values)
def test_campaign_in_every_status(status: str) -> None:
    trait = {} if status == "draft" else {status: True}
    assert factories.CampaignFactory.create(**trait).status == status


@pytest.mark.parametrize("status", Send.Status.values)
@pytest.mark.parametrize("kind", [{}, {"transactional": True}])
def test_send_in_every_status(status: str, kind: dict[str, bool]) -> None:
    trait = {"queued": {}, "sending": {"handed_over": True}}.get(status, {status: True})
    send = factories.SendFactory.create(**kind, **trait)
    assert send.status == status
    assert send.account == (send.content or send.campaign).account


def test_an_erased_suppression_keeps_no_address() -> None:
    erased = factories.SuppressionFactory.create(erased_email="ann@example.org")
    assert erased.email is None
    assert erased.email_hash


def test_people_join_the_segments_given() -> None:
    segment = factories.SegmentFactory.create()
    person = factories.SubscriberFactory.create(account=segment.account, segments=[segment])
    assert list(segment.subscribers.all()) == [person]
