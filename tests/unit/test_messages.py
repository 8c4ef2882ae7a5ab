"""Messages: headers that hold whatever people are called, and the same bytes every time."""

from __future__ import annotations

import email
import email.policy
import re
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any
from uuid import UUID, uuid5

import pytest
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.locmem import EmailBackend
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.rendering import Rendered
from sending import headers
from sending.messages import (
    Envelope,
    MessageError,
    SendMessage,
    boundary,
    build_message,
    message_id,
    own_names,
    to_bytes,
)
from sending.smtp_message import message_bytes

NAMESPACE = UUID("6f1f7c1e-8e4c-4b0e-9a52-0d1c5f0c7b11")
CAMPAIGN = Envelope(
    to="ann@example.org",
    from_email="news@example.com",
    from_name="Acme News",
    reply_to="office@example.com",
    job_id="campaign:3:7",
    namespace=NAMESPACE,
    date=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    account_slug="acme",
    account_name="Acme",
    campaign_id=3,
    unsubscribe_url="https://example.org/u/" + "t" * 32,
)
WORDS = Rendered(subject="Hello", html="<p>Hi</p>", text="Hi")
BASE = override_settings(SENDONCE={"BASE_URL": "https://mail.example.org"})

NAMES = [
    "Ann",
    "Ann O'Hara",
    'The "Best" Shop',
    "Doe, John",
    "Back\\slash",
    "Ends with a backslash\\",
    'Quote \\" inside',
    "José, 李雷",
    "شركة الأخبار",
    "חדשות",
    "🎉 Party 👩‍👩‍👧‍👦",
    "=?utf-8?q?not_a_word?=",
    "a@b.example",
    "<script>",
    "(comment)",
    "Ünï " * 40,
    "word " * 39,
    "x" * 200,
    "  spaces  inside  ",
]


def build(rendered: Rendered = WORDS, **changes: Any) -> SendMessage:
    with BASE:
        return build_message(replace(CAMPAIGN, **changes), rendered)


