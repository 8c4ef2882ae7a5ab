"""What cameras and editors write into a picture is not stored, and the picture is the same."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import pytest

from campaigns.images import ImageRefused, read_picture
from campaigns.picture_metadata import ORIENTATION, Unreadable, without_metadata
from tests.db.pictures import png

Pillow = pytest.importorskip("PIL.Image")
ImageCms = pytest.importorskip("PIL.ImageCms")
PngInfo = pytest.importorskip("PIL.PngImagePlugin").PngInfo

SECRET = b"48 51 24 N"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">48 51 24 N</x:xmpmeta>'


def exif(orientation: int = 1) -> Any:
    """Of a camera: where it was, and which side is up."""
    found = Pillow.Exif()
    found[ORIENTATION] = orientation
    found[0x010E] = SECRET.decode()
    found[0x8825] = {1: "N", 2: (48.0, 51.0, 24.0), 29: SECRET.decode()}
    return found


def frames(number: int) -> list[Any]:
    colours = ("red", "green", "blue")
    found = [Pillow.new("RGB", (24, 16), colours[n % 3]) for n in range(number)]
    found[0].putpixel((3, 2), (255, 255, 0))
    return found


def made(kind: str, number: int = 1, **options: Any) -> bytes:
    file = BytesIO()
    first, *others = frames(number)
    more = {"save_all": True, "append_images": others, "duration": 70, "loop": 3} if others else {}
    first.save(file, kind, **more, **options)
    return file.getvalue()


def described() -> Any:
    found = PngInfo()
    found.add_text("Comment", SECRET.decode())
    found.add_text("Location", SECRET.decode(), zip=True)
    found.add_itxt("XML:com.adobe.xmp", XMP.decode())
    return found


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def in_jpeg(*parts: bytes, **options: Any) -> bytes:
    """A JPEG with more segments, and something behind its end."""
    data = made("JPEG", **options)
    return data[:2] + b"".join(parts) + data[2:]


def in_png(kind: bytes, body: bytes) -> bytes:
    data = made("PNG")
    check = struct.pack(">I", zlib.crc32(kind + body))
    return data[:33] + struct.pack(">I", len(body)) + kind + body + check + data[33:]


def in_gif(block: bytes, number: int = 1) -> bytes:
    return made("GIF", number)[:-1] + block + b";"


def look(data: bytes) -> tuple[Any, ...]:
    """What of a file is seen: its frames as they are shown, how long, how often, which colours."""
    with Pillow.open(BytesIO(data)) as picture:
        shown = []
        for number in range(getattr(picture, "n_frames", 1)):
            picture.seek(number)
            shown.append((picture.convert("RGBA").tobytes(), picture.info.get("duration")))
        about = {name: picture.info.get(name) for name in ("loop", "icc_profile")}
        return picture.format, picture.size, picture.mode, shown, about


PICTURES = {
    "jpeg": made("JPEG", exif=exif(), icc_profile=PROFILE, comment=SECRET, xmp=XMP),
    "jpeg, in several scans": made("JPEG", exif=exif(), progressive=True, icc_profile=PROFILE),
    "jpeg, with restarts": made("JPEG", exif=exif(), restart_marker_blocks=1),
    "jpeg, captions": in_jpeg(segment(0xED, b"Photoshop 3.0\0" + SECRET), segment(0xEC, SECRET)),
    "jpeg, a thumbnail": in_jpeg(segment(0xE0, b"JFXX\0\x10" + SECRET)),
    "jpeg, a gap before a marker": in_jpeg(segment(0xFE, SECRET), b"\xff\xff\xff"),
    "jpeg, four inks": b"",
    "jpeg, a video behind it": made("JPEG") + b"ftypmp42" + SECRET,
    "png": made("PNG", exif=exif(), pnginfo=described(), icc_profile=PROFILE),
    "png, of an unknown kind": in_png(b"saFe", SECRET),
    "png, when it was changed": in_png(b"tIME", SECRET[:7]),
    "png, moving": made("PNG", 3, exif=exif(), pnginfo=described()),
    "png, something behind it": png(4, 3) + b"<script>" + SECRET,
    "gif": made("GIF", comment=SECRET),
    "gif, moving": in_gif(b"\x21\xfe\x0a" + SECRET + b"\0", 3),
    "gif, of an application": in_gif(b"\x21\xff\x0bXMP DataXMP\x0a" + SECRET + b"\0"),
    "gif, something behind it": made("GIF", 3) + SECRET,
    "webp": made("WEBP", exif=exif(), xmp=XMP, icc_profile=PROFILE),
    "webp, without loss": made("WEBP", exif=exif(), xmp=XMP, lossless=True),
    "webp, moving": made("WEBP", 3, exif=exif(), xmp=XMP),
    "webp, something behind it": made("WEBP") + SECRET,
}


def four_inks() -> bytes:
    file = BytesIO()
    Pillow.new("CMYK", (24, 16), (10, 200, 30, 5)).save(file, "JPEG", exif=exif())
    return file.getvalue()


PICTURES["jpeg, four inks"] = four_inks()


@pytest.mark.parametrize("data", PICTURES.values(), ids=PICTURES)
def test_it_is_gone_and_the_picture_is_as_it_was(data: bytes) -> None:
    found = read_picture(data).data
    assert found != data
    assert look(found) == look(data)
    for trace in (SECRET, b"48 51", b"GPS", b"XMP", b"xmpmeta", b"Exif\0", b"Photoshop", b"JFXX"):
        assert trace not in found
    with Pillow.open(BytesIO(found)) as picture:
        assert not picture.getexif()
        assert not {"comment", "Comment", "Location", "xmp", "exif"} & picture.info.keys()
    # What is left is all that it needs: nothing more goes.
    assert read_picture(found).data == found


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("up", [1, 3, 6, 8])
def test_which_side_is_up_stays(kind: str, up: int) -> None:
    found = read_picture(made(kind, exif=exif(up)))
    with Pillow.open(BytesIO(found.data)) as picture:
        assert dict(picture.getexif()) == ({} if up == 1 else {ORIENTATION: up})
    assert SECRET not in found.data
    assert (found.width, found.height) == ((16, 24) if up > 4 else (24, 16))
    assert read_picture(found.data).data == found.data


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("JPEG", b"\xff\xd8\xff\xe1\x00"),
        ("PNG", made("PNG")[:40]),
        ("GIF", made("GIF", 3)[:-6]),
        ("GIF", made("GIF")[:-1] + b"\x99"),
        ("WEBP", made("WEBP")[:15]),
        *((kind, b"BM" + made("PNG")) for kind in ("JPEG", "PNG", "GIF", "WEBP")),
    ],
    ids=range(9),
)
def test_what_is_not_built_as_its_format_says_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(Unreadable):
        without_metadata(data, kind)


def test_a_damaged_file_is_said_to_be_one() -> None:
    with pytest.raises(ImageRefused, match="Save the picture anew"):
        read_picture(made("GIF", 3)[:-1] + b"\x99")


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_a_damaged_note_of_a_camera_is_no_hindrance() -> None:
    data = in_jpeg(segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff" + SECRET))
    assert SECRET not in read_picture(data).data


def jfif(more: bytes = b"", size: bytes = b"\0\0") -> bytes:
    return segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01" + size + more)


def test_a_thumbnail_in_the_first_header_is_an_earlier_version_too() -> None:
    plain = made("JPEG")
    assert plain[2:20] == jfif()
    thumbnail = SECRET.ljust(12, b"!")
    given = plain[:2] + jfif(thumbnail, b"\2\2") + plain[20:]
    assert read_picture(given).data == plain


def test_of_very_many_first_headers_one_stays_and_nobody_waits_for_it() -> None:
    plain = made("JPEG")
    assert without_metadata(plain[:2] + jfif() * 250_000 + plain[2:], "JPEG") == plain


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_what_browsers_do_not_turn_by_turns_nothing(kind: str) -> None:
    xmp = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-'
        b'syntax-ns#"><rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" '
        b'tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>'
    )
    plain = made(kind)
    if kind == "JPEG":
        part = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)
        given = plain[:2] + part + plain[2:]
    else:
        text = PngInfo()
        text.add_itxt("XML:com.adobe.xmp", xmp.decode())
        given = made(kind, pnginfo=text)
    assert Pillow.open(BytesIO(given)).getexif().get(ORIENTATION) == 6
    picture = read_picture(given)
    assert picture.data == plain
    assert (picture.width, picture.height) == (24, 16)
