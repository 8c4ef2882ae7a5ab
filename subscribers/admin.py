"""The admin of who gets mail. Stock classes: a host may subclass and register them again."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import JSONField, QuerySet
from django.forms import Textarea
from django.http import HttpRequest, HttpResponse

from .addresses import lower
from .confirming import confirmation
from .consent import confirm, leave, suppress_by_hand, unsubscribe
from .forms import AccountForm, MembershipForm, SubscriberForm, SuppressionForm
from .models import Account, Membership, Segment, Subscriber, Suppression
from .scoping import (
    AccountFilter,
    ScopedAdmin,
    ScopedChoices,
    ScopedFilter,
    account_ids,
    as_id,
    deletion_summary,
)

#: Rows that an action changes in one transaction.
CHUNK = 500
SOURCE_TEXT: dict[Any, Any] = {
    JSONField: {"widget": Textarea(attrs={"rows": 6, "class": "sendonce-source"})}
}


class StyledMedia:
    """The few rules that the stock admin has not."""

    class Media:
        css = {"all": ("sendonce_subscribers/admin.css",)}


class AddressSearch(admin.ModelAdmin):
    """Searches the beginning of an address, as the database compares addresses."""

    search_help_text = "The beginning of an address."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return super().get_search_results(request, queryset, lower(search_term))


@admin.register(Account)
class AccountAdmin(StyledMedia, ScopedAdmin):
    """Members may change their account, but who is a member and which transport it uses is for
    superusers: either would open what belongs to others."""

    account_lookup = "pk"
    form = AccountForm
    list_display = ("name", "slug", "from_email", "timezone", "transport", "in_doubt_policy")
    search_fields = ("name__istartswith", "slug__startswith")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (None, {"fields": ("name", "slug", "members", "notices")}),
        ("Sender", {"fields": ("from_name", "from_email", "reply_to", "postal_address")}),
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
        super().save_related(request, form, formsets, change)
        if not change and account_ids(request) is not None:
            assert isinstance(request.user, AbstractBaseUser)
            form.instance.members.add(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Only while it is empty; an account's history is what proves what was sent.
        return (
            obj is not None
            and super().has_delete_permission(request, obj)
            and not _is_used(obj, apart_from={Account.members.through})
        )


@admin.register(Segment)
class SegmentAdmin(StyledMedia, ScopedAdmin):
    list_display = ("name", "slug", "account", "created")
    list_select_related = ("account",)
    list_filter = (AccountFilter,)
    search_fields = ("name__istartswith", "slug__startswith")
    autocomplete_fields = ("account",)
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("created",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # People and campaigns of the account are in it: it can't move to another.
        return (*self.readonly_fields, "account") if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A campaign that names it would silently reach others than its approver saw.
        return (
            obj is not None
            and super().has_delete_permission(request, obj)
            and not _is_used(obj, apart_from={Membership})
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return deletion_summary(objs, Membership.objects.filter(segment__in=objs))


class SegmentFilter(ScopedFilter):
    title = "segment"
    parameter_name = "segment"
    related = Segment
    joined = ("account",)
    ordering = ("account__name", "name")

    def label(self, row: Segment) -> str:
        return f"{row.name} ({row.account.name})"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        present = Membership.objects.filter(segment=as_id(self.value()), left_at__isnull=True)
        return queryset.filter(pk__in=present.values("subscriber"))


class MembershipInline(ScopedChoices, admin.TabularInline):
    """The segments somebody is in or has left; new ones of the same account can be added."""

    model = Membership
    extra = 0
    fields = ("segment", "joined_at", "left_at")
    readonly_fields = ("joined_at", "left_at")
    verbose_name_plural = "Segments"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("segment", "subscriber")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        segment: Any = formset.form.base_fields.get("segment")
        if segment is not None and obj is not None:
            segment.queryset = segment.queryset.filter(account=obj.account_id)
        return formset

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Subscriber)
class SubscriberAdmin(StyledMedia, AddressSearch, ScopedAdmin):
    form = SubscriberForm
    list_display = ("email", "status", "account", "created")
    list_select_related = ("account",)
    list_filter = ("status", AccountFilter, SegmentFilter)
    # By the id alone: no other order has an index, and there may be millions.
    sortable_by = ()
    search_fields = ("email_lower__startswith",)
    autocomplete_fields = ("account",)
    inlines = (MembershipInline,)
    formfield_overrides = SOURCE_TEXT
    actions = ("unsubscribe_selected",)
    fieldsets = (
        (None, {"fields": ("account", "email", "status", "consent_source")}),
        ("About the person", {"fields": ("attributes", "locale", "timezone")}),
        ("History", {"fields": ("created", "confirmed_at", "unsubscribed_at")}),
    )
    readonly_fields = ("created", "confirmed_at", "unsubscribed_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return self.readonly_fields
        settled = ("status",) if obj.status != Subscriber.Status.PENDING else ()
        return (*self.readonly_fields, "account", *settled)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # One by one: Django's own action would load every selected person's memberships.
        return obj is not None and super().has_delete_permission(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return deletion_summary(objs, Membership.objects.filter(subscriber__in=objs))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The status is the verb's: a form that was loaded before the person unsubscribed must
        not take it back."""
        confirms = obj.status == Subscriber.Status.CONFIRMED and (
            not change or "status" in form.changed_data
        )
        if change:
            typed = [f.name for f in obj._meta.concrete_fields if f.name in form.cleaned_data]
            obj.save(update_fields=[name for name in typed if name != "status"])
        else:
            obj.status = Subscriber.Status.PENDING
            obj.save()
        if confirms and not confirm(obj, source=obj.consent_source):
            self.message_user(
                request, "Not confirmed: the person has unsubscribed meanwhile.", messages.WARNING
            )
        obj.refresh_from_db(fields=["status", "confirmed_at"])

    @admin.action(permissions=["change"], description="Unsubscribe, for good")
    def unsubscribe_selected(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        page = confirmation(
            self,
            request,
            queryset,
            title="Unsubscribe",
            warning="These people get no more mail from their account. Only they themselves can "
            "take it back, by subscribing again.",
            button="Unsubscribe",
        )
        if page is not None:
            return page
        done = 0
        for subscriber in queryset.iterator(chunk_size=CHUNK):
            if unsubscribe(subscriber, evidence=f"unsubscribed by {_name(request)} in the admin"):
                self.log_change(request, subscriber, "Unsubscribed.")
                done += 1
        self.message_user(request, f"Unsubscribed: {done}.", messages.SUCCESS)
        return None


@admin.register(Membership)
class MembershipAdmin(StyledMedia, AddressSearch, ScopedAdmin):
    """Who is in which segment. Leaving stays on record; nothing is edited or deleted."""

    account_lookup = "segment__account_id"
    form = MembershipForm
    list_display = ("subscriber", "segment", "joined_at", "left_at")
    list_select_related = ("subscriber", "segment")
    list_filter = (("left_at", admin.EmptyFieldListFilter),)
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("subscriber__email_lower__startswith",)
    autocomplete_fields = ("segment", "subscriber")
    fields = ("segment", "subscriber")
    actions = ("leave_selected",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "joined_at", "left_at") if obj else self.fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_leave_permission(self, request: HttpRequest) -> bool:
        return super().has_change_permission(request)

    @admin.action(permissions=["leave"], description="Leave the segment")
    def leave_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        page = confirmation(
            self,
            request,
            queryset.select_related("subscriber", "segment"),
            title="Leave the segment",
            warning="These people leave the segment; messages of running campaigns that reach "
            "them through it alone are not sent any more.",
            button="Leave",
        )
        if page is not None:
            return page
        done = 0
        memberships = iter(queryset.iterator(chunk_size=CHUNK))
        while chunk := list(islice(memberships, CHUNK)):
            with transaction.atomic():
                left = leave(chunk)
                for membership in left:
                    self.log_change(request, membership, "Left the segment.")
            done += len(left)
        self.message_user(request, f"Left: {done}.", messages.SUCCESS)
        return None


@admin.register(Suppression)
class SuppressionAdmin(StyledMedia, AddressSearch, ScopedAdmin):
    """Added through ``suppress``, never edited; what is for good can't be deleted. Those for
    all accounts are for superusers."""

    form = SuppressionForm
    list_display = ("address", "reason", "scope", "created", "expires")
    list_select_related = ("account",)
    list_filter = ("reason", AccountFilter)
    sortable_by = ()
    search_fields = ("email_lower__startswith",)
    autocomplete_fields = ("account",)
    fields = ("account", "email", "reason", "evidence", "expires")
    shown_fields = ("scope", "address", "reason", "evidence", "created", "expires")
    #: Reasons that staff may lift: not the person's own wish.
    liftable = (Suppression.Reason.MANUAL, Suppression.Reason.HARD_BOUNCE)

    @admin.display(description="address")
    def address(self, obj: Suppression) -> str:
        return obj.email or "erased person"

    @admin.display(description="account")
    def scope(self, obj: Suppression) -> str:
        return str(obj.account) if obj.account else "all accounts"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown_fields if obj else self.fields

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        account = form.base_fields.get("account")
        if account is not None:
            account.required = account_ids(request) is not None
            if not account.required:
                account.help_text = "Blank: for all accounts."
        return form

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            obj is not None
            and obj.reason in self.liftable
            and super().has_delete_permission(request, obj)
        )

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given = form.cleaned_data
        stored = suppress_by_hand(
            given["account"],
            given["email"],
            given["reason"],
            by=_name(request),
            evidence=given["evidence"],
            expires=given["expires"],
        )
        if stored.reason != given["reason"]:
            self.message_user(
                request,
                f"It was suppressed already, for a stronger reason that stays: "
                f"{stored.get_reason_display()}.",
                messages.WARNING,
            )
        obj.__dict__.update(
            {
                field.attname: getattr(stored, field.attname)
                for field in stored._meta.concrete_fields
            }
        )


def _is_used(obj: Any, *, apart_from: set[Any]) -> bool:
    """Does any other table refer to ``obj``? Asked of the model, so that this app need not
    know which apps stand above it."""
    for relation in obj._meta.related_objects:
        through = getattr(relation, "through", None)
        if relation.related_model in apart_from or through in apart_from:
            continue
        found = relation.related_model._base_manager.filter(**{relation.field.name: obj})
        if found.exists():
            return True
    return False


def _name(request: HttpRequest) -> str:
    return request.user.get_username()
