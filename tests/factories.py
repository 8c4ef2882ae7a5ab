"""Objects for tests, valid under every constraint; traits make the states in between."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

import hashlib
import uuid
from datetime import timedelta
from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.utils import timezone
from factory.django import DjangoModelFactory

from campaigns.models import Campaign, Content
from sending.models import Send, Worker
from subscribers.addresses import erased_hashes
from subscribers.models import (
    Account,
    AttributeDefinition,
    AuditEvent,
    ConsentText,
    ImportChunk,
    ImportJob,
    ImportReject,
    ImportRow,
    Membership,
    MembershipChange,
    Segment,
    Signup,
    SignupAttempt,
    SignupForm,
    Subscriber,
    Suppression,
)

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


class StaffFactory(DjangoModelFactory):
    """A member of staff without any permission; ``superuser=True`` has all. The password is
    ``password``."""

    class Meta:
        model = get_user_model()
        skip_postgeneration_save = True

    class Params:
        superuser = factory.Trait(is_superuser=True)

    username = factory.Sequence(lambda n: f"staff{n}")
    email = factory.LazyAttribute(lambda o: f"{o.username}@example.org")
    is_staff = True
    password = factory.django.Password("password")


class AccountFactory(DjangoModelFactory):
    class Meta:
        model = Account
        skip_postgeneration_save = True

    name = factory.Sequence(lambda n: f"Account {n}")
    slug = factory.Sequence(lambda n: f"account-{n}")
    from_email = factory.LazyAttribute(lambda o: f"news@{o.slug}.example.org")
    from_name = factory.LazyAttribute(lambda o: o.name)
    postal_address = "1 Example Street, 12345 Exampleton"

    @factory.post_generation
    def members(self: Account, create: bool, extracted: Any, **_: Any) -> None:
        if create and extracted:
            self.members.add(*extracted)


class SegmentFactory(DjangoModelFactory):
    class Meta:
        model = Segment

    account = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Segment {n}")
    slug = factory.Sequence(lambda n: f"segment-{n}")


class SubscriberFactory(DjangoModelFactory):
    """Confirmed, in the segments given as ``segments=[...]`` (of the same account)."""

    class Meta:
        model = Subscriber
        skip_postgeneration_save = True

    class Params:
        pending = factory.Trait(status=Subscriber.Status.PENDING, confirmed_at=None)
        unsubscribed = factory.Trait(
            status=Subscriber.Status.UNSUBSCRIBED,
            unsubscribed_at=factory.LazyFunction(timezone.now),
        )

    account = factory.SubFactory(AccountFactory)
    email = factory.Sequence(lambda n: f"person{n}@example.org")
    status = Subscriber.Status.CONFIRMED
    confirmed_at = factory.LazyFunction(timezone.now)
    consent_source = "test"
    attributes = factory.Sequence(lambda n: {"first_name": f"Person {n}"})

    @factory.post_generation
    def segments(self: Subscriber, create: bool, extracted: Any, **_: Any) -> None:
        for segment in extracted or ():
            MembershipFactory.create(segment=segment, subscriber=self)


class MembershipFactory(DjangoModelFactory):
    class Meta:
        model = Membership

    class Params:
        left = factory.Trait(left_at=factory.LazyFunction(timezone.now))

    segment = factory.SubFactory(SegmentFactory)
    subscriber = factory.SubFactory(
        SubscriberFactory, account=factory.SelfAttribute("..segment.account")
    )


class SuppressionFactory(DjangoModelFactory):
    """``account=None`` is for all accounts; ``erased_email="..."`` makes an erased person."""

    class Meta:
        model = Suppression

    class Params:
        erased_email = None

    account = factory.SubFactory(AccountFactory)
    email = factory.Maybe(
        "erased_email", None, factory.Sequence(lambda n: f"suppressed{n}@example.org")
    )
    email_hash = factory.LazyAttribute(
        lambda o: erased_hashes(o.erased_email)[0] if o.erased_email else None
    )
    reason = factory.LazyAttribute(
        lambda o: Suppression.Reason.ERASED if o.erased_email else Suppression.Reason.MANUAL
    )


class MembershipChangeFactory(DjangoModelFactory):
    class Meta:
        model = MembershipChange

    segment = factory.SubFactory(SegmentFactory)
    subscriber = factory.SubFactory(
        SubscriberFactory, account=factory.SelfAttribute("..segment.account")
    )
    kind = MembershipChange.Kind.LEFT
    at = factory.LazyFunction(timezone.now)
    source = "test"


class AttributeDefinitionFactory(DjangoModelFactory):
    class Meta:
        model = AttributeDefinition

    account = factory.SubFactory(AccountFactory)
    key = factory.Sequence(lambda n: f"attribute_{n}")
    kind = AttributeDefinition.Kind.TEXT


class AuditEventFactory(DjangoModelFactory):
    class Meta:
        model = AuditEvent

    account = factory.SubFactory(AccountFactory)
    at = factory.LazyFunction(timezone.now)
    by_name = "somebody"
    verb = "test.act"
    subject = factory.Sequence(lambda n: f"subject{n}@example.org")


class ImportJobFactory(DjangoModelFactory):
    """A draft; its segment is one of the account's own."""

    class Meta:
        model = ImportJob

    account = factory.SubFactory(AccountFactory)
    segment = factory.SubFactory(SegmentFactory, account=factory.SelfAttribute("..account"))
    file_name = "people.csv"
    by_name = "somebody"
    created = factory.LazyFunction(timezone.now)


