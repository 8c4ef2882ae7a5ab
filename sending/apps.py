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

        from . import (  # noqa: F401
            checks,
            erasure,
            ledger,
            personal_data,
            status_limits,
            transactional,
            waits,
            withdraw,
        )
        from .tracking import webhooks

        campaign_hooks.open_rows.fill(ledger.has_open_rows)
        campaign_hooks.cancel_rows.fill(withdraw.cancel_rows)
        campaign_hooks.counts.fill(ledger.counts_by_id)
        campaign_hooks.brakes.fill(status_limits.brakes_in_words)
        campaign_hooks.waits.fill(waits.of_campaign)
        subscriber_hooks.withdraw_leavers.fill(withdraw.withdraw_leavers)
        subscriber_hooks.send_message.fill(transactional.send_message)
        subscriber_hooks.personal_data.fill(personal_data.personal_data)
        subscriber_hooks.erase_personal_data.fill(erasure.erase_personal_data)
        webhooks.connect()
