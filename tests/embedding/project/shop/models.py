"""A user who has no user name, and a model that has nothing to do with e-mail."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class Clerk(AbstractBaseUser, PermissionsMixin):
    badge = models.CharField(max_length=20, unique=True)
    is_staff = models.BooleanField(default=True)
    is_active = models.BooleanField(default=True)

    USERNAME_FIELD = "badge"

    objects: ClassVar = BaseUserManager()

    def __str__(self) -> str:
        return self.badge


class Order(models.Model):
    clerk = models.ForeignKey(Clerk, models.PROTECT)
    email = models.EmailField()

    def __str__(self) -> str:
        return f"order of {self.email}"
