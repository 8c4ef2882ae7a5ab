"""After a test that commits the database is as ``migrate`` left it; see ``tests.conftest``."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from subscribers.models import Account
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db(transaction=True)


def _flush() -> None:
    """As Django does it after each such test."""
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


def _names() -> set[tuple[str, str]]:
    return set(Permission.objects.values_list("content_type__app_label", "codename"))


def test_rows_are_gone_and_permissions_stay() -> None:
    before = _names()
    assert ("sendonce_campaigns", "approve_campaign") in before
    AccountFactory.create()
    _flush()
    assert not Account.objects.exists()
    assert _names() == before


def test_what_a_test_did_to_permissions_is_undone() -> None:
    before = _names()
    kind = ContentType.objects.get_for_model(Account)
    Permission.objects.create(content_type=kind, codename="fly", name="Can fly")
    Permission.objects.filter(codename="approve_campaign").delete()
    _flush()
    assert _names() == before
    ContentType.objects.all().delete()
    _flush()
    assert _names() == before
    assert ContentType.objects.get_for_model(Account).pk
