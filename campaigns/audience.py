"""Who a campaign addresses, as of now; the build asks the same in ``sending.sql``."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from subscribers.models import Membership, Segment, Subscriber, Suppression

from .models import Campaign


@dataclass(frozen=True, slots=True)
class Audience:
    """Numbers of people. ``suppressed`` are among ``addressed`` and get nothing."""

    addressed: int
    suppressed: int

    @property
    def reached(self) -> int:
        return self.addressed - self.suppressed


def addressed(campaign: Campaign) -> QuerySet[Subscriber]:
    """Confirmed people in a segment of the campaign and in none that it excludes."""
    present = Membership.objects.filter(subscriber=OuterRef("pk"), left_at__isnull=True)
    return Subscriber.objects.filter(
        Exists(present.filter(segment__in=_ids(campaign.segments.all()))),
        ~Exists(present.filter(segment__in=_ids(campaign.exclude_segments.all()))),
        account=campaign.account_id,
        status=Subscriber.Status.CONFIRMED,
    )


def count(campaign: Campaign) -> Audience:
    """Count the people now, in one statement."""
    suppressed = Suppression.objects.filter(
        Q(account=OuterRef("account")) | Q(account__isnull=True),
        Q(expires__isnull=True) | Q(expires__gt=Now()),
        email_lower=OuterRef("email_lower"),
    )
    found = (
        addressed(campaign)
        .order_by()
        .annotate(is_suppressed=Exists(suppressed))
        .aggregate(addressed=Count("pk"), suppressed=Count("pk", filter=Q(is_suppressed=True)))
    )
    return Audience(**found)


def _ids(segments: QuerySet[Segment]) -> list[int]:
    return list(segments.order_by().values_list("pk", flat=True))
