"""Messages that the people's app asks for: durable, sent once, and with the right headers."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from campaigns.content import ContentError
from campaigns.models import Content
from sending.compose import Composer
from sending.handover import hand_over
from sending.models import Send
from sending.queue import Claimed, Rotation, claim
from sending.transports import Prepared, transport
from subscribers import hooks
from subscribers.addresses import AddressError
from subscribers.hooks import Message, check_template, send_message
from subscribers.joining.mail import KIND as SIGN_UP
from subscribers.models import Account
from subscribers.suppression import suppress
from tests.factories import AccountFactory, SubscriberFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def account() -> Account:
    return AccountFactory.create(
        name="Shop", from_email="news@example.org", from_name="The shop", reply_to="us@example.org"
    )


@pytest.fixture
def message(account: Account) -> Message:
    return Message(
        account=account,
        kind="receipt",
        key="1-1",
        to="Ann@EXAMPLE.org",
        subject="Please confirm: {{ account.name }}",
        text="Hello {{ first_name }},\n{{ confirm_url }}\n",
        html='<p>Hello {{ first_name }}, <a href="{{ confirm_url }}">yes</a></p>',
        context={"first_name": "<Ann>", "confirm_url": "https://www.example.org/l/x"},
        expires=timezone.now() + timedelta(hours=1),
    )


def but(message: Message, **changes: Any) -> Message:
    return dataclasses.replace(message, **changes)


def _claim() -> list[Claimed]:
    return claim(Rotation(), worker_id=1, total=10, lease=60, margin=10, blocked=[])


def test_it_is_queued_in_the_caller_s_transaction(message: Message) -> None:
    with transaction.atomic():
        send_message(message)
        transaction.set_rollback(True)
    assert not Send.objects.exists()
    assert not Content.objects.exists()
    person = SubscriberFactory.create(account=message.account)
    number = send_message(but(message, subscriber=person))
    send = Send.objects.get()
    assert number == send.pk
    assert (send.status, send.email, send.subscriber_id) == ("queued", "Ann@example.org", person.pk)
    assert send.job_id == f"message:{message.account.pk}:receipt:1-1"
    assert send.expires == message.expires


def test_asked_for_twice_it_is_one(message: Message) -> None:
    later = but(message, expires=timezone.now() + timedelta(hours=5))
    assert send_message(message) == send_message(later)
    assert (Send.objects.count(), Content.objects.count()) == (1, 1)
    assert send_message(but(message, key="1-2")) != send_message(message)


def test_what_leaves_is_from_the_account_and_says_that_a_machine_wrote_it(message: Message) -> None:
    send_message(message)
    (row,) = _claim()
    composer = Composer()
    made = composer.compose(row, composer.load({row.content_id}), over=transport("default"))
    assert isinstance(made, Prepared)
    mail = message_from_bytes(made.data, _class=EmailMessage, policy=policy.default)
    assert mail["From"] == "The shop <news@example.org>"
    assert (mail["To"], mail["Reply-To"]) == ("Ann@example.org", "us@example.org")
    assert mail["Subject"] == "Please confirm: Shop"
    assert mail["Auto-Submitted"] == "auto-generated"
    for name in ("List-Unsubscribe", "List-Unsubscribe-Post", "List-Id", "Precedence"):
        assert mail[name] is None, "there is no list yet to leave"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert text.get_content().splitlines() == ["Hello <Ann>,", "https://www.example.org/l/x"]
    assert "Hello &lt;Ann&gt;" in html.get_content()


def test_without_html_it_is_text_only(message: Message) -> None:
    send_message(but(message, html=""))
    assert Content.objects.get().html == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subject": " "}, "subject: This must not be empty."),
        ({"subject": "a\nBcc: b@example.org"}, "subject: A subject can't contain line ends"),
        ({"subject": "{{ a"}, "subject"),
        ({"text": ""}, "text: This must not be empty."),
        ({"text": "{% load x %}"}, "text, line 1, column 1"),
        ({"html": "a\n{% for x in y %}"}, "html, line 2, column 1"),
        ({"key": ""}, "no key"),
        ({"kind": "a:b"}, "no kind"),
        ({"context": {"x": object()}}, "no plain data"),
        ({"expires": timezone.now().replace(tzinfo=None)}, "aware"),
    ],
)
def test_what_can_t_be_sent_is_refused_and_nothing_is_written(
    message: Message, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        send_message(but(message, **changes))
    assert not Send.objects.exists()
    assert not Content.objects.exists()


def test_an_address_or_an_account_that_can_t_be_used_is_refused(message: Message) -> None:
    with pytest.raises(AddressError):
        send_message(but(message, to="nobody"))
    message.account.from_email = "nobody"
    with pytest.raises(ContentError, match="'nobody' is not an e-mail address"):
        send_message(message)


@pytest.mark.parametrize(
    ("reason", "leaves"),
    [("unsubscribed", True), ("hard_bounce", False), ("complaint", False), ("manual", False),
     ("erased", False)],
)  # fmt: skip
def test_a_dead_address_stops_it_and_an_unsubscribe_does_not(
    message: Message, reason: str, leaves: bool
) -> None:
    send_message(message)
    suppress(message.account, message.to, reason)
    rows = _claim()
    assert [r.email for r in hand_over(rows, lease=60).go] == (
        ["Ann@example.org"] if leaves else []
    )


@pytest.mark.parametrize(
    ("kind", "finding"), [(SIGN_UP, "go"), ("confirm-address", "suppressed"), ("x", "suppressed")]
)
def test_only_a_sign_up_of_their_own_may_ask_somebody_back_who_was_erased(
    message: Message, kind: str, finding: str
) -> None:
    suppress(message.account, message.to, "erased")
    number = send_message(but(message, kind=kind))
    found = hand_over(_claim(), lease=60)
    assert found.withheld.get(number or 0, "go") == finding


@pytest.mark.parametrize(
    ("source", "html", "words"),
    [
        ("Hello {{ first_name|default:'there' }}", False, ""),
        ("<p>{% if x %}{{ x }}{% endif %}</p>", True, ""),
        ("Hello\n  {{ x|nosuch }}", False, "line 2, column 3: "),
        ("{% include 'x' %}", True, "line 1, column 1: "),
    ],
)
def test_a_template_is_checked_before_it_is_kept(source: str, html: bool, words: str) -> None:
    told = check_template(source, html)
    assert told.startswith(words)
    assert bool(told) == bool(words)


def test_without_anything_above_nothing_is_wrong_and_nothing_is_sent(message: Message) -> None:
    assert hooks.Hook(hooks.check_template.default)("{{", False) == ""
    assert hooks.Hook(hooks.send_message.default)(message) is None
