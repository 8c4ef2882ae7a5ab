"""How many people have an attribute, and for how many of them its value is of a given kind.

Counted by the database in one statement each: there may be a million of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection

from ..models import Account, AttributeDefinition, Subscriber

Kind = AttributeDefinition.Kind
#: What a value of each kind is, in a sentence.
IS = {
    Kind.TEXT: "a text",
    Kind.NUMBER: "a number",
    Kind.DATE: "a date",
    Kind.BOOLEAN: "yes or no",
    Kind.CHOICE: "among these choices",
}

_SUBSCRIBER = Subscriber._meta.db_table
_VALUE = "s.attributes -> %(key)s"
_TEXT = "s.attributes ->> %(key)s"

#: True where a value that is no JSON null is one of the kind. The branches of a CASE are taken
#: in order, so that no part of a date is computed with before it is known to be a number.
_FITS = {
    Kind.TEXT: f"jsonb_typeof({_VALUE}) = 'string'",
    Kind.NUMBER: f"jsonb_typeof({_VALUE}) = 'number'",
    Kind.BOOLEAN: f"jsonb_typeof({_VALUE}) = 'boolean'",
    Kind.CHOICE: f"jsonb_typeof({_VALUE}) = 'string' AND {_TEXT} = ANY(%(choices)s::text[])",
    Kind.DATE: f"""CASE
        WHEN jsonb_typeof({_VALUE}) <> 'string' THEN false
        WHEN {_TEXT} !~ '^[0-9]{{4}}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' THEN false
        WHEN left({_TEXT}, 4) = '0000' THEN false
        ELSE right({_TEXT}, 2)::int <= extract(day FROM (
            (left({_TEXT}, 7) || '-01')::date + interval '1 month' - interval '1 day'))
        END""",
}
_IS_THERE = f"jsonb_typeof({_VALUE}) IS DISTINCT FROM 'null' AND {_VALUE} IS NOT NULL"
_HAVE = f"""FROM {_SUBSCRIBER} s WHERE s.account_id = %(account)s
    AND jsonb_typeof(s.attributes) = 'object'
    AND {_IS_THERE}"""


def count_people(account: Account, key: str) -> int:
    """The account's people who have the attribute."""
    return _count(f"SELECT count(*) {_HAVE}", account, key, [])


def count_misfits(account: Account, key: str, kind: str, choices: list[str]) -> int:
    """The account's people whose stored value is not one of ``kind`` (of the ``choices``)."""
    return _count(f"SELECT count(*) {_HAVE} AND NOT ({_FITS[Kind(kind)]})", account, key, choices)


def count_misfits_of_each(account: Account, kinds: Mapping[str, str]) -> dict[str, int]:
    """As ``count_misfits``, of several attributes by their keys (none of them a choice) in one
    walk over the people; only those of whom there are any."""
    if not kinds:
        return {}
    keys = list(kinds)
    parameters: dict[str, Any] = {"account": account.pk, "keys": keys}
    counts = []
    for number, key in enumerate(keys):
        parameters[f"key{number}"] = key
        fits = f"{_IS_THERE} AND NOT ({_FITS[Kind(kinds[key])]})".replace("(key)", f"(key{number})")
        counts.append(f"count(*) FILTER (WHERE {fits})")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(counts)} FROM {_SUBSCRIBER} s WHERE s.account_id = %(account)s "
            f"AND jsonb_typeof(s.attributes) = 'object' AND s.attributes ?| %(keys)s::text[]",
            parameters,
        )
        found = cursor.fetchone()
    return {key: people for key, people in zip(keys, found, strict=True) if people}


def _count(statement: str, account: Account, key: str, choices: list[str]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"account": account.pk, "key": key, "choices": choices})
        return int(cursor.fetchone()[0])
