"""What the checks know; nothing else decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ..audience import Audience
from ..content import ContentError
from ..forecasts import Duration, TransportState
from .material import Material


@dataclass(frozen=True, slots=True)
class FieldCounts:
    """Of the people who would get it: how many have nothing in a field, by the field as written.
    None of them: all have it. ``people`` is how many there are; ``in_time`` False: counting took
    too long and ``lacking`` is empty; ``left_out``: fields that were too many to be counted."""

    people: int = 0
    lacking: Mapping[str, int] = field(default_factory=dict)
    in_time: bool = True
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Alike:
    """A campaign that has this one's body. ``sent`` is when it started, or is to, as ``started``
    says; ``same_subject`` and ``shares_segments`` say what else is alike."""

    name: str
    sent: datetime
    same_subject: bool
    shares_segments: bool
    started: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A campaign on the way to its approval. ``start`` is when it would begin, ``now`` the
    database's clock, ``zone`` the account's time zone.

    ``sources`` is what people wrote, by field: ``subject``, ``preheader``, ``body``, ``text_body``
    and ``layout``, the frame around it. ``material`` is None exactly where ``content_error`` is
    not. ``definitions`` are the attributes that the account has defined, with their kinds.
    ``usual`` are the audiences of its last campaigns.
    """

    now: datetime
    start: datetime
    zone: str = "UTC"
    finish_by: datetime | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    content_error: ContentError | None = None
    material: Material | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    fields: FieldCounts | None = None
    has_segments: bool = True
    audience: Audience = field(default_factory=Audience)
    usual: tuple[int, ...] = ()
    alike: tuple[Alike, ...] = ()
    account_name: str = ""
    postal_address: str = ""
    account_from: str = ""
    other_domains: tuple[str, ...] = ()
    transport: str = "default"
    transport_state: TransportState = field(default_factory=TransportState)
    duration: Duration | None = None
    base_url: str = "https://www.example.org"
    is_debug: bool = False
