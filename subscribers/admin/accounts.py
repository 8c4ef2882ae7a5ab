"""The tenants."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

from ..audit import record
from ..forms.people import AccountForm
from ..models import Account, AuditEvent
from ..references import is_used
from ..scoping import ScopedAdmin, account_ids
from .meanwhile import NothingOverwritten
from .parts import StyledMedia


@admin.register(Account)
class AccountAdmin(StyledMedia, NothingOverwritten, ScopedAdmin):
    """Members may change their account, but who is a member and which transport it uses is for
    superusers: either would open what belongs to others."""

    account_lookup = "pk"
    form = AccountForm
    list_display = ("name", "slug", "from_email", "timezone", "transport", "in_doubt_policy")
    search_fields = ("name__istartswith", "slug__startswith")
    search_help_text = "The beginning of a name or a slug."
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (None, {"fields": ("name", "slug", "members", "notices")}),
        (
            "Sender",
            {
                "fields": (
                    "from_name",
                    "from_email",
                    "other_domains",
                    "reply_to",
                    "postal_address",
                )
            },
        ),
        (
            "Sending",
            {"fields": ("timezone", "transport", "in_doubt_policy", "second_approver")},
        ),
        ("Limits", {"fields": ("max_per_hour",)}),
        (
            "Retries",
            {
                "fields": ("max_attempts", "retry_waits"),
                "description": "What becomes of a message that is refused for now.",
            },
        ),
        (
            "Brakes",
            {
                "fields": ("max_bounce_rate", "max_complaint_rate", "max_refusals"),
                "description": "A campaign that reaches one of these is paused and says why, "
                "until somebody resumes it. A rate counts once there is enough to judge by.",
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if account_ids(request) is None else ("members", "transport")

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        users = self.admin_site._registry.get(get_user_model())
        return ["members"] if users and users.search_fields else []

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        account = form.instance
        before = _names(account) if change else set()
        super().save_related(request, form, formsets, change)
        if not change and account_ids(request) is not None:
            assert isinstance(request.user, AbstractBaseUser)
            account.members.add(request.user)
        _record_changes(request, account, form.changed_data, before, change)

    def delete_model(self, request: HttpRequest, obj: Account) -> None:
        told = {"slug": obj.slug}
        # Without the account, which is gone then: what became of it is for superusers to see.
        record(None, "account.delete", subject=obj.name, detail=told, request=request)
        super().delete_model(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Only while it is empty; an account's history is what proves what was sent. The audit trail
        # outlives it.
        return (
            obj is not None
            and super().has_delete_permission(request, obj)
            and not is_used(obj, apart_from={Account.members.through, AuditEvent})
        )


def _names(account: Account) -> set[str]:
    return {user.get_username() for user in account.members.all()}


def _record_changes(
    request: HttpRequest, account: Account, changed: list[str], before: set[str], change: bool
) -> None:
    """One event for all that one form changed; none where it changed nothing."""
    after = _names(account)
    told: dict[str, Any] = {}
    if fields := sorted(set(changed) - {"members"}):
        told["fields"] = fields
    if joined := sorted(after - before):
        told["members_added"] = joined
    if left := sorted(before - after):
        told["members_removed"] = left
    if told or not change:
        verb = "account.change" if change else "account.add"
        record(account, verb, subject=account.name, detail=told, request=request)
