"""How it is sent: the queue, lanes, outcomes, transports and the worker."""

from __future__ import annotations

from django.apps import AppConfig


class SendingConfig(AppConfig):
    name = "sending"
    label = "sendonce_sending"
    verbose_name = "Sending"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from campaigns import hooks as campaign_hooks
        from subscribers import hooks as subscriber_hooks

        from . import checks, ledger, status_limits, waits, withdraw  # noqa: F401
        from .tracking import webhooks

        campaign_hooks.open_rows.fill(ledger.has_open_rows)
        campaign_hooks.cancel_rows.fill(withdraw.cancel_rows)
        campaign_hooks.counts.fill(ledger.counts_by_id)
        campaign_hooks.brakes.fill(status_limits.brakes_in_words)
        campaign_hooks.waits.fill(waits.of_campaign)
        subscriber_hooks.withdraw_leavers.fill(withdraw.withdraw_leavers)
        webhooks.connect()
