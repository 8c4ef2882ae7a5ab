"""After how long no answer to a message can come any more, by the library that waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from subscribers.conf import conf

from .fingerprints import provider_settings
from .table import Provider, Speaks

#: A read time-out is between two packets, and an answer may come in several: slowly, byte after
#: byte, it may take longer than the time-out says.
TRICKLE = 4.0
#: Seconds; a provider behind a slow network gets at least this long.
AT_LEAST = 60.0
#: anymail's own default for ``REQUESTS_TIMEOUT``, and botocore's for both of its time-outs.
REQUESTS_DEFAULT, BOTOCORE_DEFAULT = 30.0, 60.0


def answer_timeout(provider: Provider, options: Mapping[str, Any]) -> float:
    """Seconds from the start of a message after which its answer can't come any more.

    Where the time-outs of the library are not known or switched off (also for SMTP, whose own
    minimum is 10 minutes, RFC 5321 4.5.3.2.6) it is ``SENDONCE["ANSWER_TIMEOUT"]``.
    """
    if provider.speaks is Speaks.REQUESTS:
        connecting, reading = _both(requests_timeout(options))
    elif provider.speaks is Speaks.BOTOCORE:
        config = botocore_config(options)
        connecting = config.get("connect_timeout", BOTOCORE_DEFAULT)
        reading = config.get("read_timeout", BOTOCORE_DEFAULT)
    else:
        return conf.ANSWER_TIMEOUT
    if not _is_number(connecting) or not _is_number(reading):
        return conf.ANSWER_TIMEOUT
    longest = float(connecting) + float(reading) * TRICKLE
    return max(longest, min(AT_LEAST, conf.ANSWER_TIMEOUT))


def botocore_config(options: Mapping[str, Any]) -> dict[str, Any]:
    """What anymail's Amazon SES backend gives botocore as its configuration: the ``config`` of
    ``client_params``, a dict or a ``botocore`` ``Config``; empty where there is none."""
    params = options.get("client_params")
    if params is None:
        known = provider_settings("Amazon SES")
        for name in ("ANYMAIL[AMAZON_SES_CLIENT_PARAMS]", "ANYMAIL_AMAZON_SES_CLIENT_PARAMS"):
            params = known.get(name) if params is None else params
    config = params.get("config") if isinstance(params, Mapping) else None
    if isinstance(config, Mapping):
        return dict(config)
    given = getattr(config, "_user_provided_options", None)
    return dict(given) if isinstance(given, Mapping) else {}


def requests_timeout(options: Mapping[str, Any]) -> Any:
    """What is configured, in the order in which anymail looks for it: seconds, or a pair of them
    to connect and to read; None means as long as it takes. Not checked."""
    return options.get("timeout", options.get("requests_timeout", _requests_timeout()))


def is_requests_timeout(value: Any) -> bool:
    """Whether requests can work with it."""
    return all(part is None or _is_number(part) for part in _both(value))


def _requests_timeout() -> Any:
    given = getattr(settings, "ANYMAIL", None)
    if isinstance(given, Mapping) and "REQUESTS_TIMEOUT" in given:
        return given["REQUESTS_TIMEOUT"]
    return getattr(settings, "ANYMAIL_REQUESTS_TIMEOUT", REQUESTS_DEFAULT)


def _both(given: Any) -> tuple[Any, Any]:
    """To connect and to read."""
    if isinstance(given, list | tuple) and len(given) == 2:
        return given[0], given[1]
    return given, given


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
