"""What people write for an attribute, and what is stored of it."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subscribers.attributes.values import (
    Kind,
    Value,
    ValueRefused,
    check_value,
    guess_kind,
    parse,
    write,
)
from subscribers.models import AttributeDefinition


def kind(name: str, *choices: str) -> AttributeDefinition:
    return AttributeDefinition(key="x", kind=name, choices=list(choices))


PLANS = kind("choice", "Gold", "silver", "Stra\u00dfe", "a", "A")


@pytest.mark.parametrize(
    ("definition", "raw", "value"),
    [
        (kind("text"), "  007 ", "007"),
        (kind("number"), "3", 3),
        (kind("number"), " -3.50 ", -3.5),
        (kind("number"), "+4", 4),
        (kind("number"), "1.0", 1),
        (kind("number"), "\u22125", -5),
        (kind("number"), "1e3", 1000),
        (kind("number"), "1.5e-7", 1.5e-07),
        (kind("number"), ".5", 0.5),
        (kind("number"), "1,234,567", 1234567),
        (kind("number"), "1,234.50", 1234.5),
        (kind("number"), "1 234 567.5", 1234567.5),
        (kind("number"), "1\u202f234", 1234),
        (kind("number"), "1'234.50", 1234.5),
        (kind("number"), "1.234", 1.234),
        (kind("number"), "12345678901234567890", 12345678901234567890),
        (kind("date"), "2026-11-30", "2026-11-30"),
        (kind("date"), "2026-1-3", "2026-01-03"),
        (kind("date"), "2026/11/30", "2026-11-30"),
        (kind("date"), "2026.11.30", "2026-11-30"),
        (kind("date"), "20261130", "2026-11-30"),
        (kind("date"), "2026-11-30T23:59:59Z", "2026-11-30"),
        (kind("date"), "2026-11-30 13:45:00.5+02:00", "2026-11-30"),
        (kind("date"), "2024-02-29", "2024-02-29"),
        (kind("boolean"), "YES", True),
        (kind("boolean"), "x", True),
        (kind("boolean"), "S\u00cd", True),
        (kind("boolean"), "oui", True),
        (kind("boolean"), "ja", True),
        (kind("boolean"), "1", True),
        (kind("boolean"), "0", False),
        (kind("boolean"), "Nein", False),
        (kind("boolean"), "FAUX", False),
        (kind("boolean"), "falso", False),
        (PLANS, "gold", "Gold"),
        (PLANS, "SILVER", "silver"),
        (PLANS, "STRASSE", "Stra\u00dfe"),
        (PLANS, "a", "a"),
        (PLANS, "A", "A"),
        (kind("number"), "  ", None),
        (kind("boolean"), "", None),
    ],
)
def test_a_value_is_of_the_type_of_its_kind(
    definition: AttributeDefinition, raw: str, value: Value | None
) -> None:
    found = parse(definition, raw)
    assert (found, type(found)) == (value, type(value))
    if found is not None:
        check_value(definition, found)
        assert parse(definition, write(found) or "") == found


@pytest.mark.parametrize(
    ("raw", "value"),
    [("1,5", 1.5), ("1.234,50", 1234.5), ("1.234.567", 1234567), ("7", 7), ("1 234,5", 1234.5)],
)
def test_a_decimal_comma(raw: str, value: float) -> None:
    assert parse(kind("number"), raw, decimal=",") == value


@pytest.mark.parametrize(
    ("raw", "order", "value"),
    [
        ("30.11.2026", "dmy", "2026-11-30"),
        ("3.4.2026", "dmy", "2026-04-03"),
        ("03/04/2026", "dmy", "2026-04-03"),
        ("03/04/2026", "mdy", "2026-03-04"),
        ("3-4-2026", "mdy", "2026-03-04"),
        ("30. 11. 2026", "dmy", "2026-11-30"),
        ("2026-11-30", "dmy", "2026-11-30"),
        ("2026-11-30", "mdy", "2026-11-30"),
    ],
)
def test_days_in_the_order_that_was_said(raw: str, order: str, value: str) -> None:
    assert parse(kind("date"), raw, date_order=order) == value


@pytest.mark.parametrize(
    ("definition", "raw", "options", "why"),
    [
        (kind("number"), "1,234", {}, "could be two numbers; write 1234 or 1.234"),
        (kind("number"), "1.234", {"decimal": ","}, "could be two numbers; write 1234 or 1,234"),
        (kind("number"), "1,5", {}, "decimal point"),
        (kind("number"), "1.5", {"decimal": ","}, "decimal comma"),
        (kind("number"), "1,23,456", {}, "decimal point"),
        (kind("number"), "1.5,234", {}, "decimal point"),
        (kind("number"), "1234,567.5", {}, "not a number"),
        (kind("number"), "seven", {}, "not a number"),
        (kind("number"), "5 \u20ac", {}, "not a number"),
        (kind("number"), "12%", {}, "not a number"),
        (kind("number"), "1 2", {}, "not a number"),
        (kind("number"), "nan", {}, "not a number"),
        (kind("number"), "inf", {}, "not a number"),
        (kind("number"), "1e999", {}, "more digits"),
        (kind("number"), "1e9999", {}, "not a number"),
        (kind("number"), "0.12345678901234567890", {}, "more digits"),
        (kind("number"), "1_000", {}, "not a number"),
        (kind("number"), "\u0661\u0662", {}, "not a number"),
        (kind("number"), "0x10", {}, "not a number"),
        (kind("number"), "9" * 400, {}, "not a number"),
        (kind("date"), "03/04/2026", {}, "could be two days"),
        (kind("date"), "30.11.2026", {}, "could be two days"),
        (kind("date"), "11/30/2026", {"date_order": "dmy"}, "no day"),
        (kind("date"), "2026-02-30", {}, "no day"),
        (kind("date"), "2025-02-29", {}, "no day"),
        (kind("date"), "0000-01-01", {}, "no day"),
        (kind("date"), "30.11.26", {"date_order": "dmy"}, "four digits"),
        (kind("date"), "30.11-2026", {"date_order": "dmy"}, "not a date"),
        (kind("date"), "yesterday", {}, "not a date"),
        (kind("date"), "2026-11", {}, "not a date"),
        (kind("boolean"), "maybe", {}, "neither yes nor no"),
        (kind("boolean"), "2", {}, "neither yes nor no"),
        (PLANS, "bronze", {}, "none of Gold, silver"),
        (kind("choice"), "x", {}, "there are none yet"),
        (kind("text"), "a\0b", {}, "NUL"),
    ],
)
def test_what_is_no_value_or_could_be_two_is_refused(
    definition: AttributeDefinition, raw: str, options: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueRefused) as caught:
        parse(definition, raw, **options)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["number", "date", "boolean", "choice"])
def test_a_message_repeats_at_most_forty_characters(name: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        parse(kind(name, "a"), "z" * 10_000)
    assert "z" * 40 in str(caught.value)
    assert "z" * 41 not in str(caught.value)


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        (kind("text"), 3),
        (kind("text"), None),
        (kind("number"), "3"),
        (kind("number"), True),
        (kind("number"), float("nan")),
        (kind("date"), "30.11.2026"),
        (kind("date"), "2026-02-30"),
        (kind("date"), 20261130),
        (kind("boolean"), 1),
        (kind("boolean"), "true"),
        (PLANS, "gold"),
        (PLANS, None),
    ],
)
def test_a_stored_value_of_another_type_is_refused(
    definition: AttributeDefinition, value: Any
) -> None:
    with pytest.raises(ValueRefused):
        check_value(definition, value)


@settings(deadline=None)
@given(
    st.one_of(
        st.booleans().map(lambda v: ("boolean", v)),
        st.integers(-(10**40), 10**40).map(lambda v: ("number", v)),
        st.floats(allow_nan=False, allow_infinity=False).map(lambda v: ("number", v)),
        st.dates().map(lambda v: ("date", date.isoformat(v))),
    ),
    st.sampled_from(["ymd", "dmy", "mdy"]),
)
def test_what_is_written_is_read_as_the_same_value(pair: tuple[str, Any], order: str) -> None:
    name, value = pair
    text = write(value)
    assert text is not None
    found = parse(kind(name), text, date_order=order)
    assert found == value
    assert json.loads(json.dumps(found)) == value


@settings(deadline=None)
@given(
    st.text(st.sampled_from("0123456789.,-+eE '/:TZ\u00a0"), max_size=14),
    st.sampled_from([".", ","]),
    st.sampled_from(["ymd", "dmy", "mdy"]),
)
def test_whatever_is_written_is_read_or_refused(raw: str, decimal: str, order: str) -> None:
    for name in ("number", "date"):
        try:
            found = parse(kind(name), raw, decimal, order)
        except ValueRefused:
            continue
        if found is not None:
            check_value(kind(name), found)


@pytest.mark.parametrize(
    ("samples", "guessed"),
    [
        ([], Kind.TEXT),
        (["", " "], Kind.TEXT),
        (["1", "22", ""], Kind.NUMBER),
        (["1,5", "2"], Kind.NUMBER),
        (["-1.50"], Kind.NUMBER),
        (["01234", "1"], Kind.TEXT),
        (["+49 30 123"], Kind.TEXT),
        (["1234567890123456"], Kind.TEXT),
        (["2026-11-30", "30.11.2026"], Kind.DATE),
        (["20261130"], Kind.NUMBER),
        (["yes", "no", ""], Kind.BOOLEAN),
        (["1", "0", "1"], Kind.NUMBER),
        (["x", "", "x"], Kind.BOOLEAN),
        (["oui", "peut-\u00eatre"], Kind.TEXT),
        (["Ann", "1"], Kind.TEXT),
    ],
)
def test_a_kind_is_guessed_only_where_all_values_are_of_it(
    samples: list[str], guessed: Kind
) -> None:
    assert guess_kind(samples) == guessed
