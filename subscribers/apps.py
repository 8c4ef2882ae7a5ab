"""Who gets mail: accounts, segments, subscribers, suppressions."""

from __future__ import annotations

from django.apps import AppConfig


class SubscribersConfig(AppConfig):
    name = "subscribers"
    label = "sendonce_subscribers"
    verbose_name = "Subscribers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from . import checks, role_groups, roles  # noqa: F401  (registers the system checks)

        roles.register_own(self.label)
        post_migrate.connect(
            role_groups.after_migrate, dispatch_uid="subscribers.role_groups.after_migrate"
        )
