"""People, one by one, with what can be done about several of them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import JSONField, QuerySet
from django.forms import Textarea
from django.http import HttpRequest, HttpResponse

from .. import hooks
from ..audit import record
from ..consent import confirm, unsubscribe
from ..forms.people import SubscriberForm
from ..models import Membership, Subscriber
from ..scoping import AccountFilter, ScopedAdmin, deletion_summary
from ..suppression import hold_erasing
from .attributes import TypedAttributes
from .confirming import confirmation
from .exchange import Exchange
from .looking import SuppressedFilter
from .meanwhile import NothingOverwritten
from .parts import CHUNK, AddressSearch, StyledMedia, staff_name
from .reach import Reach
from .rights import PersonRights
from .segment_people import SegmentActions
from .segments import MembershipInline, SegmentFilter, record_joining
from .signups import SignupInline

SOURCE_TEXT: dict[Any, Any] = {
    JSONField: {"widget": Textarea(attrs={"rows": 6, "class": "sendonce-source"})}
}


@admin.register(Subscriber)
class SubscriberAdmin(
    StyledMedia,
    NothingOverwritten,
    Reach,
    PersonRights,
    Exchange,
    SegmentActions,
    TypedAttributes,
    AddressSearch,
    ScopedAdmin,
):
    form = SubscriberForm
    list_display = ("email", "status", "account", "created")
    list_select_related = ("account",)
    list_filter = ("status", SuppressedFilter, AccountFilter, SegmentFilter)
    # By the id alone: no other order has an index, and there may be millions.
    sortable_by = ()
    search_fields = ("email_lower__startswith",)
    address_field = "email_lower"
    autocomplete_fields = ("account",)
    inlines = (MembershipInline, SignupInline)
    formfield_overrides = SOURCE_TEXT
    actions = ("add_to_segment", "remove_from_segment", "unsubscribe_selected")
    fieldsets = (
        (None, {"fields": ("account", "email", "status", "consent_source")}),
        ("About the person", {"fields": ("attributes", "locale", "timezone")}),
        ("History", {"fields": ("created", "confirmed_at", "unsubscribed_at", "paused_until")}),
    )
    readonly_fields = ("created", "confirmed_at", "unsubscribed_at", "paused_until")

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
            self._save_typed(request, obj, form, confirms)
            if "email" in form.changed_data:
                transaction.on_commit(lambda: hooks.withdraw_leavers([obj.pk]), robust=True)
        else:
            obj.status = Subscriber.Status.PENDING
            with transaction.atomic():
                obj.save()
                record(obj.account, "subscriber.add", subject=obj.email, request=request)
        if confirms and confirm(obj, source=obj.consent_source):
            source = {"consent_source": obj.consent_source}
            act = "subscriber.confirm"
            record(obj.account, act, subject=obj.email, detail=source, request=request)
        elif confirms:
            self.message_user(
                request, "Not confirmed: the person has unsubscribed meanwhile.", messages.WARNING
            )
        obj.refresh_from_db(fields=["status", "confirmed_at"])

    def _save_typed(self, request: HttpRequest, obj: Any, form: Any, confirms: bool) -> None:
        typed = [f.name for f in obj._meta.concrete_fields if f.name in form.cleaned_data]
        typed = [name for name in typed if name != "status"]
        with transaction.atomic():
            same = Subscriber.objects.select_for_update(no_key=True).filter(pk=obj.pk)
            stored: dict[str, Any] = (same.values(*typed).first() if typed else None) or {}
            obj.save(update_fields=typed)
            changed = [name for name, was in stored.items() if was != getattr(obj, name)]
            if confirms and "consent_source" in changed:
                # The record of the confirmation has it.
                changed.remove("consent_source")
            if changed:
                act, names = "subscriber.change", {"fields": sorted(changed)}
                record(obj.account, act, subject=obj.email, detail=names, request=request)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Before anything is written that names them: an erasure under way ends first, and then
        there is nobody left to delete or to name."""
        for account_id in sorted({obj.account_id for obj in queryset}):
            hold_erasing(account_id)
        locked = Subscriber.objects.select_for_update(of=("self",)).order_by("pk")
        there = set(locked.filter(pk__in=[o.pk for o in queryset]).values_list("pk", flat=True))
        left: Any = [obj for obj in queryset if obj.pk in there]
        return super().log_deletions(request, left) if left else []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            locked = Subscriber.objects.select_for_update(of=("self",)).filter(pk=obj.pk)
            if locked.first() is None:
                return
            record(obj.account, "subscriber.delete", subject=obj.email, request=request)
            super().delete_model(request, obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        for added in formset.new_objects if formset.model is Membership else ():
            record_joining(request, added)

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
        for subscriber in queryset.select_related("account").iterator(chunk_size=CHUNK):
            with transaction.atomic():
                if unsubscribe(
                    subscriber, evidence=f"unsubscribed by {staff_name(request)} in the admin"
                ):
                    self.log_change(request, subscriber, "Unsubscribed.")
                    act = "subscriber.unsubscribe"
                    record(subscriber.account, act, subject=subscriber.email, request=request)
                    done += 1
        self.message_user(request, f"Unsubscribed: {done}.", messages.SUCCESS)
        return None
