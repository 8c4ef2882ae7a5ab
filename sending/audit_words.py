"""The verbs of sending in the audit trail, in words."""

from __future__ import annotations

from subscribers.audit_words import register


def register_own() -> None:
    register(
        {
            "campaign.export_hours": "took a report out as a file",
            "campaign.export_sends": "took a campaign's sends out as a file",
            "send.send_again": "had messages sent again",
            "send.treat_as_sent": "had messages in doubt count as sent",
            "transport.lift_pause": "lifted the pause of a transport",
            "transport.try_now": "had a paused transport tried at once",
            "transport.lift_slow_down": "lifted a slow-down",
        }
    )
