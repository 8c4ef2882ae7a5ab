"""What signing up decides without a database: limits, origins, JSON, fields, the mail's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.template import Context, Template
from django.test import RequestFactory, override_settings
from django.utils import translation

from subscribers.checks import check_client_address
from subscribers.joining.fields import PREFIX, as_locale, form_class, language_wanted
from subscribers.joining.json_endpoint import Refused, as_fields, read
from subscribers.joining.limits import Limits, Seen, Verdict, decide, limits, mailbox
from subscribers.joining.mail import as_html, message, usual_text
from subscribers.joining.origins import allows, as_origin
from subscribers.models import Account, AttributeDefinition, Signup, SignupForm

# --- limits --------------------------------------------------------------------------------------

MOST = Limits(network_hour=20, network_day=60, account_hour=1000)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Seen(), Verdict.MAILED),
        (Seen(0, 2, 19, 59, 999), Verdict.MAILED),
        (Seen(address_recent=1), Verdict.ADDRESS),
        (Seen(address_day=3), Verdict.ADDRESS),
        (Seen(network_hour=20), Verdict.NETWORK),
        (Seen(network_day=60), Verdict.NETWORK),
        (Seen(account_hour=1000), Verdict.ACCOUNT),
        # What is answered openly must not depend on the address.
        (Seen(address_recent=1, network_hour=20), Verdict.NETWORK),
        (Seen(address_day=3, account_hour=1000), Verdict.ACCOUNT),
        (Seen(network_day=60, account_hour=1000), Verdict.NETWORK),
    ],
)
def test_the_verdict(seen: Seen, verdict: Verdict) -> None:
    assert decide(seen, MOST) is verdict


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Seen(), Verdict.TRAPPED),
        (Seen(account_hour=1000), Verdict.TRAPPED),
        (Seen(address_recent=1), Verdict.TRAPPED),
        (Seen(network_hour=20), Verdict.NETWORK),
    ],
)
def test_a_program_is_answered_as_anybody_until_its_network_is_full(
    seen: Seen, verdict: Verdict
) -> None:
    assert decide(seen, MOST, trapped=True) is verdict


def test_the_limits_are_settings() -> None:
    assert limits() == MOST
    with override_settings(SENDONCE={"SIGNUP_NETWORK_HOUR": 2, "SIGNUP_ACCOUNT_HOUR": 3}):
        assert limits() == Limits(network_hour=2, network_day=60, account_hour=3)


@pytest.mark.parametrize(
    ("email", "same"),
    [
        ("Ann@example.org", "ann@example.org"),
        ("ann+news@example.org", "ann@example.org"),
        ("a.n.n+1@gmail.com", "ann@gmail.com"),
        ("ann@googlemail.com", "ann@gmail.com"),
        ("a.nn@example.org", "a.nn@example.org"),
        ("+@example.org", "+@example.org"),
        ('"a@b+c"@example.org', '"a@b@example.org'),
    ],
)
def test_one_mailbox_under_many_names(email: str, same: str) -> None:
    assert mailbox(email) == same


# --- origins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("https://www.example.org", "https://www.example.org"),
        (" HTTPS://Www.Example.org/ ", "https://www.example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://bücher.example.org", "https://xn--bcher-kva.example.org"),
        ("*", None),
        ("null", None),
        ("", None),
        ("example.org", None),
        ("https://", None),
        ("ftp://example.org", None),
        ("https://*.example.org", None),
        ("https://example.org/path", None),
        ("https://example.org; script-src *", None),
        ("https://example.org\nhttps://x.example", None),
        ("https://user@example.org", None),
        ("https://" + "ü" * 100 + ".example", None),
    ],
)
def test_an_origin_has_one_form(written: str, origin: str | None) -> None:
    assert as_origin(written) == origin


@pytest.mark.parametrize(
    ("asking", "allowed"),
    [
        (None, True),
        ("https://www.example.org", True),
        ("http://testserver", True),
        ("https://mail.example.org", True),
        ("http://www.example.org", False),
        ("https://www.example.org.evil.example", False),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
@override_settings(SENDONCE={"BASE_URL": "https://mail.example.org"}, ALLOWED_HOSTS=["testserver"])
def test_who_may_post_from_another_page(asking: str | None, allowed: bool) -> None:
    headers = {} if asking is None else {"Origin": asking}
    request = RequestFactory().post("/", headers=headers)
    assert allows(request, ["https://www.example.org"]) is allowed


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b'"ann@example.org"',
        b"null",
        b"\xff\xfe{}",
        b'{"email": NaN}',
        b'{"email": Infinity}',
        b'{"email": 1e999}',
        b'{"email": "a", "email": "b"}',
        b'{"attributes": {"x": 1, "x": 2}}',
        rb'{"email": "\ud800"}',
        b"[" * 60_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"email": ' + b"9" * 5000 + b"}",
        '{"email": "ann@example.org"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"email": "ann@example.org"}',
    ],
)
def test_what_is_no_object_in_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read(body)
    assert list(refused.value.errors) == ["body"]


def definition(key: str, kind: str = "text", **more: Any) -> AttributeDefinition:
    return AttributeDefinition(key=key, kind=kind, **more)


DEFINITIONS = [
    definition("first_name"),
    definition("age", "number"),
    definition("born", "date"),
    definition("news", "boolean"),
    definition("color", "choice", choices=["red", "blue"]),
]


def test_json_becomes_the_texts_of_the_form() -> None:
    given = {
        "email": "ann@example.org",
        "attributes": {"first_name": "Ann", "age": 7.5, "news": False, "color": None},
    }
    data, answered = as_fields(given, DEFINITIONS)
    assert data["email"] == "ann@example.org"
    assert data[f"{PREFIX}age"] == "7.5"
    assert data[f"{PREFIX}news"] == "False"
    assert answered == {"first_name", "age", "news"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"email": 1}, "email"),
        ({"email": ["a@example.org"]}, "email"),
        ({"email": {"$ne": ""}}, "email"),
        ({"email": None}, "email"),
        ({"status": "confirmed"}, "status"),
        ({"attributes": []}, "attributes"),
        ({"attributes": {"secret": "x"}}, "attributes.secret"),
        ({"attributes": {"first_name": 1}}, "attributes.first_name"),
        ({"attributes": {"first_name": True}}, "attributes.first_name"),
        ({"attributes": {"first_name": {"a": "b"}}}, "attributes.first_name"),
        ({"attributes": {"age": "7"}}, "attributes.age"),
        ({"attributes": {"age": True}}, "attributes.age"),
        ({"attributes": {"news": 1}}, "attributes.news"),
        ({"attributes": {"news": "true"}}, "attributes.news"),
        ({"attributes": {"color": ["red"]}}, "attributes.color"),
    ],
)
def test_other_types_and_names_are_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as refused:
        as_fields(given, DEFINITIONS)
    assert list(refused.value.errors) == [field]


# --- fields --------------------------------------------------------------------------------------


def filled(**values: str) -> Any:
    form = SignupForm(fields=[one.key for one in DEFINITIONS] + ["gone"], consent_text="Yes.")
    given = form_class(form, {one.key: one for one in DEFINITIONS})
    data = {f"{PREFIX}{key}": value for key, value in values.items()}
    return given({"email": "ann@example.org", **data})


def test_values_come_in_the_types_of_their_kind() -> None:
    entry = filled(first_name=" Ann ", age="42", born="1990-02-28", news="on", color="blue")
    assert entry.is_valid(), entry.errors
    assert entry.attributes == {
        "first_name": "Ann",
        "age": 42,
        "born": "1990-02-28",
        "news": True,
        "color": "blue",
    }
    assert filled(age="1.5").errors == {}


def test_what_is_left_blank_says_nothing_but_a_box_says_no() -> None:
    entry = filled(first_name=" ", age="")
    assert entry.is_valid()
    assert entry.attributes == {"news": False}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("first_name", "a\0b"),
        ("first_name", "x" * 501),
        ("age", "seven"),
        ("age", "NaN"),
        ("age", "Infinity"),
        ("age", "1e400"),
        ("age", "9" * 4000),
        ("born", "31.12.1990"),
        ("born", "1990-02-30"),
        ("color", "green"),
    ],
)
def test_values_of_another_kind_are_refused(key: str, value: str) -> None:
    assert list(filled(**{key: value}).errors) == [f"{PREFIX}{key}"]


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("fr-CH, fr;q=0.9, en;q=0.8", "fr-ch"),
        ("en;q=0.3, es;q=0.9", "es"),
        ("*", ""),
        ("", ""),
        ("x" * 5000, ""),
        ("de-DE'; DROP TABLE", ""),
    ],
)
def test_the_language_that_a_browser_asks_for(header: str, locale: str) -> None:
    request = RequestFactory().get("/", headers={"Accept-Language": header})
    assert language_wanted(request) == locale


@pytest.mark.parametrize("text", [None, 3, "x", "fr_", "fr\n", "f" * 21, "../fr", "fr;q=1"])
def test_no_locale(text: Any) -> None:
    assert as_locale(text) == ""


# --- the mail ------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "fr", "es"])
def test_the_usual_mail_has_the_link_and_the_sender(language: str) -> None:
    form = SignupForm(account=Account(name="Acme"))
    signup = Signup(pk=7, account=form.account, email="ann@example.org", mails=2)
    mail = message(signup, form, language)
    assert (mail.kind, mail.key, mail.to) == ("confirm", "7-2", "ann@example.org")
    assert "{{ account.name }}" in mail.subject
    assert mail.text.count("{{ confirm_url }}") == 1
    assert mail.html.count("{{ confirm_url }}") == 1
    assert f'<html lang="{language}">' in mail.html
    assert "{{ account.postal_address }}" in mail.text
    assert list(mail.context) == ["confirm_url"]
    assert not any("%(" in text for text in (mail.subject, mail.text, mail.html))


def test_the_form_s_own_words_go_before_the_usual_ones() -> None:
    form = SignupForm(account=Account(), subject="Hi", body="Press\r\n\r\n{{ confirm_url }}\r\n")
    signup = Signup(pk=7, account=form.account, email="ann@example.org", mails=1)
    mail = message(signup, form, "en")
    assert (mail.subject, mail.text) == ("Hi", "Press\n\n{{ confirm_url }}\n")
    usual = message(signup, form, "en", usual=True)
    assert (usual.subject, usual.text) == ("Please confirm: {{ account.name }}", usual_text())


def test_html_is_made_from_text_and_merge_tags_stay() -> None:
    text = (
        'Hello <b> & "you"\nof {{ account.name|default:"x" }},\n\n{{ confirm_url }}\n\n'
        "or open {{confirm_url}} yourself."
    )
    with translation.override("en"):
        html = as_html(text, label="Yes <sure>")
    assert (
        '<p>Hello &lt;b&gt; &amp; &quot;you&quot;<br>\nof {{ account.name|default:"x" }},</p>'
        in html
    )
    assert '<a href="{{ confirm_url }}" style=' in html
    assert ">Yes &lt;sure&gt;</a>" in html
    assert '<p>or open <a href="{{ confirm_url }}">{{ confirm_url }}</a> yourself.</p>' in html
    rendered = Template(html).render(Context({"confirm_url": "https://e.org/u/x"}))
    assert rendered.count("https://e.org/u/x") == 3


def test_the_json_of_the_docs_is_understood() -> None:
    body = json.dumps({"email": "ann@example.org", "locale": "fr"}).encode()
    data, answered = as_fields(read(body), [])
    assert (data["locale"], answered) == ("fr", set())


# --- behind a proxy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proxy", "header", "found"),
    [
        (None, "", []),
        (("HTTP_X_FORWARDED_PROTO", "https"), "", ["sendonce.W005"]),
        (("HTTP_X_FORWARDED_PROTO", "https"), "X-Forwarded-For", []),
    ],
)
def test_a_proxy_that_hides_everybody_is_a_warning(
    proxy: tuple[str, str] | None, header: str, found: list[str]
) -> None:
    with override_settings(
        SECURE_PROXY_SSL_HEADER=proxy, SENDONCE={"CLIENT_ADDRESS_HEADER": header}
    ):
        assert [message.id for message in check_client_address(None)] == found
