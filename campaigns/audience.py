"""Who a campaign addresses, as of now; the build asks the same in ``sending.sql``."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from subscribers.models import Membership, Segment, Subscriber
from subscribers.segments.big_counts import PAUSED, SUPPRESSED, merging, one_snapshot, present

from .models import Campaign

_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table


@dataclass(frozen=True, slots=True)
class Share:
    """What one segment does to an audience, in people who have confirmed. An included one brings
    ``people`` (somebody in two is brought by both), an excluded one takes so many away of those
    whom any included one brings."""

    segment: Segment
    people: int


@dataclass(frozen=True, slots=True)
class Audience:
    """Numbers of people. ``suppressed`` and ``paused`` are among ``addressed`` and get nothing;
    who is both counts as suppressed."""

    addressed: int = 0
    suppressed: int = 0
    paused: int = 0
    included: tuple[Share, ...] = ()
    excluded: tuple[Share, ...] = ()

    @property
    def reached(self) -> int:
        return self.addressed - self.suppressed - self.paused


def addressed(campaign: Campaign) -> QuerySet[Subscriber]:
    """Confirmed people in a segment of the campaign and in none that it excludes."""
    members = Membership.objects.filter(subscriber=OuterRef("pk"), left_at__isnull=True)
    include = [segment.pk for segment in _segments(campaign.segments.all())]
    exclude = [segment.pk for segment in _segments(campaign.exclude_segments.all())]
    return Subscriber.objects.filter(
        Exists(members.filter(segment__in=include)),
        ~Exists(members.filter(segment__in=exclude)),
        account=campaign.account_id,
        status=Subscriber.Status.CONFIRMED,
    )


def count(campaign: Campaign) -> Audience:
    """Count the people now, exactly, in one snapshot; a million takes less than a second."""
    include = _segments(campaign.segments.all())
    exclude = _segments(campaign.exclude_segments.all())
    if not include:
        return Audience(excluded=tuple(Share(segment, 0) for segment in exclude))
    ids = {f"include_{n}": segment.pk for n, segment in enumerate(include)}
    ids |= {f"exclude_{n}": segment.pk for n, segment in enumerate(exclude)}
    parameters = {"account": campaign.account_id, **ids}
    with one_snapshot() as cursor:
        with merging(cursor):
            cursor.execute(count_sql(len(include), len(exclude)), parameters)
            people, paused, *shares = cursor.fetchone()
        cursor.execute(suppressed_sql(len(include), len(exclude)), parameters)
        suppressed, both = cursor.fetchone()
    return Audience(
        addressed=people,
        suppressed=suppressed,
        paused=paused - both,
        included=tuple(map(Share, include, shares[: len(include)])),
        excluded=tuple(map(Share, exclude, shares[len(include) :])),
    )


def count_sql(include: int, exclude: int) -> str:
    """The statement that counts with so many segments: people, paused ones among them, and the
    share of each segment.

    A join for each segment and not one for all: (segment, person) is unique, so that nobody is
    counted twice, and each is read from the index of present members, in the people's order.
    """
    inside, joins, kept = joined_sql(include, exclude)
    included, excluded = list(inside)[:include], list(inside)[include:]
    brought = f"({' OR '.join(inside[name] for name in included)})"
    shares = [
        *(f"count(*) FILTER (WHERE {inside[name]})" for name in included),
        *(f"count(*) FILTER (WHERE {brought} AND {inside[name]})" for name in excluded),
    ]
    return f"""
        SELECT {
        ", ".join(
            [
                f"count(*) FILTER (WHERE {kept})",
                f"count(*) FILTER (WHERE {kept} AND {PAUSED})",
                *shares,
            ]
        )
    }
        FROM {_SUBSCRIBER} p {joins}
        WHERE p.account_id = %(account)s AND p.status = 'confirmed'"""


def joined_sql(include: int, exclude: int) -> tuple[dict[str, str], str, str]:
    """To people ``p`` of an account, by so many segments: the condition of being in each, by the
    name of its parameter, the joins, and the condition of being in the audience."""
    included = [f"include_{n}" for n in range(include)]
    excluded = [f"exclude_{n}" for n in range(exclude)]
    # With one segment its members are all there is to look at, be the account ever so large.
    joins = [
        f"""{"JOIN" if included == [name] else "LEFT JOIN"} {_MEMBERSHIP} {name}
            ON {name}.segment_id = %({name})s AND {name}.subscriber_id = p.id
            AND {name}.left_at IS NULL"""
        for name in (*included, *excluded)
    ]
    inside = {name: f"{name}.subscriber_id IS NOT NULL" for name in (*included, *excluded)}
    brought = f"({' OR '.join(inside[name] for name in included)})"
    kept = " AND ".join([brought, *(f"NOT {inside[name]}" for name in excluded)])
    return inside, " ".join(joins), kept


def suppressed_sql(include: int, exclude: int) -> str:
    """The statement that counts those of the audience who are suppressed, and the paused ones
    among these."""
    brought = " OR ".join(present(f"%(include_{n})s") for n in range(include))
    kept = [f"({brought})", *(f"NOT {present(f'%(exclude_{n})s')}" for n in range(exclude))]
    return f"""
        SELECT count(*), count(*) FILTER (WHERE {PAUSED}) FROM {_SUBSCRIBER} p
        WHERE p.account_id = %(account)s AND p.status = 'confirmed' AND {SUPPRESSED}
            AND {" AND ".join(kept)}"""


def _segments(segments: QuerySet[Segment]) -> list[Segment]:
    return list(segments.order_by("name", "pk"))
