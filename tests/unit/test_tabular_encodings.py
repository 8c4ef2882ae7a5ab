"""In which encoding a file is read, and what people are told of it."""

from __future__ import annotations

import codecs
import io

import pytest

from subscribers.tabular.encodings import find_encoding
from subscribers.tabular.records import ImportRefused

NAMES = "email,name\nann@example.org,Zoë Müller\nbob@example.org,François Ñuñez\n"


def read(data: bytes) -> str:
    return data.decode(find_encoding(io.BytesIO(data))[0]).lstrip("\ufeff")


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_what_is_marked_or_utf_8_is_sure(mark: bytes, encoding: str) -> None:
    data = mark + f"{NAMES}y@example.org,山田\n".encode(encoding)
    assert read(data) == f"{NAMES}y@example.org,山田\n"
    assert find_encoding(io.BytesIO(data))[1] == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_seen_and_told(encoding: str) -> None:
    data = NAMES.encode(encoding)
    codec, notes = find_encoding(io.BytesIO(data))
    assert (codec, len(notes)) == (encoding, 1)
    assert "UTF-16" in notes[0]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("cp1252", "Windows-1252"), ("mac_roman", "Mac OS Roman"), ("cp850", "code page 850")],
)
def test_a_single_byte_encoding_is_guessed_and_told(encoding: str, name: str) -> None:
    data = NAMES.encode(encoding)
    codec, notes = find_encoding(io.BytesIO(data))
    assert (codec, data.decode(codec)) == (encoding, NAMES)
    assert name in notes[0]
    assert "guess" in notes[0]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("O\u2019Neil", "cp1252"),
        ("\u201cAnn\u201d \u2013 x", "cp1252"),
        ("5 \u20ac", "cp1252"),
        ("Jos\u00e9", "mac_roman"),
        ("Mu\u00f1oz Garc\u00eda", "mac_roman"),
        ("Jos\u00e9", "cp1252"),
        ("\u00c9mile Zola", "cp1252"),
        ("\u00c5sa \u00d6berg", "cp1252"),
        ("M\u00fcller", "cp850"),
    ],
)
def test_a_few_letters_are_enough(text: str, encoding: str) -> None:
    data = f"email,name\na@example.org,{text}\n".encode(encoding)
    assert read(data) == data.decode(encoding)


def test_cyrillic_is_not_taken_for_western_letters() -> None:
    text = "email,name\nivan@example.org,Иван Петров\nolga@example.org,Ольга\n"
    assert read(text.encode("cp1251")) == text


def test_one_wrong_byte_at_the_end_of_a_large_file_is_found() -> None:
    data = b"email,name\n" + b"a@example.org,Ann\n" * 200_000 + b"z@example.org,Zo\xeb\n"
    assert find_encoding(io.BytesIO(data))[0] == "cp1252"


def test_a_character_across_two_blocks_is_no_wrong_byte() -> None:
    data = b"x" * ((1 << 20) - 1) + "é".encode() + b"\n"
    assert find_encoding(io.BytesIO(data))[0] == "utf-8"


def test_a_file_that_is_mostly_utf_8_is_not_guessed_and_the_line_is_told() -> None:
    good = "".join(f"p{i}@example.org,Zoë\r\n" for i in range(5000))
    data = b"email,name\r\n" + good.encode() + "q@example.org,Zoë\n".encode("cp1252")
    with pytest.raises(ImportRefused, match=r"^Line 5002 is not UTF-8, though"):
        find_encoding(io.BytesIO(data))


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "euc-kr"])
def test_what_can_t_be_told_is_refused_with_the_line(encoding: str) -> None:
    text = {"shift_jis": "山田太郎東京都", "gb18030": "王小明北京市", "euc-kr": "김철수서울시"}
    data = f"email,name\nann@example.org,{text[encoding] * 3}\n".encode(encoding)
    with pytest.raises(ImportRefused, match="Line 2 is not UTF-8"):
        find_encoding(io.BytesIO(data))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ImportRefused, match="NUL"):
        find_encoding(io.BytesIO(b"email\n\xff\xfe\x00\x00\x01\x02\xff" * 50))


def test_a_mark_wins_over_a_name_and_says_so() -> None:
    data = codecs.BOM_UTF16_LE + NAMES.encode("utf-16-le")
    codec, notes = find_encoding(io.BytesIO(data), "cp1252")
    assert codec == "utf-16"
    assert "UTF-16" in notes[0]
    assert find_encoding(io.BytesIO(codecs.BOM_UTF8 + b"email\n"), "utf8") == ("utf-8-sig", [])


def test_the_file_is_at_its_beginning_afterwards() -> None:
    for data in (b"email\n", "é\n".encode("cp1252"), codecs.BOM_UTF8 + b"email\n"):
        file = io.BytesIO(data)
        find_encoding(file)
        assert file.tell() == 0
