"""A text as the lines of a MIME part: quoted-printable or base64 (RFC 2045). Pure.

Every line ends in CRLF, has at most 76 characters before it, and none begins with a dot: a body
made of such lines needs no dot-stuffing (RFC 5321 4.5.2), and is the same after DATA and BDAT.

``PartEncoder`` does for many people what ``encode`` does for one text; what they have in common
is encoded once. The two differ in soft line breaks of long lines only.
"""

from __future__ import annotations

import re
from binascii import b2a_base64, b2a_qp
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINE = 76
#: Characters. A text between two fields that is shorter than that costs more to be kept apart
#: than to be encoded for each person.
WORTH_KEEPING = 100

_FOREIGN = bytes([*range(9), *range(11, 13), *range(14, 32), *range(127, 256)])
#: The most that a character can weigh, see ``_weight``: four octets, none of them plain.
_HEAVIEST = 4 * (6 - 1)
_LINE_END = re.compile(r"\r\n|\r|\n")
#: What ``b2a_qp`` does not do: a dot at the start of a line, and the 77th character, where a
#: blank before a line end was the 76th.
_AMISS = re.compile(rb"^(?:\..*|.{77,})$", re.MULTILINE)


def encode(text: str) -> tuple[str, bytes]:
    """``(transfer encoding, lines)`` in whichever encoding is shorter. Line ends of any kind are
    line ends, and the last line is completed.

    Raises ``UnicodeEncodeError`` for lone surrogates.
    """
    if _weight(text) > 0:
        return "base64", _base64(_complete(text))
    return "quoted-printable", _quoted(_complete(text))


@dataclass(frozen=True, slots=True)
class _Known:
    """A text that stands in many messages.

    ``lines`` is what is encoded of it, None where nothing is worth it. ``head`` (to the first
    line end) completes the line of what stands before it, ``tail`` begins the line of what
    follows; both are short.
    """

    weight: int
    lines: bytes | None = None
    head: str = ""
    tail: str = ""


class PartEncoder:
    """Encodes texts that are joined of ``known`` ones and others. Used by any thread.

    Raises ``UnicodeEncodeError`` for lone surrogates.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = {text: _known(text) for text in known}
        #: Base64 has no lines to keep: it runs on from one text into the next.
        self._is_foreign = sum(known.weight for known in self._known.values()) > 0

    def encode(self, pieces: Sequence[str]) -> tuple[str, list[bytes]]:
        """``encode`` of the pieces joined, its lines in pieces; the same but for soft line
        breaks in lines that have a long known text beside another."""
        if self._is_foreign:
            return _joined(pieces)
        weight = unweighed = 0
        lines: list[bytes] = []
        line = last = ""
        for piece in pieces:
            last = piece or last
            known = self._known.get(piece)
            if known is None:
                unweighed += len(piece)
                line += piece
                continue
            weight += known.weight
            if known.lines is None:
                line += piece
                continue
            line += known.head
            if line:
                lines.append(_broken_off(_quoted(_unix(line).encode())))
            lines.append(known.lines)
            line = known.tail
        if weight + _HEAVIEST * unweighed > 0:  # perhaps: by what they are
            weight += sum(_weight(piece) for piece in pieces if piece not in self._known)
            if weight > 0:
                return _joined(pieces)
        if not last.endswith(("\n", "\r")):
            line += "\n"
        if line:
            lines.append(_quoted(_unix(line).encode()))
        return "quoted-printable", lines


def _joined(pieces: Sequence[str]) -> tuple[str, list[bytes]]:
    encoding, lines = encode("".join(pieces))
    return encoding, [lines]


def _known(text: str) -> _Known:
    """Where to cut a known text: at its first and last line end, if they are near its ends;
    otherwise right at its end, with a soft line break."""
    weight = _weight(text)
    ends = [match.end() for match in _LINE_END.finditer(text)]
    first, last = (ends[0], ends[-1]) if ends else (len(text), 0)
    start = first if first <= WORTH_KEEPING else 0
    end = last if len(text) - last <= WORTH_KEEPING else len(text)
    # A carriage return at the end may be half of a line end.
    if end - start <= WORTH_KEEPING or text.endswith("\r"):
        return _Known(weight)
    lines = _quoted(_unix(text[start:end]).encode())
    return _Known(weight, _broken_off(lines), text[:start], text[end:])


def _weight(text: str) -> int:
    """Above 0 if base64 is shorter. The weight of joined texts is the sum of theirs.

    Quoted-printable takes three characters for every octet that is not plain ASCII.
    """
    data = text.encode()
    return 6 * (len(data) - len(data.translate(None, _FOREIGN))) - len(data)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _complete(text: str) -> bytes:
    lines = _unix(text)
    return (lines if lines.endswith("\n") else f"{lines}\n").encode()


def _base64(data: bytes) -> bytes:
    letters = b2a_base64(data.replace(b"\n", b"\r\n"), newline=False)
    return b"\r\n".join([*(letters[at : at + LINE] for at in range(0, len(letters), LINE)), b""])


def _quoted(data: bytes) -> bytes:
    """Quoted-printable of data whose lines end with line feeds; the last may be incomplete."""
    lines = b2a_qp(data, istext=True)
    if lines.startswith(b".") or b"\n." in lines or b"=20\n" in lines or b"=09\n" in lines:
        lines = _AMISS.sub(_mended, lines)
    return lines.replace(b"\n", b"\r\n")


def _broken_off(lines: bytes) -> bytes:
    """Quoted-printable lines; an incomplete last one ends in a soft line break."""
    if lines.endswith(b"\n"):
        return lines
    last = lines[lines.rfind(b"\n") + 1 :] + b"="
    return lines[: len(lines) - len(last) + 1] + _fitted(last) + b"\r\n"


def _mended(match: re.Match[bytes]) -> bytes:
    line = match[0]
    if line.startswith(b"."):
        line = b"=2E" + line[1:]
    return _fitted(line, b"\n")


def _fitted(line: bytes, line_end: bytes = b"\r\n") -> bytes:
    """A line of quoted-printable that is at most a few characters too long."""
    if len(line) <= LINE:
        return line
    escape = line.rfind(b"=", LINE - 3, LINE - 1)
    at = escape if escape >= 0 else LINE - 1  # never inside =XX
    rest = line[at:]
    if rest.startswith(b"."):
        rest = b"=2E" + rest[1:]
    return line[:at] + b"=" + line_end + rest
