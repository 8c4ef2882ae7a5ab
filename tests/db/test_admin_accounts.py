"""An account's limits, retries and brakes, as whoever runs a newsletter sets them."""

from __future__ import annotations

import html
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from subscribers.models import Account
from tests.db.admin_pages import change, member_client, url
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def account() -> Account:
    found: Account = AccountFactory.create()
    return found


def form_of(account: Account, **changes: Any) -> dict[str, Any]:
    return {
        "name": account.name,
        "slug": account.slug,
        "from_email": account.from_email,
        "timezone": "UTC",
        "transport": "default",
        "in_doubt_policy": "hold",
        "notices": "on",
        "max_per_hour": "",
        "retry_waits": "",
        "max_attempts": "5",
        "max_bounce_rate": "5",
        "max_complaint_rate": "0.1",
        "max_refusals": "20",
        **changes,
    }


def post(client: Client, account: Account, **changes: Any) -> Any:
    return change(client, account, form_of(account, **changes))


def errors(answer: Any) -> dict[str, list[str]]:
    return dict(answer.context["adminform"].form.errors)


def test_limits_are_set_in_the_admin(account: Account) -> None:
    client, _ = member_client(account)
    answer = post(
        client,
        account,
        max_per_hour="20000",
        retry_waits=" 60,300 , 3600",
        max_attempts="7",
        max_bounce_rate="2.5",
        max_complaint_rate="0.05",
        max_refusals="40",
        notices="",
    )
    assert answer.status_code == 302
    account.refresh_from_db()
    assert account.max_per_hour == 20_000
    assert account.retry_waits == [60, 300, 3600]
    assert (account.max_attempts, account.max_refusals) == (7, 40)
    assert (account.max_bounce_rate, account.max_complaint_rate) == (
        Decimal("2.50"),
        Decimal("0.05"),
    )
    assert account.notices is False


def test_blank_means_the_usual_waits_and_no_limit(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(retry_waits=[60], max_per_hour=5)
    client, _ = member_client(account)
    assert post(client, account).status_code == 302
    account.refresh_from_db()
    assert (account.retry_waits, account.max_per_hour) == ([], None)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("retry_waits", "60, soon", "“soon” is no whole number of seconds"),
        ("retry_waits", "60,,120", "missing between two commas"),
        ("retry_waits", "60,", "missing between two commas"),
        ("retry_waits", "0", "0 is out of range"),
        ("retry_waits", "60, 86401", "86401 is out of range"),
        ("retry_waits", "-5", "is no whole number"),
        ("retry_waits", "1.5", "is no whole number"),
        ("retry_waits", "9" * 5000, "is no whole number"),
        ("retry_waits", "\u0663", "is no whole number"),
        ("retry_waits", ",".join(["60"] * 21), "At most 20 waits, not 21"),
        ("retry_waits", "60\0", "Null characters"),
        ("max_per_hour", "0", "greater than or equal to 1"),
        ("max_per_hour", "9" * 20, "less than or equal"),
        ("max_attempts", "21", "less than or equal to 20"),
        ("max_attempts", "", "required"),
        ("max_bounce_rate", "0", "greater than or equal to 0.01"),
        ("max_bounce_rate", "101", "less than or equal to 100"),
        ("max_complaint_rate", "nan", "Enter a number"),
        ("max_refusals", "0", "greater than or equal to 1"),
        ("transport", "no-such", "no transport “no-such”"),
    ],
)
def test_a_wrong_value_is_its_fields_error_and_changes_nothing(
    superuser_client: Client, account: Account, field: str, value: str, words: str
) -> None:
    before = Account.objects.filter(pk=account.pk).values().get()
    answer = post(superuser_client, account, **{field: value})
    assert answer.status_code == 200
    assert list(errors(answer)) == [field]
    assert words in str(errors(answer)[field])
    assert Account.objects.filter(pk=account.pk).values().get() == before


