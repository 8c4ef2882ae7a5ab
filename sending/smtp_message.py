"""The envelope sender and the bytes of a Django message, on Django 5.2 and 6.1 alike."""

from __future__ import annotations

import re
from email.generator import BytesGenerator
from email.message import Message
from email.policy import Compat32, EmailPolicy
from io import BytesIO
from typing import Any

import django

from .answers import Stage, answer
from .messages import SendMessage
from .smtp_dialogue import SMTPRefusedLocally
from .smtp_envelope import mailbox, needs_utf8

#: Headers that go out on one line as they are. The standard library folds a long one or encodes
#: it as RFC 2047 words; either breaks one-click unsubscribing (RFC 8058) and threading.
VERBATIM = frozenset(
    {
        "list-unsubscribe",
        "list-unsubscribe-post",
        "list-id",
        "list-help",
        "list-archive",
        "message-id",
        "in-reply-to",
    }
)
LINE_LIMIT = 998  # RFC 5322 2.1.1


def _verbatim(name: str, value: str) -> bytes | None:
    line = f"{name}: {value}"
    if name.lower() in VERBATIM and line.isascii() and len(line) <= LINE_LIMIT:
        if "\r" in value or "\n" in value:
            raise ValueError(f"line break in header {name}")
        return line.encode() + b"\r\n"
    return None


class _Modern(EmailPolicy):
    def fold_binary(self, name: str, value: Any) -> bytes:
        return _verbatim(name, str(value)) or super().fold_binary(name, value)


class _Legacy(Compat32):
    def fold_binary(self, name: str, value: Any) -> bytes:
        return _verbatim(name, str(value)) or super().fold_binary(name, value)


_POLICY = _Modern(linesep="\r\n")
_UTF8_POLICY = _Modern(linesep="\r\n", utf8=True)
_LEGACY_POLICY = _Legacy(linesep="\r\n", mangle_from_=False)


def message_bytes(message: Any) -> tuple[str, bytes]:
    """``(envelope sender, RFC 5322 bytes)`` of a Django ``EmailMessage``.

    Raises ``SMTPRefusedLocally`` for whatever keeps it from being built: a bad address, a line
    break in a header, an attachment that can't be encoded.
    """
    try:
        sender = mailbox(message.from_email)
        if isinstance(message, SendMessage):  # writes itself, the same on every version
            return sender, message.wire_bytes()
        utf8 = needs_utf8(sender, *(mailbox(to) for to in message.recipients()))
        if django.VERSION >= (6, 0):
            policy: EmailPolicy | Compat32 = _UTF8_POLICY if utf8 else _POLICY
            return sender, _flatten(message.message(policy=policy), policy)
        data = _flatten(message.message(), _LEGACY_POLICY)
    except Exception as error:
        # Building runs the caller's strings through the standard library's e-mail package, which
        # raises nearly anything; none of it may stop the messages behind this one.
        words = f"the message can't be built: {error}"
        raise SMTPRefusedLocally(answer(Stage.LOCAL, None, words, enhanced="")) from error
    return sender, _with_utf8_addresses(message, data) if utf8 else data


def _flatten(built: Message, policy: EmailPolicy | Compat32) -> bytes:
    out = BytesIO()
    BytesGenerator(out, mangle_from_=False, policy=policy).flatten(built, linesep="\r\n")
    return out.getvalue()


def _with_utf8_addresses(message: Any, data: bytes) -> bytes:
    """Django 5.2 has no form for a non-ASCII local part and encodes it as a word, which is no
    address; SMTPUTF8 (RFC 6532) wants it as it is."""
    head, end, body = data.partition(b"\r\n\r\n")
    for name, values in (("From", [message.from_email]), ("To", message.to), ("Cc", message.cc)):
        value = ", ".join(str(v) for v in values)
        if value and not value.isascii():
            line = f"{name}: {value}".encode()
            pattern = rf"^{name}:[^\r\n]*(?:\r\n[ \t][^\r\n]*)*".encode()
            literal = line.replace(b"\\", b"\\\\")
            head = re.sub(pattern, literal, head, count=1, flags=re.I | re.M)
    return head + end + body
