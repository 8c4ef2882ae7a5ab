"""Imports and what they hold."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from subscribers.models import (
    ImportChunk,
    ImportJob,
    ImportReject,
    ImportRow,
    Subscriber,
)

from .people import AccountFactory, SegmentFactory


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
