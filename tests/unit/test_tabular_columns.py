"""What columns mean by their names, and cells that no spreadsheet computes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subscribers.models import AttributeDefinition
from subscribers.tabular.columns import attribute_name, column_for, has_email, meanings
from subscribers.tabular.guarding import guard, unguard


def defined(key: str, label: str = "") -> AttributeDefinition:
    return AttributeDefinition(key=key, label=label)


@settings(deadline=None)
@given(st.text(max_size=12))
def test_unguard_undoes_guard(cell: str) -> None:
    assert unguard(guard(cell)) == cell


@settings(deadline=None)
@given(st.text(st.sampled_from("'=+-@\uff1d\t\r\n \";|a"), max_size=8))
def test_unguard_undoes_guard_where_it_matters(cell: str) -> None:
    assert unguard(guard(cell)) == cell


def test_unguard_undoes_guard_of_all_short_cells() -> None:
    for length in range(5):
        for signs in itertools.product("'=;\t \"a", repeat=length):
            cell = "".join(signs)
            assert unguard(guard(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "+49",
        "-1",
        "@x",
        "\tx",
        "\rx",
        "\nx",
        " =1",
        "\u00a0=1",
        "'=1",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "=cmd|' /C calc'!A0",
        '=HYPERLINK("https://example.org","x")',
    ],
)
def test_no_cell_is_a_formula(cell: str) -> None:
    assert guard(cell) == f"'{cell}"


@pytest.mark.parametrize(
    ("cell", "guarded"),
    [
        ("x;=1+1", "x;'=1+1"),
        ('x";=1+1', "x\";'=1+1"),
        ('x;"=1+1"', 'x;"\'=1+1"'),
        ("x\n=1+1", "x\n'=1+1"),
        ("x\t @SUM(1)", "x\t '@SUM(1)"),
        ("x|\uff1d1", "x|'\uff1d1"),
    ],
)
def test_nor_is_a_part_of_it_for_a_program_that_splits_elsewhere(cell: str, guarded: str) -> None:
    assert guard(cell) == guarded


@pytest.mark.parametrize(
    "cell", ["", "ann@example.org", "O'Neil", "'quoted'", "1-2", "a=b", "a; b", "x, -y", "山田"]
)
def test_what_is_no_formula_stays(cell: str) -> None:
    assert guard(cell) == cell
    assert unguard(cell) == cell


@pytest.mark.parametrize(
    "name",
    [
        "email",
        "E-Mail",
        " EMAIL ",
        "e_mail",
        "Email Address",
        "E-Mail-Adresse",
        "Adresse électronique",
        "Correo electrónico",
        "Courriel",
        "mail",
        "\ufeffEmail",
        "'email",
        "address",
    ],
)
def test_the_address_column_has_many_names(name: str) -> None:
    assert has_email(["x", name])
    assert meanings(["first name", name]) == ["attribute:first_name", "email"]


def test_the_surest_name_wins_and_the_street_is_an_attribute() -> None:
    assert meanings(["Address", "Email"]) == ["attribute:address", "email"]
    assert meanings(["Mail", "E-Mail", "email"]) == ["attribute:mail", "email", "email"]


def test_system_columns_and_columns_to_pass_over() -> None:
    names = ["Status", "Time zone", "Consent-Source", "reject_line", "Reject reason", " ", "--"]
    assert meanings(names) == ["status", "timezone", "consent_source", "", "", "", ""]
    assert meanings(["attribute:Status", "attribute:"]) == ["attribute:Status", ""]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("First Name", "first_name"),
        (" city ", "city"),
        ("_private", "private"),
        ("prénom", "prénom"),
        ("2nd line (home)", "2nd_line_home"),
        ("姓名", "姓名"),
        ("---", ""),
    ],
)
def test_attributes_are_named_as_templates_can_spell_them(name: str, key: str) -> None:
    assert attribute_name(name) == key
    assert attribute_name(key) == key


def test_a_defined_attribute_is_known_by_its_key_or_its_label() -> None:
    definitions = [defined("birthday", "Geburtstag"), defined("FirstName"), defined("b", "city")]
    names = ["GEBURTSTAG", "First name", "Birthday", "City", "other"]
    assert meanings(names, definitions) == [
        "attribute:birthday",
        "attribute:FirstName",
        "attribute:birthday",
        "attribute:b",
        "attribute:other",
    ]


def test_a_label_that_two_share_or_another_s_key_tells_nothing() -> None:
    definitions = [defined("a", "Name"), defined("b", "Name"), defined("c", "d"), defined("d")]
    assert meanings(["name", "d"], definitions) == ["attribute:name", "attribute:d"]


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from(["a", "b", "A", "name"]), st.text(max_size=4)), max_size=4),
)
def test_any_attribute_survives_the_way_through_a_header(
    name: str, others: list[tuple[str, str]]
) -> None:
    name = name.strip()
    definitions = [defined(key, label) for key, label in others]
    column = column_for(name, definitions)
    expected = f"attribute:{name}" if name else ""
    assert meanings(["email", guard(column)], definitions) == ["email", expected]


@pytest.mark.parametrize(
    "name", ["email", "status", "Time zone", "mail", "First Name", "suppressed"]
)
def test_an_attribute_that_reads_as_something_else_is_exported_under_its_exact_name(
    name: str,
) -> None:
    assert column_for(name) == f"attribute:{name}"


def test_an_attribute_whose_name_is_another_s_label_is_exported_under_its_exact_name() -> None:
    assert column_for("city", [defined("town", "City")]) == "attribute:city"
    assert column_for("town", [defined("town", "City")]) == "town"
