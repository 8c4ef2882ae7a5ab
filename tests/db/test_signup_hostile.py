"""What attackers and broken programs post to a sign-up form."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.addresses import erased_hashes
from subscribers.models import (
    Signup,
    SignupAttempt,
    SignupForm,
)
from tests.db.signups import address_of, form_with_fields, mails, sign_up, visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def form() -> SignupForm:
    return form_with_fields()


def words(answer: Any) -> str:
    return str(answer.content.decode())


# --- hostile input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "email",
    [
        "",
        "nobody",
        "a@b",
        "ann@example.org\0",
        "ann@example.org\r\nBcc: victim@example.org",
        "ann@example.org, bob@example.org",
        "Ann <ann@example.org>",
        "ann@[127.0.0.1]",
        "ann@localhost",
        "x" * 5000 + "@example.org",
        "ann@" + "x" * 300 + ".org",
        "'; DROP TABLE--@",
        "{{ 7|add:7 }}",
        "<script>@example.org",
    ],
)
def test_no_address(form: SignupForm, email: str) -> None:
    answer = sign_up(form, email)
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in words(answer)
    assert "<script>@" not in words(answer)
    assert not Signup.objects.exists()
    assert not SignupAttempt.objects.exists()


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("ann@Bücher.example.org", "ann@xn--bcher-kva.example.org"),
        ("jörg@example.org", "jörg@example.org"),
        ('"john doe"@example.org', '"john doe"@example.org'),
        ("\u200bann@example.org\u00a0", "ann@example.org"),
        ("mailto:ann@example.org", "ann@example.org"),
        ("o'neil+x@example.org", "o'neil+x@example.org"),
    ],
)
def test_addresses_of_every_script_and_form(form: SignupForm, typed: str, stored: str) -> None:
    assert sign_up(form, typed).status_code == 200
    assert Signup.objects.get().email == stored
    assert mails()[0].email == stored


def test_values_are_what_they_are(form: SignupForm) -> None:
    evil = "<script>alert(1)</script>{{ confirm_url }}\r\nBcc: x@example.org"
    answer = sign_up(form, "ann@example.org", **{"attribute-first_name": evil})
    assert answer.status_code == 200
    assert Signup.objects.get().attributes["first_name"] == evil
    answer = sign_up(form, "nobody", **{"attribute-first_name": evil, "attribute-age": "<b>"})
    assert "<script>alert" not in words(answer)
    assert 'value="&lt;b&gt;"' in words(answer)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"email=ann%40example.org" + b"&x=1" * 10_000, "application/x-www-form-urlencoded", 400),
        (b"email=ann%40example.org%00", "application/x-www-form-urlencoded", 400),
        (b"email=%ff%fe", "application/x-www-form-urlencoded", 400),
        (b"x" * 10_000_000, "application/x-www-form-urlencoded", 413),
        (b"x" * 10_000_000, "multipart/form-data; boundary=b", 413),
        (b"\xff broken", "multipart/form-data; boundary=b", 400),
        (b"\xff broken", "multipart/form-data", 400),
        (b"email=ann@example.org", "text/plain", 400),
        (b'{"email": "ann@example.org"}', "application/json", 400),
        (b"", "application/x-www-form-urlencoded", 400),
    ],
)
def test_bodies_of_every_kind(
    form: SignupForm, body: bytes, content_type: str, status: int
) -> None:
    answer = visitor().post(address_of(form), body, content_type=content_type)
    assert answer.status_code == status
    assert not answer.cookies
    assert not Signup.objects.exists()


def test_evidence_is_cut_to_what_fits(form: SignupForm) -> None:
    web = visitor(headers={"user-agent": "x" * 5000})
    sign_up(form, "ann@example.org", web)
    signup = Signup.objects.get()
    assert signup.requested_agent == "x" * 200
    assert SignupAttempt.objects.get().address_hash == erased_hashes("ann@example.org")[0]
