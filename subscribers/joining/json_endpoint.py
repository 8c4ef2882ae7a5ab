"""Reading a sign-up from JSON: bounded, strict, and every refusal named by its field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from ..models import AttributeDefinition
from .fields import PREFIX, TRAP

Kind = AttributeDefinition.Kind

#: Octets of a request's body, JSON or form.
MAX_BODY = 64 * 1024
TEXTS = ("email", "locale", "consent", TRAP)

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    Kind.NUMBER: ("a number", (int, float)),
    Kind.BOOLEAN: ("true or false", (bool,)),
}


class Refused(ValueError):
    """Not a request that this endpoint understands. ``errors``: sentences by field; what is not
    about one field is under ``body``."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        super().__init__("; ".join(text for texts in errors.values() for text in texts))
        self.errors = errors


def read(body: bytes) -> dict[str, Any]:
    """The object in a body. Raises ``Refused``: not UTF-8, not JSON (RFC 8259), not an object, a
    name twice, nested too deeply, or with text that no database can hold."""
    try:
        found = json.loads(
            body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_each_once
        )
        # A lone surrogate is JSON, but no text.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused({"body": ["This is not valid JSON in UTF-8."]}) from None
    if not isinstance(found, dict):
        raise Refused({"body": ["The body must be a JSON object."]})
    return found


def as_fields(
    found: dict[str, Any], definitions: Iterable[AttributeDefinition]
) -> tuple[dict[str, str], set[str]]:
    """The object as the texts that the form reads, and the keys of the attributes that it gave.
    Raises ``Refused`` for names that are not known and values of another type."""
    errors = {
        name: ["There is no such field."]
        for name in sorted(found, key=str)
        if name not in {*TEXTS, "attributes"}
    }
    data: dict[str, str] = {}
    for name in TEXTS:
        value = found.get(name, "")
        if isinstance(value, str):
            data[name] = value
        else:
            errors[name] = ["This must be a text."]
    given = found.get("attributes", {})
    if not isinstance(given, dict):
        raise Refused({**errors, "attributes": ["This must be an object."]})
    known = {definition.key: definition for definition in definitions}
    for key, value in given.items():
        name = f"attributes.{key}"
        definition = known.get(key)
        if definition is None:
            errors[name] = ["This form does not ask for it."]
        elif value is not None:
            wanted, types = _TYPES.get(definition.kind, ("a text", (str,)))
            # To Python true is a number.
            if isinstance(value, types) and (isinstance(value, bool) == (types == (bool,))):
                data[f"{PREFIX}{key}"] = value if isinstance(value, str) else repr(value)
            else:
                errors[name] = [f"This must be {wanted}."]
    if errors:
        raise Refused(errors)
    return data, {key for key, value in given.items() if value is not None}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused({"body": ["A name stands twice in one object."]})
    return found
