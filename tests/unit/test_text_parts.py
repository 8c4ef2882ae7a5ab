"""The lines of a MIME part: what they hold, how long they are, and what they never begin with."""

from __future__ import annotations

import re
from base64 import b64decode
from quopri import decodestring

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sending.smtp_envelope import wire_body
from sending.text_parts import LINE, WORTH_KEEPING, PartEncoder, encode

#: What makes encoders fail: ends of lines in any spelling, blanks, dots, escapes, many octets.
AWKWARD = st.text(alphabet="a.= \t\r\n\0é漢🎉\u2028\x85", max_size=90)
LONG = st.builds(str.__mul__, AWKWARD, st.integers(1, 40))
TEXT = AWKWARD | LONG | st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def complete(text: str) -> str:
    return unix(text) if unix(text).endswith("\n") else unix(text) + "\n"


def decoded(encoding: str, lines: bytes) -> str:
    data = b64decode(lines) if encoding == "base64" else decodestring(lines)
    return data.decode().replace("\r\n", "\n")


def check_lines(lines: bytes) -> None:
    assert lines.isascii()
    assert wire_body(lines) == lines, "CRLF only, complete, and nothing to stuff"
    assert max(map(len, lines.split(b"\r\n"))) <= LINE
    assert not re.search(rb"[ \t]\r\n", lines), "blanks at the end of a line may get lost"
    assert not re.search(rb"[^\t\n\r -~]", lines)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ""),
        ("\n", ""),
        ("a", "a"),
        ("a\r\nb\rc\n", "a|b|c"),
        ("1 = é and so on", "1 =3D =C3=A9 and so on"),
        ("nul \0 bell \a", "nul =00 bell =07"),
        (".", "=2E"),
        (".\n..\n.a", "=2E|=2E.|=2Ea"),
        ("a.\n b.", "a.| b."),
        ("blank \ntab\t", "blank=20|tab=09"),
        ("x" * 76, "x" * 76),
        ("x" * 77, "x" * 75 + "=|xx"),
        ("x" * 75 + " ", "x" * 75 + "=|=20"),
        ("x" * 75 + "\t\ny", "x" * 75 + "=|=09|y"),
        ("x" * 74 + " ", "x" * 74 + "=|=20"),
        ("x" * 73 + " ", "x" * 73 + "=20"),
        ("x" * 75 + "..", "x" * 75 + "=|=2E."),
        ("." * 76, "=2E" + "." * 72 + "=|=2E.."),
        ("." + "x" * 71 + "=a", "=2E" + "x" * 71 + "=|=3Da"),
        ("." + "x" * 70 + "=aa", "=2E" + "x" * 70 + "=|=3Daa"),
        ("." + "x" * 76, "=2E" + "x" * 72 + "=|xx=|xx"),
    ],
)
def test_quoted_printable(text: str, lines: str) -> None:
    encoding, made = encode(text)
    assert encoding == "quoted-printable"
    assert made.decode() == lines.replace("|", "\r\n") + "\r\n"
    check_lines(made)
    assert decoded(encoding, made) == complete(text)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("a" * 9 + "é", "base64"), ("a" * 10 + "é", "quoted-printable"), ("漢字", "base64")],
)
def test_the_shorter_encoding_is_taken(text: str, encoding: str) -> None:
    found, lines = encode(text)
    assert found == encoding
    assert decoded(found, lines) == complete(text)


@given(TEXT)
@example("." * 400)
@example("=" * 400)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    encoding, lines = encode(text)
    check_lines(lines)
    assert decoded(encoding, lines) == complete(text)


def as_read(lines: bytes) -> bytes:
    """Quoted-printable without what a place in a line decides."""
    lines = lines.replace(b"=\r\n", b"")
    return lines.replace(b"=2E", b".").replace(b"=20", b" ").replace(b"=09", b"\t")


@given(st.lists(st.tuples(TEXT, st.booleans()), max_size=8))
@example([("x" * 99, True), ("\n", False)])
@example([("x" * 200, True), ("\n", False)])
@example([("x" * 200 + "\r", True), ("\n", False), ("x" * 200, True)])
@example([("a\r", False), ("\n" + "x" * 200, True), (" ", False)])
@example([("a", False), ("." * 200, True), (".", False), ("b " * 120, True)])
@example([("x" * 200, True), ("x" * 75, False), ("x" * 200, True)])
@example([("x" * 200, True), ("x" * 72 + "é", False), ("x" * 200, True)])
@example([("x" * 200, True), ("x" * 76, False), ("x" * 200, True)])
@example([("x" * 200, True), ("x" * 72 + "=y", False), ("x" * 200, True)])
@example([("a\n", False), ("", False)])
@example([("", True), ("", False)])
@settings(derandomize=True, max_examples=250, deadline=None)
def test_pieces_are_encoded_as_their_whole(given_: list[tuple[str, bool]]) -> None:
    pieces = [text for text, _ in given_]
    encoder = PartEncoder(text for text, is_known in given_ if is_known)
    encoding, made = encoder.encode(pieces)
    lines = b"".join(made)
    whole = encode("".join(pieces))
    assert encoding == whole[0]
    check_lines(lines)
    assert decoded(encoding, lines) == complete("".join(pieces))
    if encoding == "quoted-printable":
        assert as_read(lines) == as_read(whole[1])
    else:
        assert lines == whole[1]


@given(st.lists(st.tuples(st.text("ab.= é\t", max_size=60), st.booleans()), max_size=30))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_where_lines_are_short_the_bytes_are_the_same(given_: list[tuple[str, bool]]) -> None:
    assert WORTH_KEEPING > 60
    texts = [(f"{text}\n{text}" * 4, is_known) for text, is_known in given_]
    pieces = [text for text, _ in texts]
    encoder = PartEncoder(text for text, is_known in texts if is_known)
    encoding, lines = encoder.encode(pieces)
    assert (encoding, b"".join(lines)) == encode("".join(pieces))


@pytest.mark.parametrize("known", ["line\n" * 100, "long " * 100, "long " * 100 + "\nend"])
def test_what_is_known_is_encoded_once(known: str) -> None:
    encoder = PartEncoder([known])
    _, first = encoder.encode(["a", known, "a", known])
    _, again = encoder.encode(["b", known])
    (kept,) = [lines for lines in again if len(lines) > 450]
    assert sum(lines is kept for lines in first) == 2


@pytest.mark.parametrize("known", [[], ["x\ud800" * 99]])
def test_lone_surrogates_are_no_text(known: list[str]) -> None:
    for pieces in (["\ud800"], ["a" * 9000, "\ud800"], ["x\ud800" * 99]):
        with pytest.raises(UnicodeEncodeError):
            PartEncoder(known).encode(pieces)
        with pytest.raises(UnicodeEncodeError):
            encode("".join(pieces))
