"""Finding an address whose domain is written as people read it."""

from __future__ import annotations

import pytest

from subscribers.models import Subscriber
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, SubscriberFactory

pytestmark = pytest.mark.django_db

STORED = "ann@xn--bcher-kva.example.org"


@pytest.mark.parametrize("words", ["ann@b\u00fccher.example.org", "Ann@B\u00dcCHER.example.org"])
def test_an_address_is_found_by_its_readable_domain(words: str) -> None:
    account = AccountFactory.create()
    for owner in (account, AccountFactory.create()):
        SubscriberFactory.create(account=owner, email=STORED)
        SubscriberFactory.create(account=owner, email="ann@example.org")
    client, _ = member_client(account)
    page = client.get(url(Subscriber, "changelist"), {"q": words})
    assert [(row.account, row.email) for row in page.context["cl"].result_list] == [
        (account, STORED)
    ]
