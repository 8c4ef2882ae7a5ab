"""What the tests of the admin's pages share."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import StaffFactory


@pytest.fixture
def superuser_client(db: None) -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    return client
