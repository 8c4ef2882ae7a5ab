"""How it is sent: the queue, lanes, outcomes, transports and the worker."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


# Asked by pages of the admin alone, so that a site without one need not have it imported.
def _campaign_links(campaign: Any, request: Any) -> list[tuple[str, str]]:
    from .admin import links, watching

    return [*watching.links(campaign, request), *links.doubt_link(campaign, request)]


def _person_links(subscriber: Any, request: Any) -> list[tuple[str, str]]:
    from .admin import links

    return links.person_links(subscriber, request)


class SendingConfig(AppConfig):
    name = "sending"
    label = "sendonce_sending"
    verbose_name = "Sending"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from campaigns import hooks as campaign_hooks
        from subscribers import hooks as subscriber_hooks

        from . import (  # noqa: F401
            audit_words,
            checks,
            counters,
            durations,
            erasure,
            ledger,
            personal_data,
            roles,
            sources,
            status_limits,
            transactional,
            transport_states,
            trials,
            unsubscriptions,
            waits,
            withdraw,
        )
        from .tracking import webhooks

        roles.register_own(self.label)
        audit_words.register_own()
        campaign_hooks.open_rows.fill(ledger.has_open_rows)
        campaign_hooks.cancel_rows.fill(withdraw.cancel_rows)
        campaign_hooks.counts.fill(counters.with_audience)
        campaign_hooks.brakes.fill(status_limits.brakes_in_words)
        campaign_hooks.waits.fill(waits.of_campaign)
        campaign_hooks.duration.fill(durations.of_campaign)
        campaign_hooks.transport_state.fill(transport_states.transport_state)
        campaign_hooks.has_sender.fill(waits.has_sender_now)
        campaign_hooks.links.fill(_campaign_links)
        campaign_hooks.message_source.fill(sources.message_source)
        campaign_hooks.send_tests.fill(trials.send_tests)
        campaign_hooks.test_states.fill(trials.states)
        subscriber_hooks.withdraw_leavers.fill(withdraw.withdraw_leavers)
        subscriber_hooks.left_through.fill(unsubscriptions.record)
        subscriber_hooks.send_message.fill(transactional.send_message)
        subscriber_hooks.personal_data.fill(personal_data.personal_data)
        subscriber_hooks.erase_personal_data.fill(erasure.erase_personal_data)
        subscriber_hooks.links.fill(_person_links)
        webhooks.connect()
