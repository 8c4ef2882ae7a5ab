"""Database expressions that several models share."""

from __future__ import annotations

from django.db.models.functions import Collate, Lower


def lower_c(column: str) -> Lower:
    """``lower()`` under the C collation: plain ``lower()`` follows the database's locale
    (Turkish dotless i), so two machines could disagree on who is the same person."""
    return Lower(Collate(column, "C"))
