"""Envelope addresses and message bytes, made fit for the SMTP wire. Pure."""

from __future__ import annotations

import re
from email.headerregistry import Address, AddressHeader
from functools import lru_cache

from django.utils.encoding import punycode

ADDRESS_LIMIT = 254  # RFC 5321 4.5.3.1.3 less the angle brackets
NULL_PATH = "<>"

# What nearly every address looks like; the full parser costs 50 times as much.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
PLAIN = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*\Z")
_DOMAIN = re.compile(r"(?:[^\s<>@()\[\]\\,;:\"]+|\[[0-9A-Za-z.:]+\])\Z")
_UTF8_LOCAL = re.compile(r"[^\s<>@()\[\]\\,;:\"]+\Z")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def mailbox(address: str) -> str:
    """The bare address for the envelope from ``address`` ("Ann <ann@example.org>" or bare).

    The domain is IDNA-encoded where the local part is ASCII; with a non-ASCII local part both
    stay Unicode and the message needs SMTPUTF8 (RFC 6531). ``<>`` is the null reverse-path.

    Raises ``ValueError`` for anything that is not exactly one address, line breaks included.
    """
    text = str(address)
    if len(text) <= ADDRESS_LIMIT and PLAIN.match(text):
        return text
    return "" if text == NULL_PATH else _parsed_mailbox(text)


@lru_cache(maxsize=256)  # a campaign's sender is parsed for each of its messages
def _parsed_mailbox(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise ValueError(f"address with a control character: {text!r}")
    found = _parse(text)
    local, domain = found.local_part, found.domain
    if not local or not domain:
        raise ValueError(f"not an address: {text!r}")
    if local.isascii() and not domain.isascii():
        domain = punycode(domain)
    if not _DOMAIN.match(domain) or not (local.isascii() or _UTF8_LOCAL.match(local)):
        raise ValueError(f"not an address: {text!r}")
    bare = Address(username=local, domain=domain).addr_spec if local.isascii() else ""
    bare = bare or f"{local}@{domain}"
    if len(bare.encode()) > ADDRESS_LIMIT:
        raise ValueError(f"address longer than {ADDRESS_LIMIT} octets: {text[:60]!r}...")
    return bare


def _parse(text: str):  # type: ignore[no-untyped-def]  # the parser's own token class is private
    try:
        parsed = AddressHeader.value_parser(text)
        boxes = parsed.all_mailboxes
        defects = {str(defect) for defect in parsed.all_defects}
    except Exception as error:
        # The standard library's parser raises IndexError, AttributeError and others on garbage.
        raise ValueError(f"not an address: {text!r}") from error
    defects.discard("local-part contains non-ASCII characters)")  # legal with SMTPUTF8
    if defects or len(boxes) != 1:
        raise ValueError(f"not exactly one address: {text!r}")
    return boxes[0]


def wire_body(data: bytes) -> bytes:
    """A message as it goes between ``DATA`` and the final dot, which is not part of it.

    Its lines are ``whole_lines``, and those that begin with a dot are stuffed (RFC 5321 4.5.2).

    Raises ``ValueError`` when there is nothing to send.
    """
    data = whole_lines(data)
    if data.startswith(b"."):
        data = b"." + data
    return data.replace(b"\r\n.", b"\r\n..")


def whole_lines(data: bytes) -> bytes:
    """A message in which every line ends in CRLF, the last one too: a bare CR or LF would let it
    smuggle a second one in.

    Raises ``ValueError`` when there is nothing to send.
    """
    if not data:
        raise ValueError("empty message")
    ends = data.count(b"\r\n")
    if data.count(b"\n") != ends or data.count(b"\r") != ends:
        data = re.sub(rb"\r\n|\r|\n", b"\r\n", data)
    return data if data.endswith(b"\r\n") else data + b"\r\n"


def unstuffed(body: bytes) -> bytes:
    """What ``wire_body`` was made of, with whole lines."""
    return (b"\r\n" + body).replace(b"\r\n.", b"\r\n")[2:]


def needs_utf8(*addresses: str) -> bool:
    """Whether an envelope with these addresses needs SMTPUTF8."""
    return not "".join(addresses).isascii()
