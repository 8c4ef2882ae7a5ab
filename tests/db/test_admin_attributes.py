"""Attribute definitions in the admin, and the fields that they make of a person's attributes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from subscribers.attributes.fit import count_misfits, count_misfits_of_each, count_people
from subscribers.models import Account, AttributeDefinition, AuditEvent, Subscriber
from tests.db.admin_pages import change, grant_all, member_client, url
from tests.factories import AccountFactory, StaffFactory, SubscriberFactory

pytestmark = pytest.mark.django_db


def define(account: Account, key: str, kind: str = "text", **more: Any) -> AttributeDefinition:
    return AttributeDefinition.objects.create(account=account, key=key, kind=kind, **more)


def definition_form(account: Account, **given: Any) -> dict[str, Any]:
    return {
        "account": account.pk,
        "key": "city",
        "label": "",
        "kind": "text",
        "choices": "",
        **given,
    }


# --- what fits, counted by the database ----------------------------------------------------------

VALUES = ["text", "7", "2026-11-30", "", 7, 7.5, -1, True, False, "2026-02-30", "2024-02-29", "red",
          "0000-01-01", "9999-12-31", "2026-1-3", "2026-11-30T10:00", ["x"], {"a": 1}]  # fmt: skip
FITTING: dict[str, list[Any]] = {
    "text": [v for v in VALUES if isinstance(v, str)],
    "number": [7, 7.5, -1],
    "boolean": [True, False],
    "date": ["2026-11-30", "2024-02-29", "9999-12-31"],
    "choice": ["red", ""],
}


@pytest.mark.parametrize("kind", FITTING)
def test_values_of_another_kind_are_counted(kind: str) -> None:
    account = AccountFactory.create()
    for value in VALUES:
        SubscriberFactory.create(account=account, attributes={"x": value, "other": 1})
    SubscriberFactory.create(account=account, attributes={"x": None})
    SubscriberFactory.create(account=account, attributes={})
    SubscriberFactory.create(attributes={"x": ["of another account"]})
    assert count_people(account, "x") == len(VALUES)
    wrong = len(VALUES) - len(FITTING[kind])
    assert count_misfits(account, "x", kind, ["red", ""]) == wrong
    if kind != "choice":
        several = {"unheard_of": "number", "x": kind, "other": "number"}
        assert count_misfits_of_each(account, several) == {"x": wrong}


def test_attributes_that_are_no_object_are_nobodys() -> None:
    account = AccountFactory.create()
    for value in (["x"], "x", 3):
        SubscriberFactory.create(account=account, attributes=value)
    assert count_people(account, "x") == 0
    assert count_misfits(account, "x", "number", []) == 0


# --- definitions ---------------------------------------------------------------------------------


def test_a_definition_is_added_with_its_choices_and_recorded(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = definition_form(account, key="size", kind="choice", choices="S\r\n M \r\n\r\nL\r\nS")
    assert superuser_client.post(url(AttributeDefinition, "add"), form).status_code == 302
    row = AttributeDefinition.objects.get()
    assert (row.key, row.kind, row.choices) == ("size", "choice", ["S", "M", "L"])
    event = AuditEvent.objects.get()
    assert (event.verb, event.subject, event.account) == ("attribute.define", "size", account)
    assert event.by_name


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"key": "email"}, "key"),
        ({"key": "first name"}, "key"),
        ({"key": "_x"}, "key"),
        ({"key": "2x"}, "key"),
        ({"key": ""}, "key"),
        ({"kind": "choice", "choices": " \n "}, "choices"),
        ({"kind": "text", "choices": "a"}, "choices"),
        ({"kind": "colour"}, "kind"),
        ({"kind": "choice", "choices": "x" * 201}, "choices"),
        ({"kind": "choice", "choices": "\n".join(map(str, range(501)))}, "choices"),
    ],
    ids=str,
)
def test_a_wrong_definition_is_an_error_of_its_form(
    superuser_client: Client, given: dict[str, str], field: str
) -> None:
    form = definition_form(AccountFactory.create(), **given)
    answer = superuser_client.post(url(AttributeDefinition, "add"), form)
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not AttributeDefinition.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_definition_that_stored_values_are_not_of_is_refused(superuser_client: Client) -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, attributes={"city": "Paris"})
    answer = superuser_client.post(
        url(AttributeDefinition, "add"), definition_form(account, kind="number")
    )
    assert "1 person has a value that is not a number" in answer.content.decode()
    assert not AttributeDefinition.objects.exists()


def test_a_kind_changes_only_while_every_value_fits(superuser_client: Client) -> None:
    account = AccountFactory.create()
    row = define(account, "joined", "text")
    people = [
        SubscriberFactory.create(account=account, attributes={"joined": value})
        for value in ("2026-01-01", "last year", "in May")
    ]
    answer = change(superuser_client, row, {"label": "", "kind": "date", "choices": ""})
    assert "2 people have a value that is not a date" in answer.content.decode()
    row.refresh_from_db()
    assert row.kind == "text"
    Subscriber.objects.filter(pk__in=[p.pk for p in people[1:]]).update(attributes={})
    answer = change(superuser_client, row, {"label": "", "kind": "date", "choices": ""})
    assert answer.status_code == 302
    row.refresh_from_db()
    assert row.kind == "date"


def test_a_choice_that_somebody_has_stays(superuser_client: Client) -> None:
    account = AccountFactory.create()
    row = define(account, "size", "choice", choices=["S", "M"])
    SubscriberFactory.create(account=account, attributes={"size": "M"})
    answer = change(superuser_client, row, {"label": "", "kind": "choice", "choices": "S\nL"})
    form = answer.context["adminform"].form
    assert "1 person has a value that is not among these choices" in str(form.errors["choices"])
    answer = change(superuser_client, row, {"label": "", "kind": "choice", "choices": "M\nL"})
    assert answer.status_code == 302


def test_account_and_key_are_for_good(superuser_client: Client) -> None:
    row = define(AccountFactory.create(), "city")
    forged = definition_form(AccountFactory.create(), key="town", label="Town")
    change(superuser_client, row, forged)
    stored = AttributeDefinition.objects.get()
    assert (stored.account, stored.key, stored.label) == (row.account, "city", "Town")


def test_its_page_counts_who_has_it(superuser_client: Client) -> None:
    account = AccountFactory.create()
    SubscriberFactory.create_batch(3, account=account, attributes={"city": "Paris"})
    row = define(account, "city")
    answer = superuser_client.get(url(AttributeDefinition, "change", row.pk))
    shown = answer.content.decode().split("People who have it", 1)[1][:300]
    assert ">3<" in shown


def test_deleting_it_leaves_peoples_values(superuser_client: Client) -> None:
    account = AccountFactory.create()
    person = SubscriberFactory.create(account=account, attributes={"city": "Paris"})
    row = define(account, "city")
    page = url(AttributeDefinition, "delete", row.pk)
    assert "1 person keeps the value" in superuser_client.get(page).content.decode()
    answer = superuser_client.post(page, {"post": "yes"}, follow=True)
    assert "the values that people have stay" in answer.content.decode()
    person.refresh_from_db()
    assert person.attributes == {"city": "Paris"}
    assert not AttributeDefinition.objects.exists()
    assert AuditEvent.objects.get().verb == "attribute.delete"


def test_another_accounts_definitions_are_not_there() -> None:
    mine, other = AccountFactory.create(), AccountFactory.create()
    row = define(other, "secretkey")
    client, _ = member_client(mine)
    answer = client.get(url(AttributeDefinition, "changelist"))
    assert "secretkey" not in answer.content.decode()
    for page in ("change", "delete"):
        assert client.get(url(AttributeDefinition, page, row.pk)).status_code in (302, 403)
        client.post(url(AttributeDefinition, page, row.pk), {"post": "yes", "kind": "number"})
    answer = client.post(url(AttributeDefinition, "add"), definition_form(other))
    assert "account" in answer.context["adminform"].form.errors
    assert AttributeDefinition.objects.get().kind == "text"


# --- one person's values -------------------------------------------------------------------------


@pytest.fixture
def person() -> Any:
    account = AccountFactory.create()
    define(account, "city", label="Town")
    define(account, "visits", "number")
    define(account, "born", "date")
    define(account, "vip", "boolean")
    define(account, "size", "choice", choices=["S", "M"])
    return SubscriberFactory.create(
        account=account,
        attributes={"city": "Paris", "visits": 3, "born": "2000-02-29", "vip": False, "size": "M",
                    "shoe": "44", "list": [1, 2]},
    )  # fmt: skip


def fields_of(person: Subscriber) -> dict[str, str]:
    """Names of the typed fields, by the attribute's key."""
    rows = AttributeDefinition.objects.filter(account=person.account)
    return {row.key: f"attribute_{row.pk}" for row in rows}


