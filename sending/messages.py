"""One person's message: the headers of bulk mail, a text and an HTML part; the same bytes for
the same arguments, its Date among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.generator import BytesGenerator, Generator
from email.message import Message
from email.policy import SMTP, Compat32
from email.utils import format_datetime
from functools import lru_cache
from hashlib import sha1
from io import BytesIO, StringIO
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import django
from django.core.mail import EmailMultiAlternatives

from campaigns.rendering import Rendered
from subscribers.conf import conf

from . import headers as h
from .headers import MessageError
from .text_parts import encode

__all__ = [
    "Envelope",
    "MessageError",
    "SendMessage",
    "assembled",
    "boundary",
    "build_message",
    "header_date",
    "message_id",
    "own_names",
    "to_bytes",
]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Everything about a message but its words.

    With ``campaign_id`` it is bulk mail and needs ``unsubscribe_url``; without, a transactional
    one. ``to``, ``from_email`` and ``reply_to`` are bare addresses, ``date`` is aware.
    """

    to: str
    from_email: str
    from_name: str
    reply_to: str
    job_id: str
    namespace: UUID
    date: datetime
    account_slug: str
    account_name: str
    campaign_id: int | None = None
    unsubscribe_url: str = ""


def message_id(namespace: UUID, job_id: str, from_email: str) -> str:
    """``<uuid@sender's domain>``: the same on every attempt, another in each installation.

    Raises ``MessageError`` when ``from_email`` is no address.
    """
    return _message_id(_derived(namespace, job_id), from_email)


def _message_id(name: str, from_email: str) -> str:
    uuid = f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}"
    return f"<{uuid}@{_right_side(from_email)}>"


@lru_cache(maxsize=256)
def _right_side(from_email: str) -> str:
    domain = h.wire_address(from_email).rpartition("@")[2]
    return "localhost" if domain.startswith("[") else domain.lower()


@lru_cache(maxsize=16)
def header_date(moment: datetime) -> str:
    """An aware time as a header has it, in UTC."""
    return format_datetime(moment.astimezone(UTC))


def boundary(namespace: UUID, job_id: str) -> str:
    """What separates the parts: the same on every attempt. No line of theirs is like it, since
    ``=_`` is neither quoted-printable nor base64."""
    return f"=_{_derived(namespace, job_id)}"


def own_names(namespace: UUID, job_id: str, from_email: str) -> tuple[str, str]:
    """``message_id`` and ``boundary`` at once."""
    name = _derived(namespace, job_id)
    return _message_id(name, from_email), f"=_{name}"


def _derived(namespace: UUID, name: str) -> str:
    """The 32 hexadecimal digits of ``uuid5`` (RFC 9562 5.5), in a fifth of its time."""
    digest = sha1(namespace.bytes + name.encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:12]}5{digest[13:16]}{_VARIANT[digest[16]]}{digest[17:32]}"


_VARIANT = {f"{digit:x}": f"{digit & 3 | 8:x}" for digit in range(16)}


def build_message(envelope: Envelope, rendered: Rendered) -> SendMessage:
    """The message, byte for byte the same for the same arguments.

    Bulk mail has ``List-Id``, one-click unsubscribe (RFC 8058), ``Feedback-ID``, and
    ``Precedence: bulk``, which keeps vacation programs quiet that know nothing of ``List-Id``.
    A transactional message is ``Auto-Submitted`` (RFC 3834).

    Raises ``MessageError``; nobody else's message is concerned.
    """
    extra = {
        "Date": header_date(envelope.date),
        "Message-ID": message_id(envelope.namespace, envelope.job_id, envelope.from_email),
    }
    if envelope.campaign_id is None:
        extra["Auto-Submitted"] = "auto-generated"
    else:
        extra |= _bulk_headers(envelope)
    message = SendMessage(
        subject=rendered.subject,
        body=rendered.text,
        from_email=_display(envelope.from_name, envelope.from_email),
        to=[envelope.to],
        reply_to=[envelope.reply_to] if envelope.reply_to else None,
        headers=extra,
        alternatives=[(rendered.html, "text/html")] if rendered.html else None,
    )
    message.boundary = boundary(envelope.namespace, envelope.job_id)
    message.check()
    return message


