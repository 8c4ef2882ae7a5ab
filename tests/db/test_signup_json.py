"""The JSON endpoint of a sign-up form: strict, bounded, and open to the form's own sites only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings

from subscribers.joining.fields import TRAP
from subscribers.models import AttributeDefinition, Signup, SignupForm, Subscriber
from tests.db.signups import address_of, mails, visitor
from tests.factories import AttributeDefinitionFactory, SignupFormFactory, SubscriberFactory

pytestmark = pytest.mark.django_db

SITE = "https://www.example.org"


@pytest.fixture
def form() -> SignupForm:
    made = SignupFormFactory.create(fields=["age", "vip"], allowed_origins=[SITE])
    for key, kind in (("age", "number"), ("vip", "boolean"), ("secret", "text")):
        AttributeDefinitionFactory.create(account=made.account, key=key, kind=kind)
    return made


def post(form: SignupForm, data: Any, **headers: str) -> Any:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    kind = headers.pop("content_type", "application/json")
    return visitor().post(address_of(form, ".json"), body, content_type=kind, headers=headers)


def test_a_request_is_accepted(form: SignupForm) -> None:
    data = {"email": "Ann@Example.org", "locale": "es", "attributes": {"age": 7, "vip": False}}
    answer = post(form, data)
    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    signup = Signup.objects.get()
    assert (signup.email, signup.locale) == ("Ann@example.org", "es")
    assert signup.attributes == {"age": 7, "vip": False}
    assert len(mails()) == 1
    assert not answer.cookies
    assert "no-store" in answer.headers["Cache-Control"]


def test_what_is_left_out_is_not_answered(form: SignupForm) -> None:
    assert post(form, {"email": "ann@example.org", "attributes": {"vip": None}}).status_code == 202
    assert Signup.objects.get().attributes == {}


def test_the_answer_tells_nothing_of_an_address(form: SignupForm) -> None:
    SubscriberFactory.create(account=form.account, email="known@example.org")
    answers = [
        post(form, {"email": "known@example.org"}),
        post(form, {"email": "unknown@example.org"}),
        post(form, {"email": "known@example.org"}),
        post(form, {"email": "trap@example.org", TRAP: "x"}),
    ]
    assert {(one.status_code, one.content) for one in answers} == {(202, answers[0].content)}
    assert len(mails()) == 2


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({}, ["email"]),
        ({"email": ""}, ["email"]),
        ({"email": "nobody"}, ["email"]),
        ({"email": "ann@example.org\u0000"}, ["email"]),
        ({"email": "ann@example.org", "locale": "../x"}, ["locale"]),
        ({"email": "ann@example.org", "locale": "l" * 3000}, ["locale"]),
        ({"email": "ann@example.org", "consent": "0" * 64}, ["consent"]),
        ({"email": "ann@example.org", "attributes": {"age": 1e300}}, ["attributes.age"]),
        ({"email": "ann@example.org", "attributes": {"secret": "x"}}, ["attributes.secret"]),
        ({"email": 5, "attributes": {"age": "x"}, "x": 1}, ["attributes.age", "email", "x"]),
        ([], ["body"]),
        (b"{", ["body"]),
        (b"[" * 60_000, ["body"]),
    ],
)
def test_errors_are_named_by_field(form: SignupForm, data: Any, fields: list[str]) -> None:
    answer = post(form, data)
    assert answer.status_code == 400
    assert sorted(answer.json()["errors"]) == fields
    assert all(
        isinstance(text, str) for texts in answer.json()["errors"].values() for text in texts
    )
    assert not Signup.objects.exists()


def test_errors_come_in_the_language_asked_for(form: SignupForm) -> None:
    answer = post(form, {"email": "ann@example.org", "attributes": {"age": 1e300}, "locale": "fr"})
    (text,) = answer.json()["errors"]["attributes.age"]
    assert "chiffres" in text


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 202),
        ("application/json; charset=utf-8", 202),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/json", 415),
    ],
)
def test_only_json(form: SignupForm, kind: str, status: int) -> None:
    assert post(form, {"email": "ann@example.org"}, content_type=kind).status_code == status


@pytest.mark.parametrize("size", [64 * 1024 + 1, 10_000_000])
def test_bodies_are_bounded(form: SignupForm, size: int) -> None:
    body = b'{"email": "ann@example.org"' + b" " * (size - 28) + b"}"
    assert post(form, body).status_code == 413
    assert post(form, body[:27] + b" " * (64 * 1024 - 28) + b"}").status_code == 202


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch"])
def test_only_post(form: SignupForm, method: str) -> None:
    answer = getattr(visitor(), method)(address_of(form, ".json"))
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "OPTIONS, POST"


def test_a_form_that_is_not_there(form: SignupForm) -> None:
    SignupForm.objects.update(is_open=False)
    answer = post(form, {"email": "ann@example.org"}, Origin=SITE)
    assert answer.status_code == 404
    assert "form" in answer.json()["errors"]


# --- other sites ---------------------------------------------------------------------------------


def test_a_script_of_an_allowed_site_may_post_and_read(form: SignupForm) -> None:
    url = address_of(form, ".json")
    asked = visitor().options(
        url,
        headers={
            "Origin": SITE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        },
    )
    assert asked.status_code == 204
    assert asked.headers["Access-Control-Allow-Origin"] == SITE
    assert asked.headers["Access-Control-Allow-Methods"] == "POST"
    assert asked.headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert "Access-Control-Allow-Credentials" not in asked.headers
    answers = [
        post(form, {"email": "ann@example.org"}, Origin=SITE),
        post(form, {"email": "nobody"}, Origin=SITE),
        post(form, {}, Origin=SITE, content_type="text/plain"),
    ]
    assert [one.status_code for one in answers] == [202, 400, 415]
    for answer in answers:
        assert answer.headers["Access-Control-Allow-Origin"] == SITE
        assert "Origin" in answer.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://www.example.org", f"{SITE}.evil.example"]
)
def test_a_script_of_another_site_may_not(form: SignupForm, origin: str) -> None:
    for answer in (
        post(form, {"email": "ann@example.org"}, Origin=origin),
        visitor().options(address_of(form, ".json"), headers={"Origin": origin}),
    ):
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("Access-Control")]
    assert not Signup.objects.exists()


def test_a_form_without_sites_is_for_programs_and_its_own_pages(form: SignupForm) -> None:
    SignupForm.objects.update(allowed_origins=[])
    assert post(form, {"email": "ann@example.org"}, Origin=SITE).status_code == 403
    assert post(form, {"email": "ann@example.org"}, Origin="http://testserver").status_code == 202
    assert post(form, {"email": "bob@example.org"}).status_code == 202


@override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 1})
def test_too_many_from_one_network(form: SignupForm) -> None:
    web = visitor()
    for number, status in enumerate((202, 429)):
        answer = web.post(
            address_of(form, ".json"),
            json.dumps({"email": f"p{number}@example.org"}),
            content_type="application/json",
            headers={"Origin": SITE},
        )
        assert answer.status_code == status
    assert answer.headers["Retry-After"] == "3600"
    assert answer.headers["Access-Control-Allow-Origin"] == SITE
    assert "form" in answer.json()["errors"]


def test_nobody_is_subscribed_by_asking(form: SignupForm) -> None:
    post(form, {"email": "ann@example.org"})
    assert not Subscriber.objects.exists()
    assert AttributeDefinition.objects.count() == 3
