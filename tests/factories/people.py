"""Accounts, people, and what is known of them."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.utils import timezone
from factory.django import DjangoModelFactory

from subscribers.addresses import erased_hashes
from subscribers.models import (
    Account,
    AttributeDefinition,
    AuditEvent,
    Membership,
    MembershipChange,
    Segment,
    Subscriber,
    Suppression,
)


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
