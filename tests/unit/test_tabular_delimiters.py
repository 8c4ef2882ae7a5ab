"""Which delimiter a file has, and whether its first row holds names."""

from __future__ import annotations

import csv
import io

import pytest

from subscribers.tabular.delimiters import DELIMITERS, find_delimiter, holds_names


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_other_delimiters_in_quoted_cells_don_t_count(delimiter: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(
        [
            ["Name", "E-Mail", "Notes; more, and | more"],
            ["Lee, Ann", "ann@example.org", "a;b;c;d|e,f\tg"],
            ["Ray; Bob", "bob@example.org", "x\ny,z;"],
        ]
    )
    assert find_delimiter(text.getvalue(), whole=True) == delimiter


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("email\nann@example.org\n", ","),
        ("Last, First;E-Mail\nLee, Ann;ann@example.org\n", ";"),
        ("name;email;price\nAnn;ann@example.org;1,50\nBob;bob@example.org;2,50\n", ";"),
        ("id\temail\tcities\n1\tann@example.org\tBern, Basel, Chur\n", "\t"),
        ("email,name\n", ","),
        ("email;name;city", ";"),
        ("ann@example.org;Ann\nbob@example.org;Bob\n", ";"),
        ("a|b|c\n1|2|3\n", "|"),
        ("a;b,c;d\n1;2,5;3\n4;5,5;6\n7;8;9\n", ";"),
        ("", ","),
        ('"email\n', ","),
        ('name,note\nAnn,"it\'s; so; it; is"\n', ","),
    ],
)
def test_the_delimiter_leaves_addresses_alone_and_rows_equal(text: str, delimiter: str) -> None:
    assert find_delimiter(text, whole=True) == delimiter


def test_a_row_that_was_cut_does_not_count() -> None:
    text = "email;a;b\n" + "ann@example.org;1;2\n" * 3 + "bob@exam"
    assert find_delimiter(text, whole=False) == ";"


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (["email", "name"], True),
        (["ann@example.org", "Ann"], False),
        (["Ann", " 'ann@example.org "], False),
        (["contact me @ work", "x"], True),
        (["", ""], True),
    ],
)
def test_a_first_row_with_an_address_holds_a_person(first: list[str], names: bool) -> None:
    assert holds_names(first) is names
