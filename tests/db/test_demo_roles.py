"""The demo's users have the permissions that their roles name."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from sending.demo.stage import APPS, ROLES


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "codenames"), [(name, codes) for name, _, codes in ROLES if codes is not None]
)
def test_every_permission_of_a_role_exists(name: str, codenames: tuple[str, ...]) -> None:
    found = Permission.objects.filter(content_type__app_label__in=APPS, codename__in=codenames)
    assert set(found.values_list("codename", flat=True)) == set(codenames)
    assert len(set(codenames)) == len(codenames)
