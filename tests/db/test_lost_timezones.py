"""An account whose time zone this machine does not know (any more): its times are shown as UTC."""

from __future__ import annotations

import pytest
from django.test import Client

from campaigns.models import Campaign
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
