"""What a configured transport is, as staff may know it: never its credentials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from subscribers.conf import conf

from .transports import Transport, UnknownTransport, transport


@dataclass(frozen=True, slots=True)
class TransportFact:
    """``kind`` in words. ``where``: host and port, or "" where there is none to tell. ``via`` as
    on rows that go by it now. ``tells``: its provider says later, by webhook, what became of a
    message. ``problem``: why it can't be used, or ""; ``kind`` then completes "which ..."."""

    alias: str
    kind: str
    where: str = ""
    via: str = ""
    deduplicates: bool = False
    tells: bool = False
    rate: float | None = None
    connections: int | None = None
    problem: str = ""


def transport_fact(alias: str) -> TransportFact:
    """Of one alias; one that can't be used says why."""
    try:
        found = transport(alias)
        provider = found.provider
        return TransportFact(
            alias=alias,
            kind=_kind(found),
            where=_where(found),
            via=found.via,
            deduplicates=found.deduplicates,
            tells=provider.is_anymail,
            rate=found.rate,
            connections=found.connections,
        )
    except UnknownTransport as error:
        there = alias in conf.TRANSPORTS
        kind = "can't be used here" if there else "is not configured here"
        return TransportFact(alias=alias, kind=kind, problem=str(error))


def transport_facts(aliases: Iterable[str]) -> dict[str, TransportFact]:
    """By alias."""
    return {alias: transport_fact(alias) for alias in sorted(set(aliases))}


def alias_of(via: str) -> str:
    """The alias that a row's ``via`` begins with."""
    return via.rpartition(":")[0]


def _kind(found: Transport) -> str:
    provider = found.provider
    if provider.is_anymail:
        return f"{provider.name}, over HTTP"
    if found.takes_bytes:
        return "SMTP relay"
    # Of a backend that nothing is known of, the class alone.
    return f"Django backend {found.backend.rpartition('.')[0].rpartition('.')[2]}"


def _where(found: Transport) -> str:
    """Two options by name: whatever else there is may be a secret."""
    host, port = found.options.get("host"), found.options.get("port")
    return f"{host}:{port}" if host and port else str(host or "")
