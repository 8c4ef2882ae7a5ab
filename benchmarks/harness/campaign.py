"""Accounts, people and campaigns for the benchmarks, made in bulk. Needs Django set up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import message

if TYPE_CHECKING:
    from campaigns.models import Campaign
    from subscribers.models import Account, Segment


def account() -> Account:
    from subscribers.models import Account

    return Account.objects.create(
        name="Bench", slug="bench", from_email=message.FROM, postal_address="1 Example Street"
    )


def people(account: Account, count: int, slug: str = "all", first: int = 1) -> Segment:
    """A segment of ``count`` confirmed people with the message's merge fields."""
    from django.db import connection

    from subscribers.models import Segment

    segment = Segment.objects.create(account=account, name=slug.title(), slug=slug)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH made AS (INSERT INTO sendonce_subscribers_subscriber (account_id, email, status, "
            "attributes, locale, timezone, consent_source, created) "
            "SELECT %s, 'person' || n || '@example.org', 'confirmed', "
            "jsonb_build_object('first_name', 'Zoë ' || n, 'city', 'Łódź'), '', '', 'bench', now() "
            "FROM generate_series(%s, %s) AS n RETURNING id) "
            "INSERT INTO sendonce_subscribers_membership (segment_id, subscriber_id, joined_at) "
            "SELECT %s, id, now() FROM made",
            [account.pk, first, first + count - 1, segment.pk],
        )
        # What autovacuum does within a minute of such an import.
        cursor.execute("VACUUM (ANALYZE)")
    return segment


def approved(segment: Segment, name: str = "Bench") -> Campaign:
    """A campaign of the benchmarks' message to the segment, approved for now."""
    from campaigns import lifecycle
    from campaigns.models import Campaign

    campaign = Campaign.objects.create(
        account=segment.account, name=name, subject=message.SUBJECT, body=message.HTML
    )
    campaign.segments.add(segment)
    lifecycle.approve(campaign, by=None)
    return campaign


def build(campaign: Campaign) -> None:
    """Begin it and build all its rows, as workers do; nothing is sent."""
    from sending import build
    from subscribers.conf import conf

    type(campaign).objects.filter(pk=campaign.pk).update(
        status="sending", started_at=campaign.approved_at
    )
    build.build(campaign.pk, size=conf.BUILD_CHUNK)
