"""The host's own code at work: people, a campaign and its approval, through the Python API."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser

from campaigns import lifecycle
from campaigns.models import Campaign
from subscribers.models import Account, Membership, Segment, Subscriber


class Command(BaseCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("transport")
        parser.add_argument("addresses", nargs="+")

    def handle(self, **options: Any) -> None:
        users: Any = get_user_model()  # not the one of the project that mypy knows
        clerk, _ = users.objects.get_or_create(badge="7", is_superuser=True)
        account = Account.objects.create(
            name="The shop",
            slug=f"shop-{options['transport']}",
            from_email="news@example.org",
            postal_address="1 Example Street, 12345 Exampleton",
            transport=options["transport"],
        )
        account.members.add(clerk)
        everybody = Segment.objects.create(account=account, name="All", slug="all")
        for address in options["addresses"]:
            person = Subscriber.objects.create(account=account, email=address, status="confirmed")
            Membership.objects.create(segment=everybody, subscriber=person)
        campaign = Campaign.objects.create(
            account=account,
            name="News",
            subject="News",
            body='<p>Hello {{ email }}</p><p><a href="{{ unsubscribe_url }}">Leave</a></p>',
            created_by=clerk,
        )
        campaign.segments.add(everybody)
        lifecycle.approve(campaign, by=clerk)
        self.stdout.write(str(campaign.pk))
