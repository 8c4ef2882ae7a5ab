"""A compiled content writes the message that is made part by part, and that Django would make."""

from __future__ import annotations

import email
import email.policy
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from uuid import UUID

import pytest
from django.core.mail import EmailMultiAlternatives
from hypothesis import example, given, settings
from hypothesis import strategies as st

from campaigns.models import Content
from campaigns.rendering import Rendered, Renderer, build_context
from campaigns.sandbox import MAX_VALUE, SandboxError
from sending.compiled import CompiledMessage
from sending.messages import Envelope, MessageError, SendMessage, build_message
from sending.sessions import Prepared
from sending.smtp_envelope import wire_body
from subscribers.models import Account
from tests.unit.smtp_relay import arrived
from tests.unit.test_text_parts import AWKWARD, LONG, as_read, complete

NAMESPACE = UUID("6f1f7c1e-8e4c-4b0e-9a52-0d1c5f0c7b11")
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LEAVE = "https://example.org/u/" + "t" * 32
ACCOUNT = {"name": "Acme & Söhne", "slug": "acme", "postal_address": "1 Way\n.Town = Łódź"}


def content_of(**fields: Any) -> Content:
    account = Account(name=ACCOUNT["name"], slug="acme")
    return Content(
        account=account,
        **{
            "subject": "Hello {{ name }}",
            "text": "Hi {{ name }}\n",
            "html": "",
            "from_email": "news@example.com",
            "from_name": "Acme 100 % News",
            "reply_to": "office@example.com",
            "account_fields": ACCOUNT,
            **fields,
        },
    )


class Person:
    """One recipient's message in its three makings."""

    def __init__(self, content: Content, *, to: str = "ann@example.org", **attributes: Any):
        self.content, self.to = content, to
        self.renderer = Renderer(content)
        self.context = build_context(
            email=to,
            attributes=attributes,
            account_fields=ACCOUNT,
            unsubscribe_url=LEAVE,
            preferences_url="https://example.org/u/p",
            web_url="https://example.org/u/w",
        )

    def compiled(self, by: CompiledMessage | None = None, campaign_id: int | None = 3) -> bytes:
        by = by or compiled(self.content, campaign_id)
        return by.write(
            to=self.to,
            job_id="campaign:3:7",
            date=DATE,
            context=self.context,
            unsubscribe_url=LEAVE if campaign_id else "",
        )

    def sent(self, campaign_id: int | None = 3) -> SendMessage:
        content = self.content
        envelope = Envelope(
            to=self.to,
            from_email=content.from_email,
            from_name=content.from_name,
            reply_to=content.reply_to,
            job_id="campaign:3:7",
            namespace=NAMESPACE,
            date=DATE,
            account_slug=content.account.slug,
            account_name=content.account.name,
            campaign_id=campaign_id,
            unsubscribe_url=LEAVE if campaign_id else "",
        )
        return build_message(envelope, self.rendered())

    def rendered(self) -> Rendered:
        return self.renderer.render(self.context)

    def of_django(self) -> bytes:
        """The same words and headers, put together by Django alone."""
        ours, rendered = self.sent(), self.rendered()
        message = EmailMultiAlternatives(
            rendered.subject,
            rendered.text,
            ours.from_email,
            [self.to],
            reply_to=ours.reply_to,
            headers=ours.extra_headers,
            alternatives=[(rendered.html, "text/html")] if rendered.html else None,
        )
        return bytes(message.message().as_bytes())


def compiled(content: Content, campaign_id: int | None = 3) -> CompiledMessage:
    return CompiledMessage(content, Renderer(content), namespace=NAMESPACE, campaign_id=campaign_id)


def read(data: bytes) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Headers, and the type and text of each part, as a mail program finds them."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    headers = {name: str(value) for name, value in message.items()}
    for name in ("Content-Type", "Content-Transfer-Encoding"):
        headers.pop(name, None)
    leaves = [part for part in message.walk() if not part.is_multipart()]
    assert not any(part.defects for part in message.walk())
    texts = []
    for part in leaves:
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        assert part.get_content_charset() == "utf-8"
        texts.append((part.get_content_type(), complete(payload.decode())))
    return headers, texts


SAFE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}%#"), max_size=60)
STATIC = (SAFE | AWKWARD | LONG).map(lambda text: text.replace("{", "("))
# fmt: off
TAGS = st.sampled_from([
    "{{ a }}", "{{ b }}", "{{ a|default:'.x' }}", "{{ b|upper }}", "{{ unsubscribe_url }}",
    "{{ account.postal_address|linebreaksbr }}", "{{ account.name }}{{ a }}", "{{ 'é'|upper }}",
    "{% if a %}", "{% if a %}.{{ a }}\n{% elif b %}", "{% if account.slug == 'acme' %}",
    "{# a\tb #}",
])
# fmt: on


def closed(parts: list[str]) -> str:
    return "".join(parts) + "{% else %}\n. {% endif %}" * sum("{% if" in part for part in parts)


TEMPLATE = st.lists(STATIC | TAGS, max_size=9).map(closed)
VALUE = AWKWARD | LONG | SAFE


