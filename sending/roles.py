"""What the groups for staff may do about what is sent."""

from __future__ import annotations

from subscribers.roles import Role, register


def register_own(app_label: str) -> None:
    """To delete a pause has it tried at once, to delete a slow-down lifts it; what may harm others'
    mail, too, only superusers do. What belongs to no account (webhooks, the installation) is theirs
    alone to see."""
    register(
        app_label,
        everybody=(
            "view_archivedcount",
            "view_campaignhealth",
            "view_deliveryevent",
            "view_ratelimit",
            "view_send",
            "view_transportpause",
            "view_worker",
        ),
        more={Role.OPERATOR: ("resolve_doubt", "delete_ratelimit", "delete_transportpause")},
    )
