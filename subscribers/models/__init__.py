"""Accounts, people, the segments they are in, and the addresses that must not get mail."""

from __future__ import annotations

from .accounts import Account
from .attributes import AttributeDefinition
from .audit import AuditEvent
from .fields import lower_c
from .imports import ImportChunk, ImportJob, ImportReject, ImportRow
from .people import Membership, MembershipChange, Segment, Subscriber
from .roles import RoleGroup
from .signups import ConsentText, Signup, SignupAttempt, SignupForm
from .suppressions import Suppression

__all__ = [
    "Account",
    "AttributeDefinition",
    "AuditEvent",
    "ConsentText",
    "ImportChunk",
    "ImportJob",
    "ImportReject",
    "ImportRow",
    "Membership",
    "MembershipChange",
    "RoleGroup",
    "Segment",
    "Signup",
    "SignupAttempt",
    "SignupForm",
    "Subscriber",
    "Suppression",
    "lower_c",
]
