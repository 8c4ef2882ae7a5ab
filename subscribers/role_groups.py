"""The groups for staff, made and kept up to date after ``migrate``.

A permission is given to a role's group once: when the group is made, or when a version brings it.
What somebody takes away from a group, or a group that somebody deletes, stays so: each
``RoleGroup`` remembers. The group is found by that row, so it may have any name.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import DEFAULT_DB_ALIAS, router, transaction

from .roles import GROUP_NAMES, Role, app_labels, permissions

OUR_LABEL = "sendonce_subscribers"


def after_migrate(
    sender: Any, *, using: str = DEFAULT_DB_ALIAS, apps: Any = installed, **_: Any
) -> None:
    """Receives ``post_migrate`` of each app with a part of the roles."""
    if isinstance(sender, AppConfig) and sender.label in app_labels():
        # Its permissions are made by a receiver that may come after this one.
        create_permissions(sender, verbosity=0, using=using, apps=apps)
        update(using, apps)


def update(using: str = DEFAULT_DB_ALIAS, apps: Any = installed) -> None:
    """Make what groups are missing, and give each what it was never given. Does nothing where the
    tables are not there: before their migrations, or in a database that is not ours."""
    try:
        role_group = apps.get_model(OUR_LABEL, "RoleGroup")
        permission = apps.get_model("auth", "Permission")
    except LookupError:
        return
    if not router.allow_migrate_model(using, role_group):
        return
    there = {
        f"{label}.{codename}": pk
        for pk, label, codename in permission.objects.using(using)
        .filter(content_type__app_label__in=app_labels())
        .values_list("pk", "content_type__app_label", "codename")
    }
    for role in Role:
        _update_one(role, role_group.objects.using(using), there, using, apps)


def _update_one(role: Role, rows: Any, there: dict[str, int], using: str, apps: Any) -> None:
    with transaction.atomic(using=using):
        row, is_new = rows.get_or_create(role=role.value)
        # Of two that migrate at once the second waits here, and finds nothing left to give.
        row = rows.select_for_update(of=("self",)).get(pk=row.pk)
        if is_new:
            groups = apps.get_model("auth", "Group").objects.using(using)
            row.group = groups.get_or_create(name=GROUP_NAMES[role])[0]
        # What is not there yet, the signal of its app will bring.
        lacking = {n for n in permissions(role) if n in there and n not in row.given}
        if row.group is not None:
            row.group.permissions.add(*(there[name] for name in lacking))
        if is_new or lacking:
            row.given = sorted({*row.given, *lacking})
            row.save(using=using)
