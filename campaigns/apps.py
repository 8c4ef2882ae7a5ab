"""What is sent and when: campaigns, their approval and their content."""

from __future__ import annotations

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "campaigns"
    label = "sendonce_campaigns"
    verbose_name = "Campaigns"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from subscribers import hooks

        from . import audit_words, roles
        from .content import template_error
        from .web_version import web_version

        roles.register_own(self.label)
        audit_words.register_own()
        hooks.check_template.fill(template_error)
        hooks.web_version.fill(web_version)
