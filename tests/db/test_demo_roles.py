"""The demo's users are in the groups of their roles."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from sending.demo.stage import LOGINS, make_account, make_logins
from subscribers import roles


@pytest.mark.django_db
def test_every_login_may_what_its_role_may() -> None:
    account = make_account()
    for _ in range(2):  # the second run finds them
        logins = make_logins(account)
    assert [login.username for login in logins] == [name for name, _, _ in LOGINS]
    for name, _, role in LOGINS:
        user = get_user_model().objects.get(username=name)
        assert user.is_superuser is (role is None)
        assert user in account.members.all()
        if role is not None:
            assert user.get_all_permissions() == roles.permissions(role)


def test_there_is_a_login_for_every_role() -> None:
    assert {role for _, _, role in LOGINS if role} == set(roles.Role)
