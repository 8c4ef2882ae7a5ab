"""Which group stands for which role, and what it has been given."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models


class RoleGroup(models.Model):
    """The group of a role, by whatever name. ``group`` null: somebody deleted it, and it is not
    made again. ``given``: every permission that it was ever given, as ``app_label.codename``; what
    was taken away from the group since is not given again. See ``subscribers.role_groups``."""

    role = models.CharField(max_length=30, unique=True)
    group = models.OneToOneField(
        Group, models.SET_NULL, null=True, blank=True, related_name="sendonce_role"
    )
    given = ArrayField(models.CharField(max_length=200), default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["role"]

    def __str__(self) -> str:
        return self.role