def test_the_waits_are_shown_as_they_are_typed(superuser_client: Client, account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(retry_waits=[60, 300])
    page = superuser_client.get(url(Account, "change", account.pk)).content.decode()
    assert 'value="60, 300"' in page
    again = post(superuser_client, account, retry_waits="60, soon").content.decode()
    assert 'value="60, soon"' in again


def test_saving_unchanged_waits_is_no_change(superuser_client: Client, account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(retry_waits=[60, 300])
    account.refresh_from_db()
    answer = superuser_client.get(url(Account, "change", account.pk))
    form = answer.context["adminform"].form
    field = form.fields["retry_waits"]
    assert not field.has_changed([60, 300], "60,300")
    assert field.has_changed([60, 300], "60")
    assert field.has_changed([60, 300], "soon")
    assert not field.has_changed([], "")


def test_the_transport_is_a_choice_of_those_configured(
    superuser_client: Client, account: Account, settings: Any
) -> None:
    settings.SENDONCE = {
        **settings.SENDONCE,
        "TRANSPORTS": {**settings.SENDONCE["TRANSPORTS"], "bulk": {"BACKEND": "x.y"}},
    }
    page = superuser_client.get(url(Account, "change", account.pk)).content.decode()
    assert '<option value="bulk">bulk</option>' in page
    assert post(superuser_client, account, transport="bulk").status_code == 302
    account.refresh_from_db()
    assert account.transport == "bulk"


def test_a_transport_that_is_gone_stays_visible_and_does_not_bar_other_edits(
    superuser_client: Client,
) -> None:
    account = AccountFactory.create(transport="retired")
    page = superuser_client.get(url(Account, "change", account.pk)).content.decode()
    assert '<option value="retired" selected>retired (not configured)</option>' in page
    assert post(superuser_client, account, transport="retired", name="New").status_code == 302
    account.refresh_from_db()
    assert (account.name, account.transport) == ("New", "retired")


def test_whoever_may_only_look_sees_the_limits_and_changes_none(account: Account) -> None:
    client, user = member_client(account)
    user.user_permissions.set(Permission.objects.filter(codename="view_account"))
    Account.objects.filter(pk=account.pk).update(retry_waits=[60, 300])
    page = client.get(url(Account, "change", account.pk)).content.decode()
    assert "Waits (seconds)" in page
    assert "a time that the other side asks for wins" in page
    assert "60, 300" in page
    forged = form_of(account, max_refusals="1")
    assert client.post(url(Account, "change", account.pk), forged).status_code == 403
    account.refresh_from_db()
    assert account.max_refusals == 20


def test_a_new_account_can_be_added_with_the_usual_limits(superuser_client: Client) -> None:
    blank = AccountFactory.build(name="New", slug="new", from_email="a@example.org")
    answer = superuser_client.post(url(Account, "add"), form_of(blank))
    assert answer.status_code == 302
    made = Account.objects.get(slug="new")
    assert (made.retry_waits, made.max_attempts, made.max_per_hour) == ([], 5, None)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("", []),
        ("News.Example.org", ["news.example.org"]),
        (" @a.example.org,b.example.org ;a.example.org. ", ["a.example.org", "b.example.org"]),
        ("Bücher.example", ["xn--bcher-kva.example"]),
    ],
)
def test_other_domains_are_stored_as_they_are_compared(
    account: Account, typed: str, stored: list[str]
) -> None:
    client, _ = member_client(account)
    answer = post(client, account, other_domains=typed)
    assert answer.status_code == 302, errors(answer)
    account.refresh_from_db()
    assert account.other_domains == stored
    page = client.get(url(Account, "change", account.pk)).content.decode()
    assert f'value="{", ".join(stored)}"' in page or not stored


@pytest.mark.parametrize(
    "typed", ["example", "a@b@example.org", "https://example.org", "exa mple", "-x.org", "a..org"]
)
def test_what_is_no_domain_is_refused(account: Account, typed: str) -> None:
    client, _ = member_client(account)
    answer = post(client, account, other_domains=f"fine.example.org, {typed}")
    assert "is no domain name" in str(errors(answer)["other_domains"])
    account.refresh_from_db()
    assert account.other_domains == []


def test_the_form_says_what_an_address_and_the_policy_for_doubt_decide(account: Account) -> None:
    client, _ = member_client(account)
    page = html.unescape(client.get(url(Account, "change", account.pk)).content.decode())
    assert "Print it where you want it with {{ account.postal_address }}; a campaign" in page
    assert "Sent again, somebody may get it twice" in page
