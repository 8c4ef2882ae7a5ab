"""Who gets mail: accounts, segments, subscribers, suppressions."""

from __future__ import annotations

from django.apps import AppConfig


class SubscribersConfig(AppConfig):
    name = "subscribers"
    label = "sendonce_subscribers"
    verbose_name = "Subscribers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the system checks)
