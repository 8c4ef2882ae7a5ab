"""A file of people's data, sent to be saved: in pieces, never shown, sniffed or kept by a cache."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.text import slugify

_END = object()


class Download(StreamingHttpResponse):
    """One whose pieces come from the database. Under ASGI, too, they go out one by one: Django
    would gather all of them in memory first."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        pieces = iter(self.streaming_content)  # type: ignore[arg-type]
        while (piece := await sync_to_async(_taken)(pieces)) is not _END:
            yield piece


def _taken(pieces: Iterator[Any]) -> Any:
    return next(pieces, _END)


def csv_download(pieces: Iterable[str | bytes], name: str) -> StreamingHttpResponse:
    """The pieces (texts go as UTF-8) as ``name``, which is given without its ending; only letters,
    digits and hyphens of it are kept."""
    answer = Download(pieces, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slugify(name) or "people"}.csv"'
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "no-store, private"
    return answer