def to_bytes(message: EmailMultiAlternatives) -> bytes:
    """The message on the wire: CRLF line ends, no Bcc, no dot-stuffing."""
    if isinstance(message, SendMessage):
        return message.wire_bytes()
    if django.VERSION >= (6, 0):
        return message.message(policy=SMTP).as_bytes()
    legacy: Any = message.message()
    return bytes(legacy.as_bytes(linesep="\r\n"))


class _AsWritten(Compat32):
    """A policy that writes values as they are: they were encoded and folded already."""

    def fold(self, name: str, value: Any) -> str:
        return f"{name}: {value}".replace("\n", self.linesep) + self.linesep

    def fold_binary(self, name: str, value: Any) -> bytes:
        return self.fold(name, value).encode()


_POLICY = _AsWritten(mangle_from_=False)


class WireMessage(Message):
    """A MIME tree whose serialisation is the same on every Python and Django."""

    def __init__(self) -> None:
        super().__init__(policy=_POLICY)

    def as_bytes(
        self, unixfrom: bool = False, policy: Any = None, linesep: str | None = None
    ) -> bytes:
        """The bytes; ``linesep`` is for Django 5.2, other policies only give their line end."""
        out = BytesIO()
        BytesGenerator(out, policy=_policy(policy, linesep)).flatten(self, unixfrom)
        return out.getvalue()

    def as_string(
        self,
        unixfrom: bool = False,
        maxheaderlen: int = 0,
        policy: Any = None,
        linesep: str | None = None,
    ) -> str:
        """The same as text."""
        out = StringIO()
        Generator(out, policy=_policy(policy, linesep)).flatten(self, unixfrom)
        return out.getvalue()


class SendMessage(EmailMultiAlternatives):
    """Django's message, so that any backend takes it, with a wire form of its own.

    ``from_email``, ``to`` and ``reply_to`` are readable Unicode, as API backends want them.
    """

    boundary = ""
    _made: tuple[Any, list[tuple[str, str]]] | None = None

    def wire_bytes(self) -> bytes:
        """The bytes between DATA and the final dot, of which no line begins with a dot: the same
        on every version of Python and Django, and the same that ``message()`` writes, without
        the tree that the standard library's generator walks. Raises ``MessageError``."""
        parts = []
        for subtype, text in self._parts():
            encoding, lines = _encode(subtype, text)
            parts.append((subtype, encoding, [lines]))
        head = "".join(f"{name}: {value}\n" for name, value in self.checked_headers())
        return assembled(head, self.boundary, parts)

    def check(self) -> None:
        """Raise ``MessageError`` for anything no header may hold."""
        self.checked_headers()

    def checked_headers(self) -> list[tuple[str, str]]:
        """The headers but for MIME's, as they are written (ASCII save for local parts, folded
        with line feeds); made once as long as nothing of them is changed. Raises
        ``MessageError``."""
        given = (
            self.from_email,
            tuple(self.to),
            tuple(self.reply_to),
            str(self.subject),
            tuple(self.extra_headers.items()),
        )
        if self._made is None or self._made[0] != given:
            self._made = given, list(self._headers())
        return self._made[1]

    def _parts(self) -> list[tuple[str, str]]:
        if self.attachments or self.cc or self.bcc:
            raise MessageError("A send has one recipient and no attachments.")
        parts = [("plain", str(self.body))]
        return parts + [(_subtype(kind), str(content)) for content, kind in self.alternatives]

    def message(self, *, policy: Any = None) -> Any:
        """The MIME tree. ``policy`` is Django 6's; its line end is taken at serialisation."""
        parts = self._parts()
        root = WireMessage()
        for name, value in self.checked_headers():
            root[name] = value
        root["MIME-Version"] = "1.0"
        if len(parts) == 1:
            _fill(root, *parts[0])
            return root
        root["Content-Type"] = f'multipart/alternative;\n boundary="{self.boundary}"'
        root.set_payload([_fill(WireMessage(), *part) for part in parts])
        return root

    def _headers(self) -> Iterator[tuple[str, str]]:
        yield "From", h.mailbox("From", *_split(self.from_email))
        yield "To", ", ".join(h.wire_address(address) for address in self.to)
        if self.reply_to:
            yield "Reply-To", ", ".join(h.wire_address(address) for address in self.reply_to)
        yield "Subject", h.unstructured("Subject", str(self.subject))
        for name, value in self.extra_headers.items():
            # These are on one line and encoded already; a folded or encoded List-Unsubscribe is
            # not recognised by the providers' one-click.
            if name in ("List-Id", "List-Unsubscribe", "Message-ID"):
                yield name, h.refuse_unsafe(name, str(value))
            else:
                yield name, h.unstructured(name, str(value))


