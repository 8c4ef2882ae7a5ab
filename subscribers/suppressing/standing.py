"""Whether campaigns reach somebody, and if not, why: what a person's page says first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from ..addresses import canonical, erased_hashes, lower
from ..models import Subscriber, Suppression

Status = Subscriber.Status


def is_live() -> Q:
    """Of suppressions: those that have not expired by the database's clock."""
    return Q(expires__isnull=True) | Q(expires__gt=Now())


def on_a_list() -> Exists:
    """Of subscribers: is their address on their account's list, or on the one for all?

    One condition and not one per list, so that the planner can join it as a whole.
    """
    mine = Q(account_id=OuterRef("account_id")) | Q(account_id__isnull=True)
    found = Suppression.objects.filter(mine, is_live(), email_lower=OuterRef("email_lower"))
    return Exists(found)


def _forms(email: str) -> set[str]:
    """As typed, and in its written form."""
    return {lower(email.strip()), lower(canonical(email))}


def known_as(email: str) -> Q:
    """Of suppressions: those of this address as typed, in its written form, or by its hash."""
    return Q(email_lower__in=_forms(email)) | erased_as(email)


def erased_as(email: str) -> Q:
    """Of suppressions: those of somebody erased who had this address."""
    hashes = [digest for form in _forms(email) for digest in erased_hashes(form)]
    return Q(email_hash__in=hashes)


def entries_against(person: Subscriber) -> list[Suppression]:
    """The live entries that keep mail from this person: their account's first. One query."""
    mine = Q(account_id=person.account_id) | Q(account_id__isnull=True)
    found = Suppression.objects.filter(mine, known_as(person.email), is_live())
    return sorted(found, key=lambda entry: (entry.account_id is None, entry.pk))


@dataclass(frozen=True, slots=True)
class Hindrance:
    """One reason why no campaign reaches somebody. ``entry``: on which suppression it rests;
    ``moment``: since when, or for a pause until when, where that is known."""

    kind: str
    moment: datetime | None = None
    entry: Suppression | None = None


def hindrances(person: Subscriber, entries: list[Suppression], now: datetime) -> list[Hindrance]:
    """Why no campaign reaches them; empty: campaigns do. Pure."""
    found = [
        Hindrance("everywhere" if entry.account_id is None else "suppressed", entry.created, entry)
        for entry in entries
    ]
    if person.status == Status.UNSUBSCRIBED:
        found.append(Hindrance("unsubscribed", person.unsubscribed_at))
    elif person.status == Status.PENDING:
        found.append(Hindrance("pending"))
    if person.paused_until is not None and person.paused_until > now:
        found.append(Hindrance("paused", person.paused_until))
    return found
