"""An account whose time zone this machine does not know (any more): its times are shown as UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from campaigns.models import Campaign
from campaigns.preflight.timing_checks import moment
from sending.models import Send
from subscribers.models import Account, Segment, Subscriber
from subscribers.timezones import zone_named
from tests.db.admin_pages import url
from tests.db.admin_urls import pages
from tests.db.test_admin_accounts import form_of
from tests.db.test_admin_walk import Tenant, body

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "\0", "Europe"])
def test_a_zone_that_is_not_known_is_utc(name: str) -> None:
    assert zone_named(name).key == "UTC"
    assert zone_named("Europe/Paris").key == "Europe/Paris"


def test_every_page_opens_all_the_same(superuser_client: Client) -> None:
    tenant = Tenant()
    Account.objects.update(timezone="Mars/Olympus")
    wrong, opened = [], 0
    for page in pages():
        for address in page.addresses(tenant.ids(page)):
            answer = superuser_client.get(address)
            body(answer)
            opened += answer.status_code == 200
            if answer.status_code >= 500:
                wrong.append(address)
    assert wrong == []
    assert opened > 60
    assert {Campaign, Segment, Send, Subscriber} <= set(tenant.rows)


@pytest.mark.parametrize("name", ["Nowhere/Land", '"><script>', "../../etc/passwd"])
def test_a_form_with_such_a_zone_is_refused_and_shown_again(
    name: str, superuser_client: Client
) -> None:
    account = Tenant().account
    form = {**form_of(account), "timezone": name}
    answer = superuser_client.post(url(Account, "change", account.pk), form)
    assert answer.status_code == 200
    assert "is no time zone" in answer.content.decode()
    assert "<script>" not in answer.content.decode().replace("<script src", "")
    account.refresh_from_db()
    assert account.timezone != name


def test_a_moment_names_the_zone_that_it_is_told_in(superuser_client: Client) -> None:
    when = datetime(2026, 7, 2, 8, 0, tzinfo=UTC)
    assert moment(when, "Europe/Paris") == "2 July 2026, 10:00 (Europe/Paris)"
    assert moment(when, "Mars/Olympus") == "2 July 2026, 08:00 (UTC)"
    tenant = Tenant()
    Account.objects.update(timezone="Mars/Olympus")
    person = tenant.rows[Subscriber][0]
    story = superuser_client.get(
        f"{url(Send, 'story')}?q={person.email}&account={tenant.account.pk}"
    )
    assert "times are of UTC." in story.content.decode()
