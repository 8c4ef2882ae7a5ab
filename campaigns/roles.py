"""What the groups for staff may do about campaigns."""

from __future__ import annotations

from subscribers.roles import Role, register


def register_own(app_label: str) -> None:
    """An editor writes and tests, an approver lets it go, an operator stops it."""
    composing = [
        f"{act}_{what}"
        for what in ("campaign", "layout", "image")
        for act in ("add", "change", "delete")
    ]
    register(
        app_label,
        everybody=("view_approval", "view_campaign", "view_content", "view_image", "view_layout"),
        more={
            Role.EDITOR: (*composing, "test_campaign"),
            Role.APPROVER: ("approve_campaign", "test_campaign"),
            Role.OPERATOR: ("control_campaign",),
        },
    )