def _bulk_headers(envelope: Envelope) -> dict[str, str]:
    slug = envelope.account_slug
    host = urlsplit(conf.BASE_URL).hostname or ""
    # RFC 2919 section 2: without a domain of its own, a list is under localhost.
    host = "localhost" if ":" in host or not host.strip("0123456789.") else h.ascii_domain(host)
    # Never per recipient; the sender's id stays what it is for the installation's life.
    sender_id = f"s{_derived(envelope.namespace, 'feedback')[:11]}"
    return {
        "List-Id": h.list_id(envelope.account_name, slug, host),
        "List-Unsubscribe": h.uri("List-Unsubscribe", envelope.unsubscribe_url),
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "Feedback-ID": f"{envelope.campaign_id}:{slug}:campaign:{sender_id}",
        "Precedence": "bulk",
    }


def _display(name: str, address: str) -> str:
    if not name.strip():
        return address
    quoted = name.strip().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}" <{address}>'


def _split(text: str) -> tuple[str, str]:
    """What ``_display`` joined."""
    name, bracket, address = text.rpartition(" <")
    if not bracket:
        return "", text
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = _unquote(name[1:-1])
    return name, address.removesuffix(">")


def _unquote(text: str) -> str:
    parts = text.split("\\\\")
    return "\\".join(part.replace('\\"', '"') for part in parts)


def _subtype(mimetype: str) -> str:
    kind, _, subtype = mimetype.partition("/")
    if kind != "text":
        raise MessageError(f"A send has text parts only, not {mimetype}.")
    return subtype


def _fill(part: WireMessage, subtype: str, text: str) -> WireMessage:
    """Set a text part."""
    encoding, lines = _encode(subtype, text)
    part["Content-Type"] = _content_type(subtype)
    part["Content-Transfer-Encoding"] = encoding
    part.set_payload(lines.decode("ascii").replace("\r\n", "\n"))
    return part


def _encode(subtype: str, text: str) -> tuple[str, bytes]:
    try:
        return encode(text)
    except UnicodeEncodeError as error:
        raise MessageError(f"The {subtype} part is no valid Unicode: {error}.") from error


def _content_type(subtype: str) -> str:
    return f'text/{subtype}; charset="utf-8"'


def assembled(head: str, mark: str, parts: Sequence[tuple[str, str, Iterable[bytes]]]) -> bytes:
    """A message: its header lines (ending in line feeds, without MIME's), the boundary, and
    ``(subtype, transfer encoding, encoded lines)`` of one text part or more."""
    start = head.replace("\n", "\r\n").encode() + b"MIME-Version: 1.0\r\n"
    if len(parts) == 1:
        subtype, encoding, lines = parts[0]
        return b"".join((start, _part_head(subtype, encoding), *lines))
    dashes = f"--{mark}".encode()
    pieces = [
        start,
        b'Content-Type: multipart/alternative;\r\n boundary="%b"\r\n' % mark.encode(),
    ]
    for subtype, encoding, lines in parts:
        pieces += (b"\r\n", dashes, b"\r\n", _part_head(subtype, encoding), *lines)
    pieces += (b"\r\n", dashes, b"--\r\n")
    return b"".join(pieces)


@lru_cache(maxsize=16)
def _part_head(subtype: str, encoding: str) -> bytes:
    kind = _content_type(subtype)
    return f"Content-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()


def _policy(asked: Any, linesep: str | None) -> Any:
    return _POLICY.clone(linesep=linesep or str(getattr(asked, "linesep", "\n")))
