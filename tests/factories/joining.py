"""Sign-ups."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

import hashlib
from typing import Any

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from subscribers.models import (
    ConsentText,
    Signup,
    SignupAttempt,
    SignupForm,
)

from .people import AccountFactory, SegmentFactory, SubscriberFactory


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