def parsed(message: SendMessage) -> EmailMessage:
    found = email.message_from_bytes(to_bytes(message), policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    return found


def raw_header(message: SendMessage, name: str) -> str:
    """A header's unfolded but still encoded value."""
    head = to_bytes(message).partition(b"\r\n\r\n")[0].decode()
    unfolded = re.sub(r"\r\n(?=[ \t])", "", head)
    (value,) = re.findall(rf"^{name}: (.*)$", unfolded, re.M)
    return value.removesuffix("\r")


def decoded(value: str) -> str:
    return str(make_header(decode_header(value)))


def test_bulk_headers() -> None:
    found = parsed(build())
    assert {name: str(value) for name, value in found.items()} == {
        "From": "Acme News <news@example.com>",
        "To": "ann@example.org",
        "Reply-To": "office@example.com",
        "Subject": "Hello",
        "Date": "Fri, 02 Jan 2026 03:04:05 +0000",
        "Message-ID": message_id(NAMESPACE, "campaign:3:7", "news@example.com"),
        "List-Id": "Acme <acme.mail.example.org>",
        "List-Unsubscribe": f"<{CAMPAIGN.unsubscribe_url}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "Feedback-ID": found["Feedback-ID"],
        "Precedence": "bulk",
        "MIME-Version": "1.0",
        "Content-Type": found["Content-Type"],
    }
    campaign, account, kind, sender = found["Feedback-ID"].split(":")
    assert (campaign, account, kind) == ("3", "acme", "campaign")
    assert 5 <= len(sender) <= 15
    assert (
        parsed(build(to="b@example.org", job_id="campaign:3:8"))["Feedback-ID"]
        == (found["Feedback-ID"])
    )


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000", "http://[::1]:8000"])
def test_a_list_without_a_domain_is_under_localhost(base: str) -> None:
    with override_settings(SENDONCE={"BASE_URL": base}):
        assert build_message(CAMPAIGN, WORDS).extra_headers["List-Id"] == "Acme <acme.localhost>"


def test_transactional_headers() -> None:
    found = parsed(build(campaign_id=None, job_id="message:1:confirm:x", unsubscribe_url=""))
    assert found["Auto-Submitted"] == "auto-generated"
    assert not {"List-Id", "List-Unsubscribe", "Feedback-ID", "Precedence"} & set(found.keys())


def test_message_id_is_derived() -> None:
    first = message_id(NAMESPACE, "campaign:3:7", "news@Example.com")
    assert re.fullmatch(r"<[0-9a-f-]{36}@example\.com>", first)
    assert first == message_id(NAMESPACE, "campaign:3:7", "news@example.com")
    assert first != message_id(NAMESPACE, "campaign:3:8", "news@example.com")
    assert first != message_id(UUID(int=1), "campaign:3:7", "news@example.com")
    assert message_id(NAMESPACE, "x", "a@bücher.example").endswith("@xn--bcher-kva.example>")
    with pytest.raises(MessageError):
        message_id(NAMESPACE, "x", "nobody")


@given(st.uuids(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@settings(derandomize=True, max_examples=50, deadline=None)
def test_ids_are_uuids_of_their_names(namespace: UUID, job: str) -> None:
    assert message_id(namespace, job, "a@example.org") == f"<{uuid5(namespace, job)}@example.org>"
    assert boundary(namespace, job) == f"=_{uuid5(namespace, job).hex}"
    both = message_id(namespace, job, "a@example.org"), boundary(namespace, job)
    assert own_names(namespace, job, "a@example.org") == both


def test_a_replay_is_the_same_bytes() -> None:
    once = to_bytes(build())
    assert once == to_bytes(build()) == build().wire_bytes()
    elsewhere = CAMPAIGN.date.astimezone(timezone(timedelta(hours=5)))
    assert once == to_bytes(build(date=elsewhere))
    assert once != to_bytes(build(job_id="campaign:3:8"))


def test_the_bytes_are_pinned() -> None:
    """They may not change with a version of Python or Django: a retry after an upgrade must be
    the same message to a provider that compares."""
    message = build(Rendered("Grüße", "", "Hé = {x}\n.\n"), from_name="Doe, José")
    assert to_bytes(message).decode().split("\r\n") == [
        "From: =?utf-8?b?RG9lLCBKb3PDqQ==?= <news@example.com>",
        "To: ann@example.org",
        "Reply-To: office@example.com",
        "Subject: =?utf-8?b?R3LDvMOfZQ==?=",
        "Date: Fri, 02 Jan 2026 03:04:05 +0000",
        "Message-ID: <86e67cf1-a3d9-588f-bc54-68a82f182dd7@example.com>",
        "List-Id: Acme <acme.mail.example.org>",
        f"List-Unsubscribe: <{CAMPAIGN.unsubscribe_url}>",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        "Feedback-ID: 3:acme:campaign:s88cebecad51",
        "Precedence: bulk",
        "MIME-Version: 1.0",
        'Content-Type: text/plain; charset="utf-8"',
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "H=C3=A9 =3D {x}",
        "=2E",
        "",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str) -> None:
    message = build(from_name=name, account_name=name)
    ((shown, address),) = getaddresses([raw_header(message, "From")])
    assert address == "news@example.com"
    assert decoded(shown) == name.strip()
    assert to_bytes(message).count(b"news@example.com") == 1
    # What API backends get: Unicode, and one address for any parser.
    assert getaddresses([message.from_email]) == [(name.strip(), "news@example.com")]
    list_id = raw_header(message, "List-Id")
    assert len(list_id) <= 255
    assert list_id.endswith(" <acme.mail.example.org>")


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "Plain",
        "é",
        "=?utf-8?q?trap?=",
        " leading and trailing ",
        "two  spaces   kept",
        "word " * 99 + "end",
        "x" * 990,
        "x" * 2000,
        "日本語の件名" * 30,
        "👩‍👩‍👧‍👦" * 30,
        "اختبار العربية",
    ],
)
def test_subjects_survive(subject: str) -> None:
    assert decoded(raw_header(build(replace(WORDS, subject=subject)), "Subject")) == subject


@pytest.mark.parametrize(
    ("address", "wire"),
    [
        ("Ann.Lee+tag@EXAMPLE.org", "Ann.Lee+tag@EXAMPLE.org"),
        ('"quoted local"@example.org', '"quoted local"@example.org'),
        ('"a@b, <c>"@example.org', '"a@b, <c>"@example.org'),
        ("o'hara@example.org", "o'hara@example.org"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@例え.example", "ann@xn--r8jz45g.example"),
        ("ann@faß.example", "ann@xn--fa-hia.example"),
        ("ann@[127.0.0.1]", "ann@[127.0.0.1]"),
        ("ann@localhost", "ann@localhost"),
        ("用户@例え.example", "用户@xn--r8jz45g.example"),
    ],
)
def test_addresses(address: str, wire: str) -> None:
    message = build(to=address)
    assert message.to == [address]
    assert raw_header(message, "To") == wire


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "@example.org",
        "a@",
        "a b@example.org",
        "a@example.org, b@example.org",
        "a@example.org,b@example.org",
        "Ann <a@example.org>",
        "<a@example.org>",
        "a@example.org\nBcc: b@example.org",
        "a@exam ple.org",
        "a@example.org.",
        "a..b@example.org",
        '"a\nb"@example.org',
        '"a"b"@example.org',
        "a\u200bb@example.org",
        "é\u200bb@example.org",
        "é\u202eb@example.org",
        "a@-example.org",
        "a@ex_.org>",
        "a\x00@example.org",
        "\ud800@example.org",
        "a@" + "x" * 64 + ".org",
        "x" * 320 + "@example.org",
    ],
)
def test_bad_addresses_fail_their_row(address: str) -> None:
    with pytest.raises(MessageError):
        build(to=address)
    with pytest.raises(MessageError):
        build(from_email=address)


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n", "\x00", "\x0b", "\x85", "\u2028", "\ud800"])
def test_no_header_can_be_injected(break_: str) -> None:
    evil = f"a{break_}Bcc: victim@example.org"
    url = f"https://example.org/{evil}"
    for name, value in (("from_name", evil), ("reply_to", evil), ("unsubscribe_url", url)):
        with pytest.raises(MessageError):
            build(WORDS, **{name: value})
    with pytest.raises(MessageError):
        build(replace(WORDS, subject=evil))


