"""Sites that may show a form in a frame, and whose scripts may post to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.http import HttpRequest

from ..conf import conf

#: Scheme, host and perhaps a port (RFC 6454 6.2), as browsers write it: hosts in A-labels.
_ORIGIN = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?\Z")
_PORTS = {"http": ":80", "https": ":443"}


def as_origin(text: str) -> str | None:
    """The origin as browsers write it, from what people write (``https://Example.org/``);
    ``None`` for what is none, and for ``*`` and ``null``."""
    written = text.strip().rstrip("/").lower()
    scheme, _, host = written.partition("://")
    if not host.isascii():
        try:
            written = f"{scheme}://{host.encode('idna').decode()}"
        except UnicodeError:
            return None
    if not _ORIGIN.match(written):
        return None
    return written.removesuffix(_PORTS[scheme])


def origins(listed: Iterable[str]) -> tuple[str, ...]:
    """Those of the list that are origins, in their one form."""
    return tuple(filter(None, map(as_origin, listed)))


def allows(request: HttpRequest, listed: Iterable[str]) -> bool:
    """Whether a script of the page that asks may read the answer. Requests without an ``Origin``
    come from no other site's page: from a program, or from a page of ours."""
    asking = request.headers.get("Origin")
    if asking is None:
        return True
    known = as_origin(asking)
    return known is not None and (known in origins(listed) or known in _ours(request))


def _ours(request: HttpRequest) -> set[str | None]:
    base = urlsplit(conf.BASE_URL)
    return {
        as_origin(f"{base.scheme}://{base.netloc}"),
        as_origin(f"{request.scheme}://{request.get_host()}"),
    }
