"""The confirmation mail as it goes over the wire."""

from __future__ import annotations

from email import message_from_bytes, policy
from typing import Any

import pytest

from sending.compose import Composer
from sending.transports import transport
from subscribers.models import SignupForm
from tests.db.rows import take
from tests.db.signups import link_in, mails, sign_up
from tests.factories import SignupFormFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def sent(form: SignupForm, **more: Any) -> tuple[Any, str]:
    """The message that somebody gets who fills in the form, and the link that must be in it."""
    assert sign_up(form, "ann@example.org", **more).status_code == 200
    (send,) = mails()
    (row,) = take([], 1, worker=WorkerFactory.create().pk)
    assert row.id == send.pk
    composer = Composer()
    assert send.content_id is not None
    made = composer.compose(row, composer.load({send.content_id}), over=transport("default"))
    return message_from_bytes(made.data, policy=policy.default), link_in(send)


def parts(message: Any) -> tuple[str, str]:
    return (
        str(message.get_body(("plain",)).get_content()),
        str(message.get_body(("html",)).get_content()),
    )


@pytest.mark.parametrize(
    ("locale", "language"), [("", "en"), ("fr", "fr"), ("es-MX", "es-mx"), ("tlh", "en")]
)
def test_the_usual_mail(locale: str, language: str) -> None:
    form = SignupFormFactory.create(account__name='Böoks & "Co" {{ x }}')
    message, link = sent(form, locale=locale)
    assert message["To"] == "ann@example.org"
    assert 'Böoks & "Co"' in message["Subject"]
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Unsubscribe"] is None
    text, html = parts(message)
    assert text.count(link) == 1
    assert html.count(f'{link}" style=') == 1
    assert 'Böoks & "Co"' in text
    assert "Böoks &amp; &quot;Co&quot;" in html
    assert f'<html lang="{language}">' in html
    for part in (message["Subject"], text, html):
        assert "confirm_url" not in part
        assert "%(" not in part
    assert form.account.postal_address in text


@pytest.mark.parametrize("body", ["", "{{confirm_url}}\n{{ account.postal_address }}"])
def test_the_postal_address_keeps_its_lines(body: str) -> None:
    form = SignupFormFactory.create(body=body, account__postal_address="1 Way & Co\nTown")
    text, html = parts(sent(form)[0])
    assert "1 Way & Co\nTown" in text.replace("\r\n", "\n")
    assert "1 Way &amp; Co<br>Town" in html


def test_a_form_s_own_words() -> None:
    form = SignupFormFactory.create(
        subject="{{ account.name }}: one click",
        body="Dear reader of <{{ account.name }}>,\r\n\r\nplease open {{ confirm_url }} now.\r\n"
        "{{ first_name }}{{ email }}",
        account__name="Acme",
    )
    message, link = sent(form, **{"attribute-first_name": "Mallory"})
    text, html = parts(message)
    assert message["Subject"] == "Acme: one click"
    assert "Dear reader of <Acme>," in text
    assert "Dear reader of &lt;Acme&gt;," in html
    assert link in text
    assert html.count(link) == 2
    assert "Mallory" not in text + html
