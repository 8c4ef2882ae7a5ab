"""A header understood, and what a row says about a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subscribers.addresses import AddressError
from subscribers.models import AttributeDefinition
from subscribers.tabular import ImportRefused, Options, Plan, RowError
from subscribers.tabular.records import FaultyCells

DEFINITIONS = [
    AttributeDefinition(key="visits", kind="number"),
    AttributeDefinition(key="born", kind="date"),
    AttributeDefinition(key="vip", kind="boolean"),
    AttributeDefinition(key="plan", kind="choice", choices=["Gold", "Silver"]),
    AttributeDefinition(key="note", kind="text"),
]


def plan(header: str, **options: Any) -> Plan:
    return Plan.understand(header.split("|"), Options(**options), DEFINITIONS)


def read(header: str, cells: str, **options: Any) -> dict[str, str]:
    return plan(header, **options).read(cells.split("|"))._asdict()


def attributes(header: str, cells: str, **options: Any) -> Any:
    return json.loads(read(header, cells, **options)["attributes"])


def test_a_header_is_understood_by_its_names() -> None:
    found = plan("E-Mail|First Name|visits|reject_line||status")
    assert found.targets == [
        "email",
        "attribute:first_name",
        "attribute:visits",
        "",
        "",
        "status",
    ]
    assert found.attributes == ["first_name", "visits"]
    assert found.new_attributes == ["first_name"]
    assert found.new_labels == ["First Name"]
    assert found.ignored == ["reject_line", "column 5"]


def test_a_mapping_outweighs_the_names() -> None:
    found = plan("a|b|email", mapping=["email", "", "attribute:old"])
    assert found.targets == ["email", "", "attribute:old"]
    assert found.ignored == ["b"]
    assert found.read(["ann@example.org", "x", "y"]).attributes == '{"old":"y"}'


def test_what_can_t_be_defined_is_an_attribute_all_the_same() -> None:
    found = plan("email|attribute:First Name|attribute:web_url|2nd|fine")
    assert found.attributes == ["First Name", "web_url", "2nd", "fine"]
    assert found.new_attributes == ["fine"]


@pytest.mark.parametrize(
    ("header", "options", "why"),
    [
        ("name|phone", {}, "no e-mail column; .* It holds: name, phone"),
        ("ann@example.org|Ann", {}, "no e-mail column, and the first row holds a person"),
        ("a|b", {"mapping": ["", "attribute:b"]}, "no e-mail column; one of the columns must"),
        ("email|E-Mail", {}, r"Two columns mean email: email \(1\) and E-Mail \(2\)"),
        ("email|status|Status", {}, "Two columns mean status"),
        ("email|First name|first-name", {}, "Two columns mean the attribute first_name"),
        ("a|b", {"mapping": ["email", "email"]}, "Two columns mean email"),
        ("email|" + "x" * 101, {}, "longer than 100"),
        ("email|attribute:a\0b", {}, "NUL"),
        ("email|b", {"mapping": ["email"]}, "mapping has 1 columns, the file 2"),
    ],
)
def test_a_header_that_says_too_little_or_too_much_is_refused(
    header: str, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ImportRefused, match=why):
        plan(header, **options)


def test_a_row_says_what_its_cells_say() -> None:
    row = read(
        "email|Status|Locale|Time Zone|Consent source|Suppressed|Name|City",
        'ANN@Example.ORG |Pending|pt-BR|Europe/Paris|fair 2026|Hard_Bounce| Zoë "Z" |',
    )
    assert row == {
        "email": "ANN@example.org",
        "status": "pending",
        "attributes": '{"name":"Zoë \\"Z\\""}',
        "locale": "pt-BR",
        "timezone": "Europe/Paris",
        "consent_source": "fair 2026",
        "suppressed": "hard_bounce",
    }


def test_typed_cells_become_json_of_their_kind() -> None:
    header = "email|visits|born|vip|plan|note|other"
    assert attributes(header, "a@example.org|1.0|2026-11-30|ja|GOLD|'=x|5") == {
        "visits": 1,
        "born": "2026-11-30",
        "vip": True,
        "plan": "Gold",
        "note": "=x",
        "other": "5",
    }
    assert attributes(header, "a@example.org| ||||| ") == {}
    assert attributes(header, "a@example.org|'-3|||||%s") == {"visits": -3, "other": "%s"}
    assert attributes("email|note|percent %|x", "a@example.org|%d|50%|it's") == {
        "note": "%d",
        "percent": "50%",
        "x": "it's",
    }


def test_typed_cells_are_read_as_the_options_say() -> None:
    found = attributes(
        "email|visits|born", "a@example.org|1.234,5|3.4.2026", decimal=",", date_order="dmy"
    )
    assert found == {"visits": 1234.5, "born": "2026-04-03"}


@pytest.mark.parametrize(
    ("header", "cells", "why"),
    [
        ("email|visits", "a@example.org|many", "^visits: \u201cmany\u201d is not a number"),
        ("email|visits", "a@example.org|1,234", "^visits: .*could be two numbers"),
        ("email|born", "a@example.org|3/4/2026", "^born: .*could be two days"),
        ("email|vip", "a@example.org|perhaps", "^vip: .*neither yes nor no"),
        ("email|Plan", "a@example.org|bronze", "^Plan: .*none of Gold, Silver"),
        ("email|visits", f"a@example.org|{'z' * 5000}", "z{40}\u2026\u201d"),
        ("email|a", "a@example.org", "1 cells, the header 2"),
        ("email|a", "a@example.org|1|2", "3 cells, the header 2"),
        ("email|a", "a@example.org|x\0y", "NUL"),
        ("email|consent source", "a@example.org|x\0y", "NUL"),
        ("email|status", "a@example.org|gold", "none of pending, confirmed, unsubscribed"),
        ("email|timezone", "a@example.org|Mars/Olympus", "no time zone"),
        ("email|timezone", "a@example.org|../../etc/passwd", "no time zone"),
        ("email|locale", "a@example.org|English please", "no locale"),
        ("email|consent source", f"a@example.org|{'x' * 201}", "longer than 200"),
        ("email|suppressed", "a@example.org|erased", "none of complaint"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_with_the_reason(
    header: str, cells: str, why: str
) -> None:
    with pytest.raises(RowError, match=why) as caught:
        read(header, cells)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["", "ann", "a\0nn@example.org", "Ann <ann@example.org>"])
def test_a_row_without_an_address_is_refused(address: str) -> None:
    with pytest.raises(AddressError):
        read("email|a", f"{address}|1")


def test_a_backslash_that_looks_like_nul_is_a_text() -> None:
    assert attributes("email|a", "a@example.org|\\u0000") == {"a": "\\u0000"}


def test_empty_cells_behind_the_last_column_do_no_harm() -> None:
    assert read("email|a", "a@example.org|1||")["attributes"] == '{"a":"1"}'


def test_a_guarded_address_is_read_without_its_apostrophe() -> None:
    assert read("email", "'+ann@example.org")["email"] == "+ann@example.org"
    assert read("email", "o'neil@example.org")["email"] == "o'neil@example.org"


def test_a_fault_costs_the_row_only_where_its_column_is_imported() -> None:
    cells = FaultyCells(["a@example.org", "#N/A", ""])
    cells.faults = {1: "It shows the error #N/A."}
    with pytest.raises(RowError, match=r"^name: It shows the error #N/A"):
        plan("email|name|x").read(cells)
    row = plan("email|name|x", mapping=["email", "", "attribute:x"]).read(cells)
    assert row.attributes == "{}"
    cells.faults = {7: "It shows the error #N/A."}
    assert plan("email|name|x").read(cells).email == "a@example.org"


def test_a_reject_file_can_be_imported_again() -> None:
    found = plan("reject_line|reject_reason|email|name")
    assert found.ignored == ["reject_line", "reject_reason"]
    assert found.attributes == ["name"]
    assert found.plain(["'=1", "x", "'y"]) == ["=1", "x", "'y"]


def test_options_survive_json() -> None:
    options = Options(
        format="csv",
        encoding="cp1252",
        delimiter=";",
        header=False,
        mapping=("email", "", "attribute:a b"),
        decimal=",",
        date_order="dmy",
        existing="keep",
        confirmed=True,
        consent_source="fair",
        atomic=True,
    )
    data = json.loads(json.dumps(options.to_json()))
    assert Options.from_json(data) == options
    assert Options.from_json({}) == Options()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"colour": "red"}, "no option 'colour'"),
        ({"format": "ods"}, "format must be 'csv' or 'xlsx'"),
        ({"decimal": ";"}, "decimal"),
        ({"date_order": "ydm"}, "date_order"),
        ({"existing": "delete"}, "existing"),
        ({"delimiter": ";;"}, "one character"),
        ({"delimiter": '"'}, "one character"),
        ({"delimiter": 5}, "delimiter must be a text"),
        ({"header": "no"}, "header must be true or false"),
        ({"confirmed": 1}, "confirmed must be true or false"),
        ({"mapping": "email"}, "list"),
        ({"mapping": ["e-mail"]}, "can't mean 'e-mail'"),
        ({"mapping": ["attribute:"]}, "can't mean 'attribute:'"),
        ({"mapping": [None]}, "can't mean None"),
        ({"consent_source": "x" * 201}, "longer than 200"),
    ],
)
def test_an_option_that_there_is_not_is_refused(data: dict[str, Any], why: str) -> None:
    with pytest.raises(ImportRefused, match=why):
        Options.from_json(data)
