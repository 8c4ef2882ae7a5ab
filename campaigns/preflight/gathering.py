"""The facts of a campaign, read from the database; a fixed number of queries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from subscribers.conf import conf
from subscribers.database_clock import database_time
from subscribers.models import AttributeDefinition, Membership, Subscriber

from .. import audience, hooks
from ..content import CompiledContent, ContentError, compile_content
from ..models import Campaign
from . import field_counts
from .facts import Alike, Facts, FieldCounts
from .material import Material, prepare
from .people_checks import ACCOUNT, SYSTEM
from .timing_checks import RECENT

Status = Campaign.Status
#: Campaigns that say what is usual, and those that are compared with this one.
MAX_USUAL = 20
MAX_ALIKE = 20


def gather(campaign: Campaign, scheduled_for: datetime | None, now: datetime | None) -> Facts:
    """Everything that the checks ask about, as of now. ``now``: the database's time, where the
    caller has read it. Inside a transaction each statement sees what is committed before it."""
    moment = now or database_time()
    account = campaign.account
    include = list(campaign.segments.order_by("pk").values_list("pk", flat=True))
    exclude = list(campaign.exclude_segments.order_by("pk").values_list("pk", flat=True))
    people = audience.count(campaign)
    error, compiled = _compiled(campaign)
    material = None
    if compiled is not None:
        person = _somebody(account.pk, include, exclude) if people.addressed else None
        material = prepare(compiled, person)
    return Facts(
        now=moment,
        start=scheduled_for or campaign.scheduled_for or moment,
        zone=account.timezone,
        finish_by=campaign.finish_by,
        sources=_sources(campaign),
        content_error=error,
        material=material,
        definitions=dict(
            AttributeDefinition.objects.filter(account=account).values_list("key", "kind")
        ),
        fields=_field_counts(account.pk, include, exclude, material) if people.reached else None,
        has_segments=bool(include),
        audience=people,
        usual=_usual(campaign),
        alike=_alike(campaign, moment, include),
        account_name=account.name,
        postal_address=account.postal_address,
        account_from=account.from_email,
        other_domains=tuple(account.other_domains),
        transport=account.transport,
        transport_state=hooks.transport_state(account.pk, account.transport),
        duration=hooks.duration(campaign, people.reached),
        base_url=conf.BASE_URL,
        is_debug=settings.DEBUG,
    )


def _sources(campaign: Campaign) -> dict[str, str]:
    written = ("subject", "preheader", "body", "text_body")
    frame = {"layout": campaign.layout.body} if campaign.layout is not None else {}
    return {name: getattr(campaign, name) for name in written} | frame


def _compiled(campaign: Campaign) -> tuple[ContentError | None, CompiledContent | None]:
    try:
        return None, compile_content(campaign)
    except ContentError as error:
        return error, None


def _somebody(account_id: int, include: list[int], exclude: list[int]) -> dict[str, Any] | None:
    """One of the people who are addressed: whoever is found first."""
    members = Membership.objects.filter(subscriber=OuterRef("subscriber"), left_at__isnull=True)
    # Without an order: the first of a million in order of anything may take seconds to find.
    some = (
        Membership.objects.filter(
            ~Exists(members.filter(segment__in=exclude)),
            segment__in=include,
            left_at__isnull=True,
            subscriber__account=account_id,
            subscriber__status=Subscriber.Status.CONFIRMED,
        )
        .order_by()
        .values_list("subscriber__email", "subscriber__attributes")[:1]
    )
    found = next(iter(some), None)
    return None if found is None else {**(found[1] or {}), "email": found[0]}


def _field_counts(
    account_id: int, include: list[int], exclude: list[int], material: Material | None
) -> FieldCounts | None:
    if material is None:
        return None
    names = [
        name
        for name in material.fields
        if name.partition(".")[0] not in {*SYSTEM, "account"} and name not in ACCOUNT
    ]
    return field_counts.count(account_id, include, exclude, names) if names else None


def _usual(campaign: Campaign) -> tuple[int, ...]:
    """The audiences of the account's last campaigns."""
    last = Campaign.objects.filter(account=campaign.account_id, built_at__isnull=False)
    last = last.exclude(pk=campaign.pk).exclude(status=Status.CANCELED)
    return tuple(last.order_by("-pk").values_list("audience", flat=True)[:MAX_USUAL])


def _alike(campaign: Campaign, now: datetime, include: list[int]) -> tuple[Alike, ...]:
    """Campaigns of the account with the same body that were sent lately, or will be."""
    shared = Campaign.segments.through.objects.filter(campaign=OuterRef("pk"), segment__in=include)
    since = now - RECENT
    found = (
        Campaign.objects.filter(
            Q(started_at__gte=since) | Q(status=Status.APPROVED),
            account=campaign.account_id,
            body=campaign.body,
            body_format=campaign.body_format,
            layout=campaign.layout_id,
        )
        .exclude(pk=campaign.pk)
        .annotate(shares=Exists(shared))
        .order_by("-pk")
        .values_list("name", "subject", "started_at", "scheduled_for", "shares")[:MAX_ALIKE]
    )
    alike = []
    for name, subject, started, planned, shares in found:
        moment = started or planned
        if moment is not None:
            same = subject == campaign.subject
            alike.append(Alike(name, moment, same, shares, started is not None))
    return tuple(alike)
