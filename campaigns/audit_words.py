"""The verbs of campaigns in the audit trail, in words."""

from __future__ import annotations

from subscribers.audit_words import register


def register_own() -> None:
    register(
        {
            "campaign.add": "wrote a campaign",
            "campaign.approve": "approved a campaign",
            "campaign.cancel": "canceled a campaign",
            "campaign.copy": "copied a campaign",
            "campaign.delete": "deleted a draft",
            "campaign.edit": "edited a campaign",
            "campaign.pause": "paused a campaign",
            "campaign.resume": "resumed a campaign",
            "campaign.test": "sent a test",
            "campaign.withdraw": "withdrew an approval",
            "image.delete": "deleted an image",
            "image.edit": "changed an image",
            "image.upload": "uploaded an image",
            "layout.add": "added a layout",
            "layout.delete": "deleted a layout",
            "layout.edit": "edited a layout",
        }
    )
