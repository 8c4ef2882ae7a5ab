"""What is taken in as a picture: by its bytes, within bounds."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import Any

import pytest

from campaigns import images
from campaigns.images import ImageRefused, file_name, read_picture
from campaigns.models import Image
from tests.db.pictures import gif, png

Pillow = pytest.importorskip("PIL.Image")

FRAME = Pillow.new("RGB", (5, 4))


def made(kind: str, **options: Any) -> bytes:
    file = BytesIO()
    Pillow.new("RGB", (5, 4), "red").save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "content_type", "size"),
    [
        (png(40, 30), "image/png", (40, 30)),
        (gif(3, 2), "image/gif", (3, 2)),
        (made("JPEG"), "image/jpeg", (5, 4)),
        (made("WEBP"), "image/webp", (5, 4)),
        (
            made("GIF", save_all=True, append_images=[Pillow.new("RGB", (5, 4))]),
            "image/gif",
            (5, 4),
        ),
    ],
)
def test_what_is_a_picture(data: bytes, content_type: str, size: tuple[int, int]) -> None:
    found = read_picture(data)
    assert (found.content_type, (found.width, found.height)) == (content_type, size)
    assert found.data == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no picture"),
        (b"<html><script>", "no picture"),
        (b"GIF89a", "no picture"),
        (png(4, 4)[:30], "no picture"),
        (made("BMP"), "no picture"),
        (made("TIFF"), "no picture"),
        (made("ICO"), "no picture"),
        (png(1, 10_001), "too large: 1 x 10001 pixels"),
        (png(5_001, 5_000, rows=1), "too large: 5001 x 5000 pixels"),
        # Refused before a byte of it is decoded.
        (png(100_000, 100_000, rows=1), "too large"),
        (gif(65_535, 65_535), "too large"),
        (png(4, 4) + b"\0" * images.MAX_BYTES, "too large: 5.0 MB"),
    ],
    ids=range(13),
)
def test_what_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ImageRefused, match=words) as caught:
        read_picture(data)
    assert "PNG, JPEG, GIF or WebP, up to 5 MB" in str(caught.value)


def test_a_file_is_never_named_as_it_was_uploaded() -> None:
    image = Image(name="../../etc/passwd", content_type="image/jpeg")
    assert file_name(image) == f"{image.key}.jpg"


@pytest.mark.parametrize(
    ("alt", "html", "markdown"),
    [
        ("Flowers", 'alt="Flowers"', "![Flowers]("),
        ('A "b" <c>', 'alt="A &quot;b&quot; &lt;c&gt;"', '![A "b" <c>]('),
        ("a](javascript:x) [b", 'alt="a](javascript:x) [b"', "![a\\](javascript:x) \\[b]("),
        ("", 'alt=""', "![]("),
    ],
)
def test_snippets_hold_the_alternative_text_as_their_format_spells_it(
    alt: str, html: str, markdown: str
) -> None:
    image = Image(name="x", alt=alt, content_type="image/png", width=1200, height=800)
    found = {snippet.label: snippet.source for snippet in images.snippets(image)}
    assert html in found["HTML"]
    assert html in found["MJML"]
    assert 'width="600"' in found["HTML"]
    assert found["Markdown"].startswith(markdown)
    assert all(f"/images/{image.key}.png" in source for source in found.values())


def test_without_the_library_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert images.can_read()
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert not images.can_read()
