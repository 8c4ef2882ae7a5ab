"""What is wrong with a URL in a mail, where nobody knows what page it is relative to; pure.

RFC 3986 for the parts, RFC 6761, 6762 and 8375 for names that mean something only nearby.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

import idna

from .markup import without_tags

#: Stands for a merge tag inside a URL: no character of a URL, a host's name or a scheme.
TAG = "\x00"
Fault = Literal[
    "empty",
    "placeholder",
    "relative",
    "scheme",
    "malformed",
    "host",
    "mailto",
    "target",
    "local",
    "http",
]
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\Z")
#: Run or shown by mail programs never, or found on the sender's machine alone.
_DEAD = frozenset({"javascript", "vbscript", "data", "file", "about", "blob", "cid"})
_LOCAL_NAMES = ("localhost", "local", "internal", "lan", "intranet", "home.arpa", "test", "invalid")
_FILE = re.compile(r"\.(?:png|jpe?g|gif|webp|svg|html?|php|pdf|css|docx?|zip)\Z", re.IGNORECASE)
_LONGEST_HOST = 253
#: Browsers take these out before they read a URL.
_STRIPPED = re.compile(r"[\t\r\n]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """``what`` says it in words that follow the URL: "has no host"."""

    fault: Fault
    what: str


def judge(url: str, *, targets: frozenset[str] | set[str] | None = None) -> Verdict | None:
    """What is wrong with the URL of a link or an image, in the order that it would be mended;
    None for nothing that can be told. Merge tags in it are taken for whatever they may print.
    ``targets``: what ``#name`` may point to; None: it may not stand alone.
    """
    plain = _STRIPPED.sub("", without_tags(url, TAG)).strip()
    if not plain:
        return Verdict("empty", "is empty")
    if plain.startswith(TAG):
        return _judge_ways(plain)
    if plain.startswith("#"):
        return _judge_target(plain[1:], targets)
    found = _SCHEME.match(plain)
    if found is None:
        return _without_scheme(plain)
    scheme = found[0].lower()
    rest = plain[found.end() + 1 :]
    if scheme in _DEAD:
        return Verdict("scheme", f"begins with {scheme}:, which does not work in a mail")
    if scheme == "mailto":
        return _judge_mailto(rest)
    if scheme in ("http", "https"):
        return _judge_web(plain, scheme)
    if _looks_like_host_and_port(scheme, rest):
        return Verdict("relative", "has no scheme such as https://")
    return None


def _judge_ways(plain: str) -> Verdict | None:
    """Of a URL that begins with a tag, those pieces that are URLs of their own: the ways of an
    ``{% if %}``."""
    for piece in plain.split(TAG):
        found = _SCHEME.match(piece.strip())
        if found is not None and found[0].lower() in ("http", "https", *_DEAD):
            verdict = judge(piece)
            if verdict is not None and verdict.fault != "malformed":
                return verdict
    return None


def _judge_target(name: str, targets: frozenset[str] | set[str] | None) -> Verdict | None:
    if targets is None:
        return Verdict("relative", "is a place in a page, not an address")
    if not name:
        return Verdict("placeholder", "leads nowhere")
    if TAG in name or name in targets or unquote(name) in targets or name.lower() == "top":
        return None
    return Verdict("target", "points to nothing in this message")


def _without_scheme(plain: str) -> Verdict | None:
    if plain.startswith("//"):
        return Verdict("relative", "has no scheme such as https:")
    head = re.split(r"[/?#]", plain, maxsplit=1)[0]
    if TAG in head and re.match(r"[a-z+]*" + TAG, head) and not head.startswith("www"):
        return None  # the tag may print the rest of a scheme
    is_file = _FILE.search(head) and head == plain
    if not is_file and re.match(r"(?:www\.|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$)", head, re.IGNORECASE):
        return Verdict("relative", "has no scheme such as https://")
    return Verdict("relative", "is relative, and a mail is relative to nothing")


def _looks_like_host_and_port(scheme: str, rest: str) -> bool:
    """``example.org:8080/x`` has no scheme."""
    return "." in scheme and bool(re.match(r"\d{1,5}(?:[/?#]|$)", rest))


def _judge_mailto(rest: str) -> Verdict | None:
    to, _, query = rest.partition("?")
    if TAG in rest or "@" in unquote(to):
        return None
    if not to and re.search(r"(?:^|&)(?:to|subject|body)=", query, re.IGNORECASE):
        return None  # lets people choose whom they write to
    return Verdict("mailto", "names no e-mail address")


def _judge_web(plain: str, scheme: str) -> Verdict | None:
    try:
        parts = urlsplit(plain.replace("\\", "/"))
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        if TAG in plain:
            return None
        return Verdict("malformed", f"can't be read ({error})")
    if not host:
        return Verdict("malformed", "has no host")
    if TAG not in host:
        name = ascii_host(host)
        if is_local(name or host):
            return Verdict("local", "can't be reached by anybody else")
        if name is None:
            return Verdict("host", f"has a host that not every program knows ({host!r})")
        if not _is_host(name):
            return Verdict("malformed", f"has no valid host ({host!r})")
    return None if scheme == "https" else Verdict("http", "is not https")


def is_local(host: str) -> bool:
    """Whether a host is this machine or one of a private network, by its name or address."""
    name = unquote(host).strip("[]").rstrip(".").lower()
    if not name:
        return False
    address = _address(name)
    if address is not None:
        mapped = getattr(address, "ipv4_mapped", None) or address
        return not mapped.is_global
    if any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES):
        return True
    return "." not in name  # a name of one label is somebody's network


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        pass
    # Browsers read 127.1, 2130706433 and 0x7f.0.0.1 as addresses too (WHATWG URL, 3.5).
    pieces = name.split(".")
    if not re.fullmatch(r"0x[0-9a-f]*|\d+", pieces[-1]) or len(pieces) > 4:
        return None
    try:
        numbers = [_number(piece) for piece in pieces]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return None
    value = sum(number << 8 * (3 - place) for place, number in enumerate(first)) + last
    return ipaddress.IPv4Address(value)


def _number(piece: str) -> int:
    if len(piece) > 20:
        raise ValueError
    if piece.startswith("0x"):
        return int(piece[2:] or "0", 16)
    return int(piece, 8) if piece.startswith("0") and len(piece) > 1 else int(piece)


def ascii_host(host: str) -> str | None:
    """A host's name in lower case with A-labels, as DNS is asked for it, without the dot at its
    end. By IDNA 2008, and where that knows no such name as browsers do (UTS 46), which take what
    IDNA 2003 did: emoji. None for characters that no table has: they may be newer than it."""
    name = unquote(host).rstrip(".")
    if name.isascii() or len(name) > _LONGEST_HOST:
        return name.lower()
    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        pass
    try:
        mapped = idna.uts46_remap(name, std3_rules=False, transitional=False)
        return ".".join(map(_a_label, mapped.split(".")))
    except (idna.IDNAError, UnicodeError):
        return None


def _a_label(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}"


def _is_host(name: str) -> bool:
    """Whether ``name``, in A-labels, can be one of a host."""
    if ":" in name:
        return _address(name) is not None
    return len(name) <= _LONGEST_HOST and all(_LABEL.match(label) for label in name.split("."))
