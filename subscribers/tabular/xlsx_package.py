"""The zip archive that an ``.xlsx`` file is (ECMA-376, part 2), taken from strangers.

Nothing is unpacked: parts are read as streams, each up to a limit that its declared size must
keep, and the XML in them is walked by events (expat), without document types and entities.
Memory is bounded whatever a part holds.
"""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO
from xml.parsers import expat

from .records import ImportRefused, size_of

#: Parts of an archive; a workbook of a hundred sheets with pictures has a thousand.
MAX_PARTS = 10_000
MAX_DIRECTORY = 4 << 20
#: Bytes of a part, unpacked: a full sheet of a million rows has about 0.5 GB.
MAX_PART = 1 << 30
MAX_SMALL_PART = 16 << 20
#: Sheets are packed 10 to 50 times; what grows more than this is made to do harm.
MAX_RATIO = 300
#: Bytes of XML without an event, and elements within each other.
_MAX_TOKEN = 1 << 20
_MAX_DEPTH = 64
_BLOCK = 64 * 1024

DAMAGED = "The .xlsx file is damaged; open it in a spreadsheet program and save it again."
_END = b"PK\x05\x06"
_WIDE_END = b"PK\x06\x07"

Attributes = dict[str, str]


class Package:
    """The archive, checked. Raises ``ImportRefused`` where it is none that can be read."""

    def __init__(self, binary: BinaryIO) -> None:
        _check_directory(binary)
        try:
            self._zip = zipfile.ZipFile(binary)
        except (zipfile.BadZipFile, ValueError, struct.error, RuntimeError, OSError) as error:
            raise ImportRefused(DAMAGED) from error
        self._parts = {info.filename: info for info in self._zip.infolist()}
        _refuse_others(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def size(self, name: str) -> int:
        """Bytes of the part, unpacked."""
        return self._parts[name].file_size

    def open(self, name: str, limit: int = MAX_PART) -> IO[bytes]:
        """The part as a stream of at most ``limit`` bytes."""
        info = self._parts.get(name)
        if info is None:
            raise ImportRefused(DAMAGED)
        if info.file_size > limit or (
            info.file_size > MAX_SMALL_PART
            and info.file_size > max(info.compress_size, 1) * MAX_RATIO
        ):
            raise ImportRefused(
                f"The .xlsx file unpacks to {info.file_size >> 20} MB in one part, which is too "
                "much; save the list as CSV (UTF-8)."
            )
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ImportRefused(DAMAGED)
        try:
            return self._zip.open(info)
        except (zipfile.BadZipFile, ValueError, struct.error, RuntimeError, OSError) as error:
            raise ImportRefused(DAMAGED) from error

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """The parts that this one points to, by the relation's id: ``(kind, name)``."""
        folder, name = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        found: dict[str, tuple[str, str]] = {}
        for event, element, attributes in self.elements(relations):
            if event == "start" and element == "Relationship":
                kind = attributes.get("Type", "").rpartition("/")[2]
                target = posixpath.normpath(posixpath.join(folder, attributes.get("Target", "")))
                found[attributes.get("Id", "")] = (kind, target.lstrip("/"))
        return found

    def elements(self, name: str) -> Iterator[tuple[str, str, Attributes]]:
        """``("start" or "end", element, attributes)`` of a small part; none if it is not there."""
        if name not in self._parts:
            return
        events: list[tuple[str, str, Attributes]] = []
        walk = Walk(
            start=lambda element, attributes: events.append(("start", element, attributes)),
            end=lambda element: events.append(("end", element, {})),
        )
        with self.open(name, MAX_SMALL_PART) as stream:
            for _ in walk.through(stream):
                yield from events
                events.clear()


class Walk:
    """One pass through an XML stream, by events. Names of elements and attributes come without
    their prefixes."""

    def __init__(
        self,
        *,
        start: Callable[[str, Attributes], object],
        end: Callable[[str], object],
        text: Callable[[str], object] | None = None,
    ) -> None:
        self.read = 0
        self._depth = 0
        self._start, self._end = start, end
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._started
        parser.EndElementHandler = self._ended
        parser.StartDoctypeDeclHandler = _refuse_doctype
        if text is not None:
            parser.CharacterDataHandler = text

    def through(self, stream: IO[bytes]) -> Iterator[None]:
        """Feeds the stream block by block; stops after each, so that what was found is taken.
        Raises ``ImportRefused`` for what is no XML, or such as no spreadsheet program writes."""
        parser = self._parser
        try:
            while block := stream.read(_BLOCK):
                parser.Parse(block, False)
                self.read += len(block)
                if self.read - parser.CurrentByteIndex > _MAX_TOKEN:
                    raise ImportRefused(DAMAGED)
                yield
            parser.Parse(b"", True)
            yield
        except (expat.ExpatError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise ImportRefused(DAMAGED) from error

    def _started(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ImportRefused(DAMAGED)
        if ":" in name:
            name = name.rpartition(":")[2]
        self._start(name, attributes)

    def _ended(self, name: str) -> None:
        self._depth -= 1
        self._end(name.rpartition(":")[2] if ":" in name else name)


def _refuse_doctype(*_: object) -> None:
    raise ImportRefused(
        "The .xlsx file holds a document type or entities, as no spreadsheet program writes "
        "them; open it in one and save it again."
    )


def _check_directory(binary: BinaryIO) -> None:
    """Look at the archive's end before its directory is read into memory."""
    size = size_of(binary)
    binary.seek(max(0, size - 65_557))
    tail = binary.read()
    binary.seek(0)
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise ImportRefused(DAMAGED)
    parts, directory = struct.unpack_from("<HI", tail, place + 10)
    # zipfile believes a 64-bit end that stands before this one, whatever this one says.
    wide = tail[max(0, place - 20) : place].startswith(_WIDE_END)
    if wide or parts > MAX_PARTS or directory > MAX_DIRECTORY:
        raise ImportRefused(
            f"The .xlsx file is an archive of too many parts; at most {MAX_PARTS} are read. "
            "Save the list as CSV (UTF-8)."
        )


def _refuse_others(parts: dict[str, zipfile.ZipInfo]) -> None:
    names = set(parts)
    if any(info.flag_bits & 1 for info in parts.values()):
        raise ImportRefused("The file is encrypted; save it without a password.")
    if any(name.endswith("vbaProject.bin") for name in names):
        raise ImportRefused("The workbook holds macros; save it as .xlsx, without them.")
    kinds = (
        ("xl/workbook.bin", "The file is a binary workbook (.xlsb)"),
        ("word/document.xml", "The file is a text document (.docx)"),
        ("ppt/presentation.xml", "The file is a presentation (.pptx)"),
        ("Index/Document.iwa", "The file is one of Apple's Numbers or Pages"),
        ("mimetype", "The file is an OpenDocument file (such as .ods)"),
    )
    for name, what in kinds:
        if name in names:
            raise ImportRefused(f"{what}; save the list as .xlsx or CSV (UTF-8).")
    if "[Content_Types].xml" not in names:
        raise ImportRefused("The file is a zip archive; unpack it and import the file in it.")