def posted(client: Client, person: Subscriber, **given: Any) -> Any:
    """Post a person's page as a browser would that only changed what is ``given``, by key."""
    page = url(Subscriber, "change", person.pk)
    context = client.get(page).context
    form = context["adminform"].form
    data = {name: form[name].value() for name in form.fields}
    data = {name: "" if value is None else value for name, value in data.items()}
    names = fields_of(person)
    data.update({names.get(key, key): value for key, value in given.items()})
    empty = {
        f"{inline.formset.prefix}-{name}": 0
        for inline in context["inline_admin_formsets"]
        for name in ("TOTAL_FORMS", "INITIAL_FORMS")
    }
    return client.post(page, {**data, **empty})


def test_defined_attributes_are_fields_and_the_rest_is_json(
    superuser_client: Client, person: Any
) -> None:
    form = superuser_client.get(url(Subscriber, "change", person.pk)).context["adminform"].form
    names = fields_of(person)
    assert {key: str(form[name].value()) for key, name in names.items()} == {
        "city": "Paris", "visits": "3", "born": "2000-02-29", "vip": "False", "size": "M",
    }  # fmt: skip
    assert form[names["city"]].label == "Town"
    assert form["attributes"].label == "Other attributes"
    assert form.initial["attributes"] == {"shoe": "44", "list": [1, 2]}


