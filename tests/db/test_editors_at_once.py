"""Two editors of one row: the later is told, and what the first wrote stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from campaigns.models import Image
from subscribers.models import Account, AttributeDefinition, Segment, SignupForm, Subscriber
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    ImageFactory,
    SegmentFactory,
    SignupFormFactory,
    StaffFactory,
    SubscriberFactory,
)

from .admin_pages import url
from .racing import Race


def superuser() -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    return client


def loaded(client: Client, row: Any) -> dict[str, Any]:
    """What a browser would post from the change page as it is now."""
    context = client.get(url(type(row), "change", row.pk)).context
    form = context["adminform"].form
    given = {name: form[name].value() for name in form.fields}
    for inline in context["inline_admin_formsets"]:
        prefix = inline.formset.prefix
        given |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    return {
        name: [getattr(one, "pk", one) for one in value] if isinstance(value, list) else value
        for name, value in given.items()
        if value is not None and value is not False
    }


def errors(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.context["adminform"].form.non_field_errors())


def person() -> Any:
    account = AccountFactory.create()
    AttributeDefinitionFactory.create(account=account, key="city", kind="text", label="Town")
    return SubscriberFactory.create(account=account, attributes={"city": "Rome", "shoe": "44"})


def typed(row: Any, key: str) -> str:
    definition = AttributeDefinition.objects.get(account=row.account, key=key)
    return f"attribute_{definition.pk}"


def letter() -> Any:
    segment = SegmentFactory.create()
    return SignupFormFactory.create(account=segment.account, segments=[segment])


#: How a row is made, the field that the first editor changes with its value, and the label.
EDITS: dict[type[Any], tuple[Callable[[], Any], str, Any, str]] = {
    Account: (AccountFactory.create, "from_name", "The first", "From name"),
    Segment: (SegmentFactory.create, "description", "The first", "Description"),
    AttributeDefinition: (AttributeDefinitionFactory.create, "label", "The first", "Label"),
    Subscriber: (person, "attributes", '{"shoe": "45"}', "Other attributes"),
    SignupForm: (letter, "intro", "The first", "Intro"),
    Image: (ImageFactory.create, "alt", "The first", "Alternative text"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("model", EDITS, ids=lambda model: model.__name__)
def test_the_later_editor_is_told_what_changed_and_overwrites_nothing(model: type[Any]) -> None:
    make, name, value, label = EDITS[model]
    row = make()
    page = url(model, "change", row.pk)
    client = superuser()
    first, second = loaded(client, row), loaded(client, row)
    assert client.post(page, {**first, name: value}).status_code == 302
    stored = model.objects.values().get(pk=row.pk)
    answer = client.post(page, second)
    assert errors(answer).count(label) == 1
    assert "Not saved: changed meanwhile: " in errors(answer)
    # Sent again as the page came back, it is refused again; a page that was loaded since is not.
    again = answer.context["adminform"].form["seen"].value()
    assert "Not saved" in errors(client.post(page, {**second, "seen": again}))
    assert "not complete" in errors(client.post(page, {**second, "seen": ""}))
    assert model.objects.values().get(pk=row.pk) == stored
    assert client.post(page, loaded(client, row)).status_code == 302
    assert model.objects.values().get(pk=row.pk) == stored


@pytest.mark.django_db
def test_only_what_the_page_would_write_is_compared() -> None:
    """The system writes rows too; and one attribute is not another."""
    row, client = person(), superuser()
    page = url(Subscriber, "change", row.pk)
    given = loaded(client, row)
    Subscriber.objects.filter(pk=row.pk).update(paused_until="2999-01-01T00:00Z")
    assert client.post(page, {**given, "locale": "de"}).status_code == 302
    given = loaded(client, row)
    assert client.post(page, {**given, typed(row, "city"): "Oslo"}).status_code == 302
    told = errors(client.post(page, {**given, "locale": "fr"}))
    assert "changed meanwhile: Town." in told
    row.refresh_from_db()
    assert (row.attributes["city"], row.locale) == ("Oslo", "de")


@pytest.mark.django_db(transaction=True)
def test_of_two_that_save_in_the_same_instant_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    row: Any = SegmentFactory.create()
    page = url(Segment, "change", row.pk)
    one, other = superuser(), superuser()
    first = {**loaded(one, row), "name": "First"}
    second = {**loaded(other, row), "description": "Second"}
    with Race() as race:
        halt = race.halt()
        # It has compared, and not yet written.
        monkeypatch.setattr(Segment, "full_clean", halt.behind(Segment.full_clean))
        winner = race.start_to(halt, lambda: one.post(page, first))
        loser = race.start(lambda: other.post(page, second))
        loser.wait_until_blocked()
        halt.released.set()
        assert winner.result().status_code == 302
        assert "changed meanwhile: Name." in errors(loser.result())
    row.refresh_from_db()
    assert (row.name, row.description) == ("First", "")
