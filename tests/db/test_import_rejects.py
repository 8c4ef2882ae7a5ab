"""Bad rows and bad files: what is told of them, and that nothing is half written."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

from subscribers.importing import ImportRefused, Step, import_file, sql
from subscribers.importing.staging import NOT_KEPT
from subscribers.models import ImportReject, Segment, Subscriber, Suppression
from subscribers.suppression import suppress
from tests.factories import AccountFactory

from . import imports
from .imports import counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment


BAD_ROWS = (
    "email,name\r\n"
    "good@example.org,Good\r\n"
    "not an address,Bad\r\n"
    ",Nobody\r\n"
    "few@example.org\r\n"
    "many@example.org,a,b\r\n"
    '"open@example.org,Bad\r\n'
    "nul@example.org,a\0b\r\n"
    "Bob <bob@example.org>,=HYPERLINK()\r\n" + "x" * 1_000_000 + "\r\n"
    "also-good@example.org,Good\r\n"
)


def test_bad_rows_are_told_with_line_and_reason_while_good_ones_go_in(
    segment: Segment, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(BAD_ROWS.encode())
    report = load(path, segment, confirmed=True)
    assert counts(report) == {"imported": 2, "rejected": 8}
    assert members(segment) == {"good@example.org", "also-good@example.org"}
    assert report.reject_file == tmp_path / "people.csv.rejects.csv"
    with report.reject_file.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["reject_line", "reject_reason", "email", "name"]
    told = {int(row[0]): row[1] for row in rows}
    assert list(told) == [3, 4, 5, 6, 7, 8, 9, 10]
    for line, why in {
        3: "@-sign",
        4: "empty",
        5: "1 cells, the header 2",
        6: "3 cells, the header 2",
        7: "quote",
        8: "NUL",
        9: "name beside",
        10: "too long",
    }.items():
        assert why in told[line], told[line]
    by_line = {int(row[0]): row[2:] for row in rows}
    assert by_line[9] == ["Bob <bob@example.org>", "'=HYPERLINK()"]
    assert len(by_line[10][0]) <= 200
    assert report.reject_file.stat().st_mode & 0o077 == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.csv", "people.csv.rejects.csv"]


def test_a_reject_file_is_mended_and_imported_as_it_is(segment: Segment, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    load("email,name\nann.example.org,=Ann\n", segment, reject_file=rejects)
    rejects.write_text(rejects.read_text().replace("ann.example.org", "ann@example.org"))
    report = load(rejects, segment)
    assert counts(report) == {"imported": 1, "pending": 1}
    assert report.ignored == ["reject_line", "reject_reason"]
    assert Subscriber.objects.get().attributes == {"name": "=Ann"}


def test_without_rejects_there_is_no_reject_file(segment: Segment, tmp_path: Path) -> None:
    report = load("email\nann@example.org\n", segment, reject_file=tmp_path / "rejects.csv")
    assert report.reject_file is None
    assert not list(tmp_path.iterdir())


def test_a_dry_run_tells_all_and_changes_nothing(segment: Segment, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    text = "email,suppressed\nann@example.org,manual\nbad,\n"
    report = load(text, segment, dry_run=True, reject_file=rejects)
    assert counts(report) == {"imported": 1, "pending": 1, "rejected": 1, "suppressed": 1}
    assert rejects.exists()
    assert not Subscriber.objects.exists()
    assert not Suppression.objects.exists()
    assert counts(load(text, segment)) == counts(report)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"name,phone\nAnn,1\n", "no e-mail column"),
        (b"ann@example.org,Ann\n", "no e-mail column"),
        ("email,name\nann@example.org,Zoë\n".encode("latin-1"), "Line 2 is not UTF-8"),
        ("email\nann@example.org\n".encode("utf-16-le"), "UTF-16"),
        (b"email,a\n" + b"ann@example.org,b\n" * 9000 + b"bob@example.org,\xff\n", "Line 9002"),
        (b"email,E-Mail\na@example.org,b@example.org\n", "Two columns"),
        (b"x" * 2_000_000, "first line is longer"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_no_good_is_refused_as_a_whole(
    segment: Segment, tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(data)
    with pytest.raises(ImportRefused) as caught:
        load(path, segment, encoding="utf-8")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Subscriber.objects.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.django_db(transaction=True)
def test_a_failure_at_the_end_leaves_nothing_half_written(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "COUNT", "SELECT 1/0")
    path = tmp_path / "people.csv"
    path.write_text("email,suppressed\nann@example.org,manual\nbad,\n")
    with pytest.raises(DatabaseError):
        load(path, segment)
    assert not Subscriber.objects.exists()
    assert not Suppression.objects.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


def test_a_reject_file_that_can_t_be_written_refuses_the_import(
    segment: Segment, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\nbad\n")
    for rejects in (tmp_path, path, tmp_path / "missing" / "rejects.csv"):
        with pytest.raises(ImportRefused):
            load(path, segment, reject_file=rejects)
    assert path.read_text() == "email\nann@example.org\nbad\n"
    assert not Subscriber.objects.exists()


def test_another_account_s_segment_is_refused(segment: Segment) -> None:
    with pytest.raises(ImportRefused, match="not one of the account"):
        import_file(io.BytesIO(b"email\n"), account=AccountFactory.create(), segment=segment)


def test_many_rows_go_in_with_few_statements(
    segment: Segment, django_assert_max_num_queries: Any
) -> None:
    suppress(segment.account, "p7@example.org", "erased")
    text = "email,n\n" + "".join(f"p{i}@example.org,{i}\n" for i in range(20_000))
    steps: list[Step] = []
    with django_assert_max_num_queries(140):
        report = load(text, segment, progress=steps.append)
    assert counts(report) == {"imported": 19_999, "rejected": 1, "pending": 19_999}
    reading = [step for step in steps if step.phase == "reading"]
    writing = [step for step in steps if step.phase == "writing"]
    assert steps == reading + writing
    assert reading[-1] == Step("reading", len(text), len(text), 20_000)
    assert writing[-1] == Step("writing", 20_000, 20_000, 20_000)
    for part in (reading, writing):
        assert [step.done for step in part] == sorted({step.done for step in part})
        assert len(part) >= 2


def test_a_bad_row_does_not_bring_back_an_erased_address(segment: Segment, tmp_path: Path) -> None:
    for erased in ("ann@example.org", "Bea@xn--mnchen-3ya.example.org"):
        suppress(segment.account, erased, "erased")
    path = tmp_path / "people.csv"
    path.write_text(
        "email,timezone,note\n"
        "ANN@example.org,Mars/Base,a friend of bea@m\u00fcnchen.example.org\n"
        '"ann@example.org,open\n'
        "cleo@example.org,ann@example.org,Cleo\n"
    )
    load(path, segment)
    kept = list(ImportReject.objects.order_by("line").values_list("line", "reason", "cells"))
    assert kept == [(line, NOT_KEPT, []) for line in (2, 3, 4)]
    told = path.with_name("people.csv.rejects.csv").read_text().lower()
    for said in ("ann@", "m\u00fcnchen", "mars", "cleo"):
        assert said not in told