class ImportChunkFactory(DjangoModelFactory):
    class Meta:
        model = ImportChunk

    job = factory.SubFactory(ImportJobFactory)
    number = factory.Sequence(lambda n: n)
    data = b"email\nann@example.org\n"


class ImportRowFactory(DjangoModelFactory):
    class Meta:
        model = ImportRow

    job = factory.SubFactory(ImportJobFactory)
    line = factory.Sequence(lambda n: n + 2)
    email = factory.Sequence(lambda n: f"staged{n}@example.org")
    status = Subscriber.Status.CONFIRMED
    attributes = factory.LazyFunction(dict)
    locale = ""
    timezone = ""
    consent_source = "test"
    suppressed = ""


class ImportRejectFactory(DjangoModelFactory):
    class Meta:
        model = ImportReject

    job = factory.SubFactory(ImportJobFactory)
    line = factory.Sequence(lambda n: n + 2)
    reason = "test"
    cells = factory.LazyFunction(lambda: ["not an address", "x"])


class SignupFormFactory(DjangoModelFactory):
    """Into the segments given as ``segments=[...]``, by default into one of its own."""

    class Meta:
        model = SignupForm
        skip_postgeneration_save = True

    account = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Form {n}")
    slug = factory.Sequence(lambda n: f"form-{n}")
    consent_text = "Send me the newsletter. I can leave at any time."

    @factory.post_generation
    def segments(self: SignupForm, create: bool, extracted: Any, **_: Any) -> None:
        if create:
            chosen = (
                [SegmentFactory.create(account=self.account)] if extracted is None else extracted
            )
            self.segments.set(chosen)


class ConsentTextFactory(DjangoModelFactory):
    class Meta:
        model = ConsentText

    account = factory.SubFactory(AccountFactory)
    text = factory.Sequence(lambda n: f"Send me the newsletter ({n}).")
    digest = factory.LazyAttribute(lambda o: hashlib.sha256(o.text.encode()).hexdigest())
    created = factory.LazyFunction(timezone.now)


class SignupFactory(DjangoModelFactory):
    """A sign-up that waits; ``confirmed=True`` is the evidence of one that was confirmed."""

    class Meta:
        model = Signup

    class Params:
        confirmed = factory.Trait(
            confirmed_at=factory.LazyFunction(timezone.now),
            confirmed_from="192.0.2.2",
            confirmed_agent="Browser/1",
            subscriber=factory.SubFactory(
                SubscriberFactory,
                account=factory.SelfAttribute("..account"),
                email=factory.SelfAttribute("..email"),
            ),
        )

    account = factory.SubFactory(AccountFactory)
    form = factory.SubFactory(SignupFormFactory, account=factory.SelfAttribute("..account"))
    consent = factory.SubFactory(ConsentTextFactory, account=factory.SelfAttribute("..account"))
    email = factory.Sequence(lambda n: f"signup{n}@example.org")
    requested_at = factory.LazyFunction(timezone.now)
    requested_from = "192.0.2.1"
    requested_agent = "Browser/1"
    mails = 1
    mailed_at = factory.LazyFunction(timezone.now)


class SignupAttemptFactory(DjangoModelFactory):
    class Meta:
        model = SignupAttempt

    account = factory.SubFactory(AccountFactory)
    at = factory.LazyFunction(timezone.now)
    address_hash = factory.Sequence(lambda n: f"{n:064x}")
    network = "192.0.2.0/24"
    outcome = "mailed"


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
    """A draft to the segments given as ``segments=[...]``, by default to one of its own.

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
