"""An answer's text and codes, made fit for the database and the tables."""

from __future__ import annotations

import pytest

from sending.answers import Stage, answer, clean_text, parse_enhanced


@pytest.mark.parametrize(
    ("text", "enhanced"),
    [
        ("5.1.1 no such user", "5.1.1"),
        ("4.7.650 slow", "4.7.650"),
        ("5.7.1: no", "5.7.1"),
        ("5.1.1", "5.1.1"),
        ("<5.1.1> no", "5.1.1"),
        ("#5.1.0 Address rejected.", "5.1.0"),
        ("not here (#5.1.1)", "5.1.1"),
        ("not here (#5.1.1 - chkuser)", "5.1.1"),
        ("5.1.2.3 is listed", ""),
        ("(#5.1.2.3) is listed", ""),
        ("host 5.1.1 said", ""),
        ("15.1.1", ""),
        ("3.1.1 odd", ""),
        ("version 5.1.1234", ""),
        ("5.١.1 other digits", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_enhanced_code(text: str | None, enhanced: str) -> None:
    assert parse_enhanced(text) == enhanced


def test_text_is_fit_for_the_database() -> None:
    assert clean_text("a\x00b\r\n c\td\x1b[31m\udc80") == "a b c d [31m"
    assert len(clean_text("x" * 100_000)) == 500
    assert len(clean_text(b"x" * 100_000)) == 500
    assert clean_text(None) == ""
    made = answer(Stage.RCPT, 550, b"5.1.1 no\x00body\r\n")
    assert (made.enhanced, made.text) == ("5.1.1", "5.1.1 no body")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"caf\xc3\xa9 \xff", "café �"),
        ("用户不存在".encode(), "用户不存在"),
        ("550 用户不存在 (mx.example.org)".encode("gb18030"), "550 用户不存在 (mx.example.org)"),
        ("邮箱".encode("gb18030"), "邮箱"),
        # Latin sets have no such runs of high bytes and are not taken for Chinese
        ("Größe überschritten".encode("latin-1"), "Gr��e �berschritten"),
        ("Boîte désactivée".encode("latin-1"), "Bo�te d�sactiv�e"),
        (b"\xff\xfe\x00", "�� ".strip()),
        (b"", ""),
    ],
)  # fmt: skip
def test_bytes_are_read_as_what_they_are(raw: bytes, text: str) -> None:
    assert clean_text(raw) == text


def test_a_character_cut_at_the_limit_is_left_out() -> None:
    for encoding in ("utf-8", "gb18030"):
        cut = ("x" + "满" * 5000).encode(encoding)
        assert clean_text(cut) == "x" + "满" * 499
