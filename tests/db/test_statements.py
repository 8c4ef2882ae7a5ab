"""The cursor of the road's statements, and arrays as it is given them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.utils import DataError, ProgrammingError
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from sending import statements
from sending.statements import array

pytestmark = pytest.mark.django_db

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def back(values: list[Any], kind: str) -> Any:
    with statements.cursor() as cursor:
        cursor.execute(f"SELECT %(them)s::{kind}[]", {"them": array(values)})
        return cursor.fetchone()[0]


@given(st.lists(st.none() | TEXTS | st.sampled_from(["NULL", "null", "", "{}", '"', "\\", ", "])))
def test_texts_come_back_as_they_were(texts: list[str | None]) -> None:
    assert back(texts, "text") == texts


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "bigint"),
        ([1, None, -(2**63), 2**63 - 1], "bigint"),
        ([250, None], "smallint"),
        ([uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)], "uuid"),
        ([0.0, 1e-300, 86400.5], "float"),
        ([True, False, None], "boolean"),
    ],
)
def test_other_values_come_back_as_they_were(values: list[Any], kind: str) -> None:
    assert back(values, kind) == values


def test_no_text_can_break_out_of_its_array() -> None:
    for hostile in ['"}', '\\"}', '",NULL,"', "'; DROP TABLE x; --", "{a,b}"]:
        assert back([hostile, "next"], "text") == [hostile, "next"]


def test_a_nul_is_refused() -> None:
    with pytest.raises(DataError), transaction.atomic():
        back(["a\0b"], "text")


@pytest.mark.parametrize("direct", [True, False])
def test_statements_are_prepared_only_on_a_connection_of_our_own(direct: bool) -> None:
    with override_settings(SENDONCE={**settings.SENDONCE, "DIRECT_CONNECTION": direct}):
        with statements.cursor() as cursor:
            cursor.execute("SELECT %(n)s::int + 4711", {"n": 1})
            cursor.execute("SELECT 1; SELECT 2")  # several at once can't be
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_prepared_statements")
            found = [statement for (statement,) in cursor.fetchall()]
    assert any("+ 4711" in statement for statement in found) is direct


def test_errors_are_djangos() -> None:
    with (
        pytest.raises(ProgrammingError),
        transaction.atomic(),
        statements.cursor() as cursor,
    ):
        cursor.execute("SELECT nothing_of_that_name FROM nowhere WHERE 1 = %(n)s", {"n": 1})


def test_a_plan_that_was_made_for_an_empty_table_does_not_outlive_it() -> None:
    """The server keeps a prepared plan until the table is analyzed, and a campaign of a million is
    built in less time than autovacuum needs to look."""

    def plan() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%grows%'")
            (name,) = cursor.fetchone()
            cursor.execute(f"EXPLAIN EXECUTE {name} (1)")
            return "\n".join(line for (line,) in cursor.fetchall())

    def look() -> None:
        with statements.cursor() as cursor:
            cursor.execute("SELECT n FROM grows WHERE id = %(id)s::bigint", {"id": 1})

    direct = override_settings(SENDONCE={**settings.SENDONCE, "DIRECT_CONNECTION": True})
    with direct, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE grows (id bigint PRIMARY KEY, n int)")
        cursor.execute("INSERT INTO grows VALUES (1, 1)")
        cursor.execute("ANALYZE grows")
        for _ in range(8):
            look()
        assert "Seq Scan" in plan()
        cursor.execute("INSERT INTO grows SELECT n, n FROM generate_series(2, 50000) AS n")
        statements._replan_at.clear()  # as when its time is over
        look()
        assert "Index" in plan()