@given(template=TEMPLATE, html=TEMPLATE, subject=SAFE, a=VALUE, b=VALUE)
@example("x" * 200 + "{{ a }}", "{{ a }}", "", ".\n", "")
@example("x" * 200 + "\r{{ a }}", "x" * 200 + "{{ a }}" + ".y" * 200, "", "\n", "")
@example("{{ a }}\n{{ b }}", "", "s", "", "")
@example("", "{{ a }}", "s", "", "")
@settings(derandomize=True, max_examples=100, deadline=None)
def test_three_ways_to_the_same_message(
    template: str, html: str, subject: str, a: str, b: str
) -> None:
    content = content_of(
        subject=f"{subject} {{{{ a|truncatechars:40 }}}}", text=template, html=html
    )
    try:
        person = Person(content, a=a[:MAX_VALUE], b=b[:MAX_VALUE])
        sent = person.sent().wire_bytes()
    except (MessageError, SandboxError, ValueError) as error:
        with pytest.raises(type(error)):
            compiled(content).write(
                to=person.to, job_id="", date=DATE, context=person.context, unsubscribe_url=LEAVE
            )
        return
    made = person.compiled()
    assert wire_body(made) == made
    assert max(map(len, made.partition(b"\r\n\r\n")[2].split(b"\r\n"))) <= 76
    assert as_read(made) == as_read(sent)
    rendered = person.rendered()
    headers, texts = read(made)
    assert texts == [
        (f"text/{kind}", complete(text))
        for kind, text in (("plain", rendered.text), ("html", rendered.html))
        if text or kind == "plain"
    ]
    assert headers["Subject"] == rendered.subject
    assert (headers, texts) == read(sent)
    if not rendered.text:
        return  # Django leaves an empty part out
    of_django = read(person.of_django())
    # Folding in the standard library adds a blank before some encoded words.
    headers["Subject"] = "".join(headers["Subject"].split())
    of_django[0]["Subject"] = "".join(of_django[0]["Subject"].split())
    assert (headers, texts) == of_django


def test_a_transactional_message_and_one_of_another_campaign_are_their_own() -> None:
    person = Person(content_of(), name="Zoë")
    for campaign_id in (None, 3, 4):
        assert person.compiled(campaign_id=campaign_id) == person.sent(campaign_id).wire_bytes()


@pytest.mark.parametrize(
    "value", ["", "a", ".", "..\r\n.", "x" * MAX_VALUE, "é=" * 20_000, "\0", " "]
)
def test_odd_values(value: str) -> None:
    text = "Static {{ a }}\n" + "between\n" * 50 + "{{ a }}." + "long " * 50 + "{{ a }}"
    person = Person(content_of(text=text, html=f"<p>{text}</p>"), a=value, name="b")
    made = person.compiled()
    assert wire_body(made) == made
    assert as_read(made) == as_read(person.sent().wire_bytes())
    assert read(made)[1][0] == ("text/plain", complete(text.replace("{{ a }}", value)))


def test_what_cannot_be_written_says_why() -> None:
    short, long = content_of(), content_of(text="x\ud800" * 200)
    with pytest.raises(MessageError, match="plain part is no valid Unicode"):
        compiled(long)
    with pytest.raises(MessageError, match="plain part is no valid Unicode"):
        Person(content_of(subject="s"), name="\ud800").compiled()
    with pytest.raises(MessageError, match="Subject contains"):
        Person(content_of(text="t"), name="\ud800").compiled()
    with pytest.raises(MessageError, match="not an e-mail address"):
        Person(short, to="a@example.org\nBcc: b@example.org").compiled()
    with pytest.raises(SandboxError, match="longer than"):
        Person(short, name="x" * (MAX_VALUE + 1)).compiled()
    for wrong in ("nobody", "a@example.org\n"):
        with pytest.raises(MessageError):
            compiled(content_of(from_email=wrong))
    person = Person(short, name="a")
    with pytest.raises(MessageError, match="List-Unsubscribe"):
        compiled(short).write(
            to=person.to, job_id="x", date=DATE, context=person.context, unsubscribe_url=""
        )


@pytest.mark.parametrize(
    ("fields", "reads"),
    [
        ({}, {"name"}),
        ({"text": "{% if web_url %}{{ account.name }}{% endif %}"}, {"name", "web_url", "account"}),
        ({"html": "{{ a.b.c|default:preferences_url }}"}, {"name", "a", "preferences_url"}),
    ],
)
def test_names_the_fields_that_are_read(fields: dict[str, str], reads: set[str]) -> None:
    assert compiled(content_of(**fields)).reads == reads


def test_arrives_as_it_was_written() -> None:
    text = ".a\n{{ a }}\n" + "static\n" * 50 + "{{ a }}"
    person = Person(content_of(text=text), a=".\r\n..x\n.", name="b")
    made = person.compiled()
    message = Prepared("news@example.com", person.to, made, stuffed=True)
    assert arrived(message) == made
    assert read(made)[1] == [("text/plain", complete(person.rendered().text))]


def test_many_threads_use_one() -> None:
    content = content_of(
        text="static\n" * 90 + "{% if n %}{{ n }}{% else %}none{% endif %}", html="{{ n }}"
    )
    by = compiled(content)
    people = [Person(content, to=f"a{n}@example.org", n=n, name=f"N {n}") for n in range(60)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda person: person.compiled(by), people * 5))
    assert made == [person.sent().wire_bytes() for person in people] * 5
