"""What the groups for staff may do: a table, to which each app adds its own part.

Pure: ``subscribers.role_groups`` makes groups of it. An app registers its part in ``ready()``, so
that this one need not know which apps stand above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The name by which the program knows a group; a host may rename the group itself."""

    EDITOR = "editor"
    APPROVER = "approver"
    OPERATOR = "operator"
    LIST_KEEPER = "list_keeper"
    VIEWER = "viewer"


#: What the groups are called when they are made.
GROUP_NAMES: dict[Role, str] = {
    Role.EDITOR: "Sendonce editor",
    Role.APPROVER: "Sendonce approver",
    Role.OPERATOR: "Sendonce operator",
    Role.LIST_KEEPER: "Sendonce list keeper",
    Role.VIEWER: "Sendonce viewer",
}


@dataclass(frozen=True)
class Part:
    """One app's part: codenames of its permissions. ``everybody``: of every role."""

    everybody: frozenset[str]
    more: Mapping[Role, frozenset[str]]

    def of(self, role: Role) -> frozenset[str]:
        return self.everybody | self.more.get(role, frozenset())


_parts: dict[str, Part] = {}


def register(
    app_label: str, *, everybody: Iterable[str], more: Mapping[Role, Iterable[str]]
) -> None:
    """Set one app's part; again replaces it (reload, or a host that wants other roles)."""
    _parts[app_label] = Part(
        frozenset(everybody), {role: frozenset(names) for role, names in more.items()}
    )


def app_labels() -> list[str]:
    """The apps that have registered a part."""
    return sorted(_parts)


def permissions(role: Role) -> frozenset[str]:
    """All of a role, as ``app_label.codename``."""
    return frozenset(
        f"{label}.{codename}" for label, part in _parts.items() for codename in part.of(role)
    )


def register_own(app_label: str) -> None:
    """The part of this app. Nobody's role takes people's data out or changes an account: a list
    keeper has the first, and the second is for superusers or a permission given by hand."""
    importing = ("import_subscriber",)
    segments = ("add_segment", "change_segment", "add_membership", "change_membership")
    attributes = ("add_attributedefinition", "change_attributedefinition")
    register(
        app_label,
        everybody=(
            "view_account",
            "view_attributedefinition",
            "view_auditevent",
            "view_importjob",
            "view_membership",
            "view_membershipchange",
            "view_segment",
            "view_signupform",
            "view_subscriber",
            "view_suppression",
        ),
        more={
            Role.EDITOR: (*segments, *attributes, *importing),
            Role.LIST_KEEPER: (
                *segments,
                *attributes,
                *importing,
                "delete_attributedefinition",
                "delete_segment",
                "add_subscriber",
                "change_subscriber",
                "export_subscriber",
                "erase_subscriber",
                "add_suppression",
                "import_suppression",
                "export_suppression",
                "release_suppression",
                "add_signupform",
                "change_signupform",
                "delete_signupform",
                "view_consenttext",
                "view_signup",
                "view_signupattempt",
            ),
        },
    )
