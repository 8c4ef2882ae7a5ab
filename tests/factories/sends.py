"""Contents, campaigns and sends."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from campaigns.models import Campaign, Content
from sending.models import Send, Worker

from .people import AccountFactory, SegmentFactory, SubscriberFactory

BODY = """\
<!doctype html>
<html lang="en"><body>
<p>Hello {{ first_name|default:"there" }},</p>
<p>the spring catalogue is here.</p>
<p><a href="https://www.example.org/spring">Have a look</a></p>
<p>{{ account.name }}, {{ account.postal_address }}<br>
<a href="{{ unsubscribe_url }}">Unsubscribe</a></p>
</body></html>
"""
TEXT = """\
Hello {{ first_name|default:"there" }},

the spring catalogue is here: https://www.example.org/spring

Unsubscribe: {{ unsubscribe_url }}
"""


class ContentFactory(DjangoModelFactory):
    class Meta:
        model = Content

    account = factory.SubFactory(AccountFactory)
    subject = 'Spring, {{ first_name|default:"dear reader" }}'
    preheader = "What is new"
    html = BODY
    text = TEXT
    from_email = factory.SelfAttribute("account.from_email")
    from_name = factory.SelfAttribute("account.from_name")
    account_fields = factory.LazyAttribute(
        lambda o: {
            "name": o.account.name,
            "slug": o.account.slug,
            "postal_address": o.account.postal_address,
        }
    )


class CampaignFactory(DjangoModelFactory):
    """A draft to the segments given as ``segments=[...]``, by default to one of its own; with
    ``readers=3`` there are three people in the first, without whom it can't be approved.

    The traits ``approved``, ``sending``, ``paused``, ``sent`` and ``canceled`` are states as
    the database allows them, not ones that the lifecycle made: no approval is recorded and no
    row built.
    """

    class Meta:
        model = Campaign
        skip_postgeneration_save = True

    class Params:
        is_approved = factory.Trait(
            content=factory.SubFactory(
                ContentFactory,
                account=factory.SelfAttribute("..account"),
                subject=factory.SelfAttribute("..subject"),
            ),
            scheduled_for=factory.LazyFunction(lambda: timezone.now() - timedelta(minutes=1)),
            approved_at=factory.LazyFunction(lambda: timezone.now() - timedelta(minutes=2)),
            approved_digest="0" * 64,
        )
        is_started = factory.Trait(is_approved=True, started_at=factory.LazyFunction(timezone.now))
        approved = factory.Trait(is_approved=True, status=Campaign.Status.APPROVED)
        sending = factory.Trait(is_started=True, status=Campaign.Status.SENDING)
        paused = factory.Trait(is_started=True, status=Campaign.Status.PAUSED)
        sent = factory.Trait(
            is_started=True,
            status=Campaign.Status.SENT,
            built_at=factory.LazyFunction(timezone.now),
            finished_at=factory.LazyFunction(timezone.now),
        )
        canceled = factory.Trait(is_approved=True, status=Campaign.Status.CANCELED)

    account = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Campaign {n}")
    subject = 'Spring, {{ first_name|default:"dear reader" }}'
    preheader = "What is new"
    body = BODY

    @factory.post_generation
    def segments(self: Campaign, create: bool, extracted: Any, **_: Any) -> None:
        if create:
            chosen = (
                [SegmentFactory.create(account=self.account)] if extracted is None else extracted
            )
            self.segments.set(chosen)

    @factory.post_generation
    def readers(self: Campaign, create: bool, extracted: Any, **_: Any) -> None:
        if create and extracted:
            first = list(self.segments.order_by("pk")[:1])
            SubscriberFactory.create_batch(extracted, account=self.account, segments=first)

    @factory.post_generation
    def exclude_segments(self: Campaign, create: bool, extracted: Any, **_: Any) -> None:
        if create and extracted:
            self.exclude_segments.set(extracted)


class WorkerFactory(DjangoModelFactory):
    class Meta:
        model = Worker

    host = "worker.example.org"
    pid = factory.Sequence(lambda n: 1000 + n)
    lanes = 2
    started = factory.LazyFunction(timezone.now)
    seen = factory.LazyFunction(timezone.now)


class SendFactory(DjangoModelFactory):
    """A queued row of a sending campaign; ``transactional=True`` has no campaign.

    The states beyond ``queued`` as traits: ``claimed``, ``handed_over`` (status ``sending``),
    ``retry``, ``sent``, ``bounced``, ``failed``, ``suppressed``, ``in_doubt``, ``canceled``.
    """

    class Meta:
        model = Send

    class Params:
        held = factory.Trait(
            claim_token=factory.LazyFunction(uuid.uuid4),
            worker=factory.SubFactory(WorkerFactory),
            lease_until=factory.LazyFunction(lambda: timezone.now() + timedelta(minutes=1)),
        )
        tried = factory.Trait(attempts=1, handed_at=factory.LazyFunction(timezone.now))
        claimed = factory.Trait(held=True, status=Send.Status.CLAIMED)
        handed_over = factory.Trait(held=True, tried=True, status=Send.Status.SENDING)
        retry = factory.Trait(
            tried=True,
            status=Send.Status.RETRY,
            next_attempt_at=factory.LazyFunction(lambda: timezone.now() + timedelta(seconds=30)),
            answer_stage="rcpt",
            answer_code=451,
        )
        sent = factory.Trait(
            tried=True,
            status=Send.Status.SENT,
            claim_token=factory.LazyFunction(uuid.uuid4),
            sent_at=factory.LazyFunction(timezone.now),
            answer_stage="dot",
            answer_code=250,
        )
        bounced = factory.Trait(
            tried=True,
            status=Send.Status.BOUNCED,
            answer_stage="rcpt",
            answer_code=550,
            answer_enhanced="5.1.1",
        )
        failed = factory.Trait(tried=True, status=Send.Status.FAILED)
        suppressed = factory.Trait(status=Send.Status.SUPPRESSED, reason="suppressed")
        in_doubt = factory.Trait(
            tried=True,
            status=Send.Status.IN_DOUBT,
            claim_token=factory.LazyFunction(uuid.uuid4),
            answer_stage="dot",
        )
        canceled = factory.Trait(status=Send.Status.CANCELED)
        transactional = factory.Trait(
            campaign=None,
            account=factory.SubFactory(AccountFactory),
            content=factory.SubFactory(ContentFactory, account=factory.SelfAttribute("..account")),
            context=factory.LazyFunction(dict),
            expires=factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1)),
            job_id=factory.LazyAttributeSequence(lambda o, n: f"message:{o.account.pk}:test:{n}"),
        )

    campaign = factory.SubFactory(CampaignFactory, sending=True)
    account = factory.SelfAttribute("campaign.account")
    subscriber = factory.SubFactory(SubscriberFactory, account=factory.SelfAttribute("..account"))
    email = factory.SelfAttribute("subscriber.email")
    job_id = factory.LazyAttribute(lambda o: f"campaign:{o.campaign.pk}:{o.subscriber.pk}")