@pytest.mark.parametrize(
    "url",
    ["", "mailto:a@example.org", "https://ex.org/a b", "https://ex.org/<x>", "https://é.org/"],
)
def test_an_unsubscribe_url_a_header_cannot_hold_is_refused(url: str) -> None:
    with pytest.raises(MessageError):
        build(unsubscribe_url=url)


@pytest.mark.parametrize("length", [20, 70, 78, 120, 200, 900])
def test_list_unsubscribe_is_one_unencoded_line(length: int) -> None:
    url = "https://" + "x" * (length - 8) + "/u/" + "t" * 32
    message = build(unsubscribe_url=url, account_name="Åcme", from_name="Åcme")
    line = f"List-Unsubscribe: <{url}>".encode()
    for data in (
        to_bytes(message),
        message.message().as_bytes(),
        message.message(policy=email.policy.SMTP).as_bytes(policy=email.policy.SMTP),
        message_bytes(message)[1],
    ):
        assert line in data.splitlines()


def test_parts() -> None:
    both = parsed(build())
    assert [part.get_content_type() for part in both.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    alone = parsed(build(replace(WORDS, html="")))
    assert alone.get_content_type() == "text/plain"
    assert not alone.is_multipart()


def test_django_backends_take_it() -> None:
    message = build()
    assert isinstance(message, EmailMultiAlternatives)
    assert EmailBackend().send_messages([message]) == 1
    assert message.recipients() == ["ann@example.org"]
    assert [tuple(part) for part in message.alternatives] == [("<p>Hi</p>", "text/html")]
    # Django 5.2's SMTP backend asks for its line ends, 6.1's gives a policy.
    assert message.message().as_bytes(linesep="\r\n") == to_bytes(message)
    assert message.message(policy=email.policy.SMTP).as_bytes() == to_bytes(message).replace(
        b"\r\n", b"\n"
    )
    assert message.message().as_string().encode() == message.message().as_bytes()


_TEXTS = st.text(max_size=400) | st.text(alphabet="a.=\r\n \té\u2028", max_size=300)


@given(subject=st.text(max_size=120), text=_TEXTS, html=_TEXTS, name=st.text(max_size=60))
def test_the_wire_form_is_what_the_tree_writes(
    subject: str, text: str, html: str, name: str
) -> None:
    try:
        message = build(Rendered(subject=subject, html=html, text=text), from_name=name)
    except MessageError:
        return
    assert message.wire_bytes() == message.message().as_bytes(linesep="\r\n")


def test_a_header_that_is_changed_after_the_check_is_written_as_it_is_then() -> None:
    message = build()
    message.extra_headers["X-Later"] = "yes"
    assert b"\r\nX-Later: yes\r\n" in message.wire_bytes()
    message.extra_headers["X-Later"] = "no\nBcc: a@example.org"
    with pytest.raises(MessageError):
        message.wire_bytes()


def test_what_a_send_is_not_is_refused() -> None:
    message = build()
    message.attach("a.txt", "x", "text/plain")
    with pytest.raises(MessageError, match="no attachments"):
        message.message()


def test_to_bytes_of_any_django_message() -> None:
    data = to_bytes(
        EmailMultiAlternatives("Hé", "x", from_email="a@example.org", to=["b@example.org"])
    )
    assert data.count(b"\n") == data.count(b"\r\n") > 5


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
LONG = st.one_of(
    TEXT, st.text("é=. \t\n\rx", max_size=300), st.text(max_size=3).map(lambda s: s * 700)
)


@given(TEXT, TEXT)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_any_name_and_subject_round_trip_or_are_refused(name: str, subject: str) -> None:
    try:
        message = build(replace(WORDS, subject=subject), from_name=name, account_name=name)
    except MessageError:
        assert any(not c.isprintable() for c in name + subject)
        return
    head = to_bytes(message).partition(b"\r\n\r\n")[0]
    lines = head.split(b"\r\n")
    assert head.isascii()
    assert b"\r" not in b"".join(lines)
    assert b"\n" not in b"".join(lines)
    assert all(0 < len(line) <= 998 for line in lines)
    assert all(line[:1] == b" " or b": " in line for line in lines)
    assert len([line for line in lines if line[:1] != b" "]) == 13
    words = re.findall(rb"=\?utf-8\?b\?([^?]*)\?=", head)
    assert all(len(word) <= 75 - len("=?utf-8?b??=") for word in words)
    for word in words:
        b64decode(word).decode()  # a word never ends inside a character
    assert decoded(raw_header(message, "Subject")) == subject
    ((shown, address),) = getaddresses([raw_header(message, "From")])
    assert address == "news@example.com"
    assert decoded(shown) == name.strip()


@given(LONG, LONG)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_any_body_round_trips(text: str, html: str) -> None:
    message = build(Rendered("x", html, text))
    data = to_bytes(message)
    assert data.isascii()
    assert data.count(b"\n") == data.count(b"\r") == data.count(b"\r\n")
    assert max(map(len, data.partition(b"\r\n\r\n")[2].split(b"\r\n"))) <= 76
    found = parsed(message)
    for kind, given_ in (("plain", text), ("html", html)):
        if not given_ and kind == "html":
            continue
        part = found.get_body((kind,))
        assert part is not None
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        lines = given_.replace("\r\n", "\n").replace("\r", "\n")
        assert payload.decode().replace("\r\n", "\n") == (
            lines if lines.endswith("\n") else lines + "\n"
        )


@given(TEXT)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_any_address_is_one_address_or_refused(text: str) -> None:
    try:
        wire = headers.wire_address(text)
    except MessageError:
        return
    assert len(getaddresses([wire])) == 1
    assert not re.search(r"[\x00-\x1f\x7f]", wire)
