"""What somebody writes into names, fields and headers, on every page for people outside."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.tokens import Kind, make_token
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    SegmentFactory,
    SignupFormFactory,
    SubscriberFactory,
)

from .rows import campaign_to, member
from .signups import address_of, link_in, mails, sign_up, visitor
from .test_preferences_address import url

pytestmark = pytest.mark.django_db

NASTY = "<script>alert(1)</script>\"'{{ 7|add:7 }}&\u202e"


def test_no_text_becomes_markup_or_a_template() -> None:
    account = AccountFactory.create(name=NASTY, from_name=NASTY)
    form = SignupFormFactory.create(
        account=account, name=NASTY, intro=NASTY, consent_text=NASTY, fields=["k"]
    )
    AttributeDefinitionFactory.create(account=account, key="k", label=NASTY)
    segment = SegmentFactory.create(account=account, name=NASTY, description=NASTY)
    person = SubscriberFactory.create(
        account=account, email="ann@example.org", segments=[segment], attributes={"x": NASTY}
    )
    web = visitor()
    leaving = f"/u/{make_token(Kind.UNSUBSCRIBE, person.pk, None)}"
    pages: list[Any] = [
        web.get(address_of(form)),
        sign_up(form, "ann@example.org", **{"attribute-k": NASTY}),
        sign_up(form, NASTY, **{"attribute-k": NASTY}),
    ]
    (question,) = mails()
    pages += [web.get(link_in(question)), web.post(link_in(question))]
    pages += [web.get(leaving), web.get(url(person))]
    pages.append(web.post(url(person), {"action": "address", "email": NASTY}))
    pages.append(web.post(leaving))
    for answer in pages:
        words = answer.content.decode()
        assert "<script" not in words
        assert ">14<" not in words
        assert not answer.cookies
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        assert "script-src" not in answer["Content-Security-Policy"]
    assert sum("&lt;script&gt;" in answer.content.decode() for answer in pages) > 5
    assert question.content is not None
    assert "<script" not in question.content.html


def test_a_nul_in_the_browsers_name_keeps_nobody_from_leaving() -> None:
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    web = visitor(headers={"user-agent": "a\0b"})
    was = str(campaign.segments.get().pk)
    for given in (
        {"action": "address", "email": "new@example.org"},
        {"action": "segments", "was": was},
        {"action": "leave"},
    ):
        assert web.post(url(ann), given).status_code == 200
    assert mails()[0].email == "new@example.org"
    assert not ann.memberships.filter(left_at__isnull=True).exists()
    ann.refresh_from_db()
    assert ann.status == "unsubscribed"
    other = member(campaign)
    link = make_token(Kind.UNSUBSCRIBE, other.pk, campaign.pk)
    assert web.post(f"/u/{link}").status_code == 200
    other.refresh_from_db()
    assert other.status == "unsubscribed"
