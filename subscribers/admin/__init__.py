"""The admin of who gets mail. Stock classes: a host may subclass and register them again."""

from __future__ import annotations

from .accounts import AccountAdmin
from .attributes import AttributeDefinitionAdmin
from .audit import AuditEventAdmin
from .imports import ImportJobAdmin
from .meanwhile import NothingOverwritten
from .parts import AddressSearch, StyledMedia
from .people import SubscriberAdmin
from .segments import MembershipAdmin, MembershipChangeAdmin, SegmentAdmin
from .signups import ConsentTextAdmin, SignupAdmin, SignupAttemptAdmin, SignupFormAdmin
from .suppressions import SuppressionAdmin

__all__ = [
    "AccountAdmin",
    "AddressSearch",
    "AttributeDefinitionAdmin",
    "AuditEventAdmin",
    "ConsentTextAdmin",
    "ImportJobAdmin",
    "MembershipAdmin",
    "MembershipChangeAdmin",
    "NothingOverwritten",
    "SegmentAdmin",
    "SignupAdmin",
    "SignupAttemptAdmin",
    "SignupFormAdmin",
    "StyledMedia",
    "SubscriberAdmin",
    "SuppressionAdmin",
]
