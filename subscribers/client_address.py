"""Where a request came from: evidence of consent, and what limits per network count by."""

from __future__ import annotations

import ipaddress

from django.http import HttpRequest

from .conf import conf


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address, or ``None`` where it is not known.

    Behind a proxy, what the proxy wrote into the header that ``CLIENT_ADDRESS_HEADER`` names: the
    last address of it, since all before it are the client's own claims.
    """
    header = conf.CLIENT_ADDRESS_HEADER
    told = request.headers.get(header, "") if header else request.META.get("REMOTE_ADDR", "")
    return parsed(told.rpartition(",")[2])


def parsed(text: str) -> str | None:
    """An address as it is stored, IPv4 ones as such (RFC 4291 2.5.5.2); ``None``: it is none."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def network(address: str | None) -> str:
    """The network by which strangers are counted: an IPv4 /24, an IPv6 /56, as a household or a
    small office has them; empty for an unknown address."""
    if address is None:
        return ""
    bits = 24 if "." in address else 56
    return str(ipaddress.ip_network(f"{address}/{bits}", strict=False))
