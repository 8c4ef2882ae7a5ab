"""What is wrong with the values of ``SENDONCE``: their types as ``Conf`` declares them, and more.

Pure: a dict in, sentences out. No sentence repeats a value that may hold a secret.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from .conf import Conf

#: Keys whose values hold signing keys or passwords.
SECRET = frozenset({"SECRET_KEYS", "TRANSPORTS"})
_HINTS = get_type_hints(Conf)


def wrong_values(given: Mapping[str, Any]) -> list[str]:
    """A sentence for each wrong value; unknown keys are passed over."""
    wrong = {
        key: f"SENDONCE[{key!r}] must be {in_words(hint)}, not {_shown(key, given[key])}."
        for key, hint in _HINTS.items()
        if key in given and not fits(given[key], hint)
    }
    good = Conf(**{k: v for k, v in given.items() if k in _HINTS and k not in wrong})
    if {"LEASE", "LEASE_MARGIN"}.isdisjoint(wrong) and good.LEASE_MARGIN * 2 > good.LEASE:
        wrong["LEASE_MARGIN"] = "SENDONCE['LEASE_MARGIN'] must be at most half of LEASE."
    if "" in good.SECRET_KEYS:
        wrong["SECRET_KEYS"] = "SENDONCE['SECRET_KEYS'] has an empty key: anybody could sign."
    if good.NAMESPACE and not _is_uuid(good.NAMESPACE):
        wrong["NAMESPACE"] = (
            f"SENDONCE['NAMESPACE'] must be empty or a UUID, not {good.NAMESPACE!r}."
        )
    if good.NOTICES_TRANSPORT and good.NOTICES_TRANSPORT not in good.TRANSPORTS:
        wrong["NOTICES_TRANSPORT"] = (
            f"SENDONCE['NOTICES_TRANSPORT'] names no transport: {good.NOTICES_TRANSPORT!r}."
        )
    if not _is_base_url(good.BASE_URL):
        wrong["BASE_URL"] = (
            "SENDONCE['BASE_URL'] must be an http(s) URL without a trailing slash, "
            f"not {good.BASE_URL!r}."
        )
    return list(wrong.values())


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type of ``Conf``; every number there is above 0 and finite.

    A list serves as a tuple. A text never does, though it is a sequence: its letters would
    become the items. Nor is a truth value a number.
    """
    if hint is Any:
        return True
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and value > 0
    kind = get_origin(hint)
    if kind is tuple:
        item, _ = get_args(hint)  # tuple[X, ...]
        return isinstance(value, list | tuple) and all(fits(each, item) for each in value)
    if kind is dict:
        key, item = get_args(hint)
        return isinstance(value, dict) and all(
            fits(k, key) and fits(v, item) for k, v in value.items()
        )
    return isinstance(value, hint)


def in_words(hint: Any) -> str:
    """A type of ``Conf`` as a person says it, with what ``fits`` asks beyond the type."""
    kind = get_origin(hint)
    if kind is tuple:
        return f"a list or tuple, each item {in_words(get_args(hint)[0])}"
    if kind is dict:
        item = get_args(hint)[1]
        return "a dict" if item is Any else f"a dict, each value {in_words(item)}"
    return {
        bool: "True or False",
        int: "a whole number above 0",
        float: "a number above 0",
        str: "text",
    }[hint]


def _shown(key: str, value: Any) -> str:
    return f"of type {type(value).__name__}" if key in SECRET else repr(value)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises for one that is no number)
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and not (parts.query or parts.fragment)
        and not any(c.isspace() for c in url)
        and not url.endswith(("/", "?", "#"))
    )
