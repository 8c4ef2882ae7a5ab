"""Objects for tests, valid under every constraint; traits make the states in between."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

from .imports import ImportChunkFactory, ImportJobFactory, ImportRejectFactory, ImportRowFactory
from .joining import ConsentTextFactory, SignupAttemptFactory, SignupFactory, SignupFormFactory
from .library import ImageFactory, LayoutFactory
from .people import (
    AccountFactory,
    AttributeDefinitionFactory,
    AuditEventFactory,
    MembershipChangeFactory,
    MembershipFactory,
    SegmentFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)
from .sends import CampaignFactory, ContentFactory, SendFactory, WorkerFactory

__all__ = [
    "AccountFactory",
    "AttributeDefinitionFactory",
    "AuditEventFactory",
    "CampaignFactory",
    "ConsentTextFactory",
    "ContentFactory",
    "ImageFactory",
    "ImportChunkFactory",
    "ImportJobFactory",
    "ImportRejectFactory",
    "ImportRowFactory",
    "LayoutFactory",
    "MembershipChangeFactory",
    "MembershipFactory",
    "SegmentFactory",
    "SendFactory",
    "SignupAttemptFactory",
    "SignupFactory",
    "SignupFormFactory",
    "StaffFactory",
    "SubscriberFactory",
    "SuppressionFactory",
    "WorkerFactory",
]
