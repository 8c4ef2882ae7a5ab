"""Downloads go out piece by piece, whatever serves them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgiref.sync import async_to_sync

from subscribers.downloads import csv_download


class Pieces:
    """Counts what was taken of it."""

    def __init__(self, total: int) -> None:
        self.total, self.taken, self.closed = total, 0, False

    def __iter__(self) -> Iterator[str | bytes]:
        try:
            while self.taken < self.total:
                self.taken += 1
                yield f"{self.taken},\u00e9\n"
        finally:
            self.closed = True


def test_under_wsgi_pieces_are_taken_as_they_leave() -> None:
    pieces = Pieces(3)
    sent = iter(csv_download(pieces, "people"))
    assert next(sent) == "1,\u00e9\n".encode()
    assert pieces.taken == 1
    assert len(list(sent)) == 2


def test_under_asgi_pieces_are_taken_as_they_leave() -> None:
    pieces = Pieces(3)

    async def send() -> list[tuple[bytes, int]]:
        return [(piece, pieces.taken) async for piece in csv_download(pieces, "people")]

    assert async_to_sync(send)() == [(f"{n},\u00e9\n".encode(), n) for n in (1, 2, 3)]


@pytest.mark.django_db
def test_what_breaks_off_is_closed() -> None:
    pieces = Pieces(3)
    answer = csv_download(iter(pieces), "people")
    next(iter(answer))
    answer.close()
    assert pieces.closed


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("shop-readers", "shop-readers.csv"),
        ('x"; filename="evil.exe', "x-filenameevilexe.csv"),
        ("a\r\nSet-Cookie: b", "a-set-cookie-b.csv"),
        ("\u540d\u5355", "people.csv"),
        ("", "people.csv"),
    ],
)
def test_a_name_is_only_a_name(name: str, file: str) -> None:
    answer = csv_download([], name)
    assert answer["Content-Disposition"] == f'attachment; filename="{file}"'
