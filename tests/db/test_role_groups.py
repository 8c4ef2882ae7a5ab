"""The groups for staff: made after migrate, in whatever order, and never forced on a host."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connections, transaction
from django.db.models.signals import post_migrate

from subscribers import role_groups, roles
from subscribers.models import RoleGroup
from subscribers.roles import GROUP_NAMES, Role
from tests.factories import StaffFactory

LABELS = {"sendonce_subscribers", "sendonce_campaigns", "sendonce_sending"}


def given(group: Group) -> set[str]:
    pairs = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{label}.{codename}" for label, codename in pairs}


def group_of(role: Role) -> Group:
    return Group.objects.get(sendonce_role__role=role)


# --- the table -----------------------------------------------------------------------------------


def test_every_app_has_its_part() -> None:
    assert set(roles.app_labels()) == LABELS


@pytest.mark.parametrize("role", Role)
def test_every_role_sees_what_a_viewer_sees_and_has_a_name(role: Role) -> None:
    assert roles.permissions(Role.VIEWER) <= roles.permissions(role)
    assert GROUP_NAMES[role].startswith("Sendonce ")
    assert len(set(GROUP_NAMES.values())) == len(Role)


def test_a_viewer_changes_nothing() -> None:
    names = [name.partition(".")[2] for name in roles.permissions(Role.VIEWER)]
    assert all(name.startswith("view_") for name in names)


@pytest.mark.parametrize(
    ("permission", "who"),
    [
        ("sendonce_campaigns.add_campaign", {Role.EDITOR}),
        ("sendonce_campaigns.approve_campaign", {Role.APPROVER}),
        ("sendonce_campaigns.test_campaign", {Role.EDITOR, Role.APPROVER}),
        ("sendonce_campaigns.control_campaign", {Role.OPERATOR}),
        ("sendonce_sending.resolve_doubt", {Role.OPERATOR}),
        ("sendonce_sending.delete_transportpause", {Role.OPERATOR}),
        ("sendonce_subscribers.import_subscriber", {Role.EDITOR, Role.LIST_KEEPER}),
        ("sendonce_subscribers.export_subscriber", {Role.LIST_KEEPER}),
        ("sendonce_subscribers.erase_subscriber", {Role.LIST_KEEPER}),
        ("sendonce_subscribers.release_suppression", {Role.LIST_KEEPER}),
        # What an account may send, and who is in it, is nobody's but a superuser's to give.
        ("sendonce_subscribers.change_account", set()),
        ("sendonce_subscribers.delete_subscriber", set()),
        ("sendonce_sending.view_installation", set()),
        ("sendonce_sending.view_providerevent", set()),
    ],
)
def test_who_may_what(permission: str, who: set[Role]) -> None:
    assert {role for role in Role if permission in roles.permissions(role)} == who


@pytest.mark.django_db
def test_every_permission_of_a_role_exists() -> None:
    pairs = Permission.objects.values_list("content_type__app_label", "codename")
    there = {f"{label}.{codename}" for label, codename in pairs}
    for role in Role:
        assert roles.permissions(role) - there == set()


# --- the groups ----------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("role", Role)
def test_migrate_makes_them(role: Role) -> None:
    role_groups.update()
    group = group_of(role)
    assert group.name == GROUP_NAMES[role]
    assert given(group) == roles.permissions(role)
    user = StaffFactory.create()
    user.groups.add(group)
    assert user.get_all_permissions() == roles.permissions(role)


@pytest.mark.django_db
def test_again_nothing_is_made_and_nothing_is_given_again() -> None:
    role_groups.update()
    group = group_of(Role.EDITOR)
    taken = Permission.objects.get(codename="delete_campaign")
    group.permissions.remove(taken)
    group.name = "Redaktion"
    group.save()
    role_groups.update()
    assert Group.objects.count() == len(Role)
    group = group_of(Role.EDITOR)
    assert group.name == "Redaktion"
    assert roles.permissions(Role.EDITOR) - given(group) == {"sendonce_campaigns.delete_campaign"}


@pytest.mark.django_db
def test_a_group_that_somebody_deleted_is_not_made_again() -> None:
    role_groups.update()
    group_of(Role.VIEWER).delete()
    role_groups.update()
    assert not Group.objects.filter(name=GROUP_NAMES[Role.VIEWER]).exists()
    assert RoleGroup.objects.get(role=Role.VIEWER).group is None


@pytest.mark.django_db
def test_a_group_of_that_name_becomes_the_roles() -> None:
    Group.objects.all().delete()
    RoleGroup.objects.all().delete()
    own = Group.objects.create(name=GROUP_NAMES[Role.OPERATOR])
    role_groups.update()
    assert group_of(Role.OPERATOR) == own


@pytest.mark.django_db
def test_a_permission_that_a_version_brings_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    role_groups.update()
    label = "sendonce_campaigns"
    part = roles._parts[label]
    monkeypatch.setitem(
        roles._parts,
        label,
        roles.Part(part.everybody | {"archive_campaign"}, part.more),
    )
    role_groups.update()  # it does not exist yet: nothing to give, and nothing is remembered
    kind = Permission.objects.get(codename="approve_campaign").content_type
    new = Permission.objects.create(content_type=kind, codename="archive_campaign", name="archive")
    role_groups.update()
    assert all(new in group_of(role).permissions.all() for role in Role)
    group_of(Role.VIEWER).permissions.remove(new)
    role_groups.update()
    assert new not in group_of(Role.VIEWER).permissions.all()
    assert new in group_of(Role.EDITOR).permissions.all()


@pytest.mark.django_db
def test_the_order_of_apps_does_not_matter() -> None:
    """Permissions are made by a receiver of ``django.contrib.auth``, which may come later."""
    Group.objects.all().delete()
    RoleGroup.objects.all().delete()
    Permission.objects.filter(content_type__app_label__in=LABELS).delete()
    for label in ("sendonce_sending", "sendonce_subscribers", "sendonce_campaigns"):
        role_groups.after_migrate(sender=apps.get_app_config(label), using="default", apps=apps)
    for role in Role:
        assert given(group_of(role)) == roles.permissions(role)


@pytest.mark.django_db
def test_the_signal_reaches_it_and_others_do_not_matter() -> None:
    Group.objects.all().delete()
    RoleGroup.objects.all().delete()
    post_migrate.send(
        sender=apps.get_app_config("auth"), app_config=apps.get_app_config("auth"),
        verbosity=0, interactive=False, using="default", apps=apps, plan=[],
    )  # fmt: skip
    assert not RoleGroup.objects.exists()
    config = apps.get_app_config("sendonce_campaigns")
    post_migrate.send(
        sender=config, app_config=config, verbosity=0, interactive=False,
        using="default", apps=apps, plan=[],
    )  # fmt: skip
    assert RoleGroup.objects.count() == len(Role)


def test_where_its_table_is_not_there_yet_nothing_is_done() -> None:
    class Before:
        def get_model(self, *names: str) -> Any:
            raise LookupError

    role_groups.update(apps=Before())  # no database is asked: it would be an error here


@pytest.mark.django_db(transaction=True)
def test_two_that_migrate_at_once_make_one_of_each() -> None:
    from threading import Barrier, Thread

    Group.objects.all().delete()
    RoleGroup.objects.all().delete()
    ready, errors = Barrier(2), []

    def make() -> None:
        try:
            ready.wait(10)
            role_groups.update()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert RoleGroup.objects.count() == Group.objects.count() == len(Role)
    for role in Role:
        assert given(group_of(role)) == roles.permissions(role)


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_dies_on_the_way_leaves_a_role_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Group.objects.all().delete()
    RoleGroup.objects.all().delete()

    def die(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the machine is gone")

    with monkeypatch.context() as patch:
        patch.setattr(RoleGroup, "save", die)
        with pytest.raises(RuntimeError):
            role_groups.update()
    assert not RoleGroup.objects.exists()
    assert not Group.objects.exists()
    with transaction.atomic():
        call_command("migrate", verbosity=0, interactive=False)
    assert Group.objects.count() == len(Role)