def test_saving_without_a_change_changes_nothing(superuser_client: Client, person: Any) -> None:
    before = person.attributes
    assert posted(superuser_client, person).status_code == 302
    person.refresh_from_db()
    assert person.attributes == before


def test_values_are_stored_of_their_kind(superuser_client: Client, person: Any) -> None:
    answer = posted(
        superuser_client, person, city="Rome", visits="12.5", born="2001-01-31", vip="true",
        size="", attributes='{"shoe": "45"}',
    )  # fmt: skip
    assert answer.status_code == 302
    person.refresh_from_db()
    assert person.attributes == {
        "city": "Rome", "visits": 12.5, "born": "2001-01-31", "vip": True, "shoe": "45",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [("visits", "many"), ("born", "31/01/2001"), ("born", "2001-02-30"), ("size", "XL"),
     ("city", "a\0b"), ("attributes", '{"a": "\\u0000"}'), ("attributes", '{"a": "\\ud800"}'),
     ("attributes", "[1]")],
)  # fmt: skip
def test_a_wrong_value_is_an_error_of_its_field(
    superuser_client: Client, person: Any, key: str, value: str
) -> None:
    before = person.attributes
    answer = posted(superuser_client, person, **{key: value})
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [fields_of(person).get(key, key)]
    person.refresh_from_db()
    assert person.attributes == before


def test_what_is_stored_wrongly_stays_and_can_be_corrected(
    superuser_client: Client, person: Any
) -> None:
    Subscriber.objects.filter(pk=person.pk).update(attributes={"visits": "many", "city": "Paris"})
    person.refresh_from_db()
    assert posted(superuser_client, person, city="Rome").status_code == 302
    person.refresh_from_db()
    assert person.attributes == {"visits": "many", "city": "Rome"}
    other = '{"visits": "few"}'
    answer = posted(superuser_client, person, attributes=other)
    assert "visits" in str(answer.context["adminform"].form.errors["attributes"])
    assert posted(superuser_client, person, visits="4").status_code == 302
    person.refresh_from_db()
    assert person.attributes == {"visits": 4, "city": "Rome"}


def test_a_text_of_several_lines_keeps_them(superuser_client: Client, person: Any) -> None:
    Subscriber.objects.filter(pk=person.pk).update(attributes={"city": "one\ntwo"})
    person.refresh_from_db()
    assert posted(superuser_client, person, city="one\r\ntwo").status_code == 302
    person.refresh_from_db()
    assert person.attributes == {"city": "one\ntwo"}


def test_a_new_person_is_checked_by_their_accounts_definitions(superuser_client: Client) -> None:
    account = AccountFactory.create()
    define(account, "visits", "number")
    form = {"account": account.pk, "email": "a@example.org", "status": "pending"}
    answer = superuser_client.post(
        url(Subscriber, "add"), {**form, "attributes": '{"visits": "many"}'}
    )
    assert list(answer.context["adminform"].form.errors) == ["attributes"]
    answer = superuser_client.post(url(Subscriber, "add"), {**form, "attributes": '{"visits": 2}'})
    assert answer.status_code == 302
    assert Subscriber.objects.get().attributes == {"visits": 2}


def test_who_may_only_look_sees_the_values(person: Any) -> None:
    user = StaffFactory.create()
    grant_all(user)
    user.user_permissions.remove(*user.user_permissions.filter(codename="change_subscriber"))
    person.account.members.add(user)
    client = Client()
    client.force_login(user)
    answer = client.get(url(Subscriber, "change", person.pk))
    assert answer.status_code == 200
    assert "Paris" in answer.content.decode()
    assert fields_of(person)["city"] not in answer.content.decode()
