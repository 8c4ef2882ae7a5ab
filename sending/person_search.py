"""Looking for a person by their address or its beginning, in some accounts."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from subscribers.addresses import canonical, erased_hashes, lower
from subscribers.models import Account, Subscriber, Suppression

from .models import Send


@dataclass(frozen=True, slots=True)
class Match:
    """An address that begins as was asked for. ``what``: how it is known."""

    account: Account
    email: str
    what: str


#: Matches that are listed.
MATCHES = 25


def matches(accounts: list[Account], beginning: str) -> tuple[list[Match], bool]:
    """Addresses of these accounts that begin so, and whether there are more. Of somebody who is
    no subscriber (any more) the whole address has to be given: sends have no index of their
    account's addresses in order."""
    by_id = {account.pk: account for account in accounts}
    folded = lower(canonical(beginning)) if "@" in beginning else lower(beginning.strip())
    people = Subscriber.objects.filter(account__in=list(by_id), email_lower__startswith=folded)
    blocks = Suppression.objects.filter(account__in=list(by_id), email_lower__startswith=folded)
    found: dict[tuple[int, str], Match] = {}
    for pk, email in people.order_by("email_lower").values_list("account", "email")[: MATCHES + 1]:
        found.setdefault((pk, lower(email)), Match(by_id[pk], email, "subscriber"))
    barred = blocks.order_by("email_lower").values_list("account", "email")
    for account, address in barred[: MATCHES + 1]:
        assert account is not None
        assert address is not None
        match = Match(by_id[account], address, "suppressed")
        found.setdefault((account, lower(address)), match)
    if "@" in folded:
        for pk in _known_by_sends(list(by_id), folded):
            found.setdefault(
                (pk, folded), Match(by_id[pk], canonical(beginning), "known from messages")
            )
    listed = sorted(found.values(), key=lambda match: (lower(match.email), match.account.name))
    exact = [match for match in listed if lower(match.email) == folded]
    rest = [match for match in listed if match not in exact]
    return [*exact, *rest][:MATCHES], len(listed) > MATCHES


def is_exact(match: Match, asked: str) -> bool:
    return lower(match.email) == lower(canonical(asked))


def _known_by_sends(accounts: list[int], folded: str) -> set[int]:
    """The accounts that sent to the address, or of which somebody with it was erased."""
    hashes = erased_hashes(folded)
    found: set[int] = set()
    for way in (Q(email_lower=folded), Q(email_hash__in=hashes)):
        rows = Send.objects.filter(way, account__in=accounts).order_by()
        found |= set(rows.values_list("account", flat=True).distinct())
    erased = Suppression.objects.filter(email_hash__in=hashes, account__in=accounts)
    found |= {pk for pk in erased.values_list("account", flat=True) if pk is not None}
    return found
