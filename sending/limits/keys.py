"""What is limited, by the settings and the accounts, and under which keys."""

from __future__ import annotations

import math
from collections.abc import Iterable

from subscribers.conf import conf

from ..queue import Claimed
from ..transports import UnknownTransport, transport
from .mailbox_providers import group

#: As long as the column.
_LONGEST = 200


def transport_key(alias: str) -> str:
    return f"transport:{alias}"[:_LONGEST]


def account_key(account_id: int) -> str:
    return f"account:{account_id}"


def domain_key(domain: str) -> str:
    """Of the provider of this domain's mailboxes."""
    return f"domain:{group(domain)}"[:_LONGEST]


def domain_of(row: Claimed) -> str:
    """The domain of its recipient, as it is stored."""
    return (row.email_lower or row.email or "").rpartition("@")[2]


def recipient_key(row: Claimed) -> str:
    return domain_key(domain_of(row))


def is_of_domain(key: str) -> bool:
    return key.startswith("domain:")


def keys_of(alias: str, row: Claimed) -> tuple[str, str, str]:
    """Everything that may limit this row over this transport."""
    return transport_key(alias), account_key(row.account_id), recipient_key(row)


def configured_rates(accounts: Iterable[tuple[int, int | None]]) -> dict[str, float]:
    """``{key: messages a second}`` of every limit in the settings and of these accounts, given as
    ``(id, messages an hour)``. Of two rates for one group of domains the smaller counts."""
    rates: dict[str, float] = {}
    for alias in conf.TRANSPORTS:
        try:
            rate = transport(alias).rate
        except UnknownTransport:
            continue  # it can't be used at all, and says so where it is used
        if rate is not None:
            rates[transport_key(alias)] = float(rate)
    for pk, hourly in accounts:
        if hourly is not None:
            rates[account_key(pk)] = hourly / 3600.0
    for domain, rate in conf.DOMAIN_RATES.items():
        key = domain_key(domain)
        rates[key] = min(float(rate), rates.get(key, math.inf))
    return rates


def configured_connections() -> dict[str, int]:
    """``{alias: sessions at once}`` of the transports that allow only so many."""
    found: dict[str, int] = {}
    for alias in conf.TRANSPORTS:
        try:
            limit = transport(alias).connections
        except UnknownTransport:
            continue
        if limit is not None:
            found[alias] = limit
    return found
