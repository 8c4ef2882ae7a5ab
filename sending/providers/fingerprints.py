"""A fingerprint of everything that makes two transports, or two moments of one, differ.

A replay is harmless only over the same road: the same account at the same provider, the same
settings, and the same links in the message. Whoever compares two fingerprints learns whether
that is so, and nothing of the keys and passwords in them.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

#: anymail's settings without a provider's name that change what is sent. Time-outs do not.
_FOR_ALL = frozenset(
    {"IDNA_ENCODER", "IGNORE_RECIPIENT_STATUS", "IGNORE_UNSUPPORTED_FEATURES", "SEND_DEFAULTS"}
)
_DEPTH = 8


def provider_settings(esp_name: str) -> dict[str, Any]:
    """The settings that anymail reads for this provider, wherever a project may put them:
    ``ANYMAIL["RESEND_API_KEY"]``, ``ANYMAIL_RESEND_API_KEY`` or ``RESEND_API_KEY``."""
    if not esp_name:
        return {}
    prefix = esp_name.upper().replace(" ", "_") + "_"
    found: dict[str, Any] = {}
    for name in dir(settings):
        bare = name.removeprefix("ANYMAIL_")
        if bare.startswith(prefix) or (bare != name and bare in _FOR_ALL):
            found[name] = getattr(settings, name)
    given = getattr(settings, "ANYMAIL", None)
    if isinstance(given, Mapping):
        for name, value in given.items():
            if str(name).startswith(prefix) or name in _FOR_ALL:
                found[f"ANYMAIL[{name}]"] = value
    return found


def fingerprint(key: str, *parts: Any) -> str:
    """16 hexadecimal digits of an HMAC-SHA256 over ``parts``, under ``key``: without the key
    nobody can try out passwords against it. The same in every process of an installation."""
    text = json.dumps([_plain(part) for part in parts], sort_keys=True)
    return hmac.new(key.encode(), text.encode(), "sha256").hexdigest()[:16]


def _plain(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON can hold it, without anything that differs between two processes, such as
    the address of an object in memory."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if depth > _DEPTH:
        return "..."
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, Mapping):
        return {f"{type(k).__name__}:{k}": _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, depth + 1) for item in value), key=repr)
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if callable(value) and hasattr(value, "__qualname__"):
        return [name, f"{value.__module__}.{value.__qualname__}"]
    fields = getattr(value, "__dict__", None)
    if fields:
        return [name, _plain(dict(fields), depth + 1)]
    return [name, str(value) if _describes_itself(kind) else ""]


def _describes_itself(kind: type) -> bool:
    """Whether ``str`` of it says more than its class and where in memory it is."""
    return any("__str__" in k.__dict__ or "__repr__" in k.__dict__ for k in kind.__mro__[:-1])
