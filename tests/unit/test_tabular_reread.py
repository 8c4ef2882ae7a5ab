"""Lines that are read again behind quotes that were not closed: some of them, not endlessly."""

from __future__ import annotations

import io
from itertools import islice

import pytest

from subscribers.tabular import BadRecord, ImportRefused, Record, csv_reader
from subscribers.tabular.csv_reader import CsvReader


def reader(content: str) -> CsvReader:
    return CsvReader(io.BytesIO(content.encode()), encoding="utf-8", delimiter=",")


def test_a_file_of_quotes_that_open_in_each_line_is_refused() -> None:
    # Each record takes in 256 kB of the lines behind it, which are all read again.
    content = "email,x\n" + 'a","\n' * 60_000
    with pytest.raises(ImportRefused, match=r"quotes are not closed, the last of them in line \d"):
        list(islice(reader(content), 100))


def test_a_line_of_the_file_pays_for_some_lines_that_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_reader, "_AGAIN", 10)
    few = list(reader("email\n" + '"x\nann@example.org\nbob@example.org\n' * 2))
    assert [type(item) for item in few] == [BadRecord, Record, Record] * 2
    lines = "email\n" + "ann@example.org\n" * 50
    # 20 open lines are read again behind the first of them, 19 behind the next ...
    far = list(islice(reader(lines + 'a","\n' * 20), 60))
    assert [type(item) for item in far] == [Record] * 50 + [BadRecord] * 10
    with pytest.raises(ImportRefused, match="must be doubled"):
        list(reader("email\n" + 'a","\n' * 20 + "ann@example.org\n" * 50))
