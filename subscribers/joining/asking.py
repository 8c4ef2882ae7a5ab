"""Asking to join: what a sign-up form does with what somebody typed into it.

Anybody can type anybody's address, so a request changes nothing but this: a ``Signup`` that waits,
and one mail with a link. What we know of the address is not even looked at, so no answer can tell
it; whether the address may be written to is decided when the mail is handed over.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from ..addresses import lower
from ..client_address import network
from ..models import Account, ConsentText, Signup, SignupForm
from ..read_committed import read_committed
from .limits import Verdict, attempt
from .mail import queue_mail
from .window import still_confirms


@dataclass(frozen=True)
class Origin:
    """Where a request came from, for the evidence. ``address`` is an IP address."""

    address: str | None = None
    agent: str = ""


@dataclass(frozen=True)
class Entry:
    """What was typed, already valid: ``email`` in its stored form, ``attributes`` in their JSON
    types, ``locale`` the person's (blank: not known), ``language`` that of the mail, ``consent``
    the digest of the words they saw (blank: the form's present ones). ``trapped``: by a program,
    as the hidden field shows."""

    email: str
    attributes: dict[str, Any] = field(default_factory=dict)
    locale: str = ""
    language: str = "en"
    consent: str = ""
    trapped: bool = False


def request_signup(form: SignupForm, entry: Entry, origin: Origin) -> Verdict:
    """Let a request wait for its confirmation and queue the mail, in one transaction; or do not,
    when the limits say so. Callers may tell people of ``NETWORK`` and ``ACCOUNT`` only.

    A request that the mailbox's limit stops does the same work and takes it back: the time it
    takes must not tell that somebody signed up this address a moment ago.
    """
    with read_committed():
        verdict = attempt(form.account, entry.email, network(origin.address), trapped=entry.trapped)
        if verdict in {Verdict.NETWORK, Verdict.ACCOUNT}:
            return verdict
        with transaction.atomic():
            signup = _waiting(form, entry) or _new(form, entry, origin)
            queue_mail(signup, form, entry.language)
            if verdict is not Verdict.MAILED:
                transaction.set_rollback(True)
    return verdict


def digest(text: str) -> str:
    """How a wording is known: the SHA-256 of its UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep_words(account: Account, text: str) -> ConsentText:
    """The wording as a row of its own, for evidence; the same words are the same row."""
    found, _ = ConsentText.objects.get_or_create(
        account=account, digest=digest(text), defaults={"text": text}
    )
    return found


def knows_words(form: SignupForm, shown: str) -> bool:
    """Whether a digest stands for words that this account's forms have, or have had."""
    return (
        shown == digest(form.consent_text)
        or ConsentText.objects.filter(account=form.account_id, digest=shown).exists()
    )


def _words(form: SignupForm, shown: str) -> ConsentText:
    if shown and shown != digest(form.consent_text):
        earlier = ConsentText.objects.filter(account=form.account_id, digest=shown).first()
        if earlier is not None:
            return earlier
    return keep_words(form.account, form.consent_text)


def _waiting(form: SignupForm, entry: Entry) -> Signup | None:
    """The same request, made before and not confirmed yet; the mail is then sent again.

    One that differs is another: the link in a mail confirms what was asked for when it was sent,
    and not what somebody else typed beside the same address later.
    """
    same = still_confirms(
        Signup.objects.filter(
            account=form.account_id,
            email_lower=lower(entry.email),
            kind=Signup.Kind.JOIN,
            form=form,
            confirmed_at__isnull=True,
            attributes=entry.attributes,
            locale=entry.locale,
            consent__digest=entry.consent or digest(form.consent_text),
        )
    )
    found = same.select_for_update(of=("self",)).order_by("-pk").first()
    if found is not None:
        Signup.objects.filter(pk=found.pk).update(mails=F("mails") + 1, mailed_at=Now())
        found.mails += 1
    return found


def _new(form: SignupForm, entry: Entry, origin: Origin) -> Signup:
    return Signup.objects.create(
        account=form.account,
        form=form,
        email=entry.email,
        attributes=entry.attributes,
        locale=entry.locale,
        consent=_words(form, entry.consent),
        requested_from=origin.address,
        requested_agent=origin.agent,
        mails=1,
        mailed_at=Now(),
    )
