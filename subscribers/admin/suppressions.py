"""The suppression list in the admin: looking, adding, and releasing with a reason."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime

from ..audit import record
from ..consent import suppress_by_hand
from ..forms.suppressions import EVERYWHERE, ListField, ReasonForm, SuppressionForm
from ..models import Account, Suppression
from ..scoping import AccountFilter, ScopedAdmin, account_ids
from ..suppressing.releasing import NotReleased, release, version, was_added_too, why_not
from ..suppressing.standing import erased_as, is_live, known_as
from ..suppression import hold_list
from .parts import StyledMedia, addresses_beginning, staff_name
from .suppression_files import SuppressionFiles


class ScopeFilter(AccountFilter):
    """By account; superusers also see the list for all accounts by itself."""

    everywhere = EVERYWHERE

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        found = super().lookups(request, model_admin)
        if account_ids(request) is None:
            found.insert(0, (self.everywhere, "All accounts (the list for all)"))
        return found

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == self.everywhere:
            return queryset.filter(account__isnull=True)
        return super().queryset(request, queryset)


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "Suppressing now"), ("expired", "Expired")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "live":
                return queryset.filter(is_live())
            case "expired":
                return queryset.filter(expires__lte=Now())
            case _:
                return queryset


@admin.register(Suppression)
class SuppressionAdmin(StyledMedia, SuppressionFiles, ScopedAdmin):
    """Added through ``suppress``, let go through ``release``, never edited or deleted: both are
    then on record. Those for all accounts are for superusers."""

    form = SuppressionForm
    change_list_template = "admin/sendonce_subscribers/suppression_change_list.html"
    change_form_template = "admin/sendonce_subscribers/suppression_change_form.html"
    release_template = "admin/sendonce_subscribers/suppression_release.html"
    list_display = ("address", "reason", "scope", "since", "until")
    list_select_related = ("account",)
    list_filter = ("reason", StateFilter, ScopeFilter)
    sortable_by = ()
    search_fields = ("email_lower__startswith",)
    search_help_text = (
        "The beginning of an address, or all of one that was erased. What is found is listed by "
        "address."
    )
    fields = ("account", "email", "reason", "evidence", "expires")
    shown_fields = ("scope", "address", "reason", "evidence", "created", "expires")

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_release"
        view = self.admin_site.admin_view(self.release_view)
        return [path("<path:object_id>/release/", view, name=name), *super().get_urls()]

    # --- looking -----------------------------------------------------------------------------

    def get_ordering(self, request: HttpRequest) -> Any:
        # Those that expired by when they did: an index has them in this order alone.
        expired = request.GET.get(StateFilter.parameter_name) == "expired"
        return ("-expires", "-pk") if expired else super().get_ordering(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        typed = search_term.strip()
        if not typed:
            return queryset, False
        erased = None
        if "@" in typed:
            # Whoever knows the whole address may find out that it is on the list by its hash. Asked
            # first: nobody is, nearly always, and one condition has an index in order.
            ids = list(queryset.filter(erased_as(typed)).values_list("pk", flat=True))
            erased = Q(pk__in=ids) if ids else None
        return addresses_beginning(queryset, "email_lower", typed, erased), False

    @admin.display(description="address")
    def address(self, obj: Suppression) -> str:
        return obj.email or "erased person"

    @admin.display(description="account")
    def scope(self, obj: Suppression) -> str:
        return str(obj.account) if obj.account else "all accounts"

    @admin.display(description="since")
    def since(self, obj: Suppression) -> str:
        return date_format(localtime(obj.created), "DATE_FORMAT")

    @admin.display(description="until", empty_value="for good")
    def until(self, obj: Suppression) -> str | None:
        return date_format(localtime(obj.expires), "DATE_FORMAT") if obj.expires else None

    @admin.display(description="besides")
    def former(self, obj: Suppression) -> str:
        return obj.get_former_reason_display()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.fields
        return (*self.shown_fields, "former") if obj.former_reason else self.shown_fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "former") if obj else ()

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if "account" in form.base_fields:
            form.base_fields["account"] = ListField(
                label="Suppress for", scopes=self._scopes(request)
            )
        return form

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        entry = context.get("original")
        if entry is not None:
            context["entry"] = entry
            context["why_not"] = why_not(entry)
            if not context["why_not"] and self.has_release_permission(request):
                context["release_url"] = self._url("release", entry)
        return super().render_change_form(request, context, *args, **kwargs)

    # --- adding ------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given = form.cleaned_data
        account: Account | None = given["account"]
        with transaction.atomic():
            hold_list(account.pk if account else None)
            before = self._stored(account, given["email"])
            stored = suppress_by_hand(
                account,
                given["email"],
                given["reason"],
                by=staff_name(request),
                evidence=given["evidence"],
                expires=given["expires"],
            )
            unchanged = before == self._stored(account, given["email"])
            if not unchanged:
                record(
                    account,
                    "suppression.add",
                    subject=stored.email or "",
                    subject_hash=stored.email_hash or "",
                    reason=given["evidence"].strip(),
                    detail={"suppressed_for": given["reason"]},
                    request=request,
                )
        obj.unchanged, obj.told = unchanged, ""
        if stored.reason != given["reason"]:
            obj.told = (
                "It was suppressed already, for a stronger reason that stays: "
                f"{stored.get_reason_display()}."
            )
        elif unchanged:
            obj.told = "It was on the list already; nothing was changed."
        elif any((row["id"], row["created"]) == (stored.pk, stored.created) for row in before):
            obj.told = f"It was on the list already; it says now: {stored.get_reason_display()}."
        obj.__dict__.update(
            {
                field.attname: getattr(stored, field.attname)
                for field in stored._meta.concrete_fields
            }
        )

    def _stored(self, account: Account | None, email: str) -> list[dict[str, Any]]:
        """What this list says of the address, locked."""
        of = Q(account=account) if account else Q(account__isnull=True)
        rows = Suppression.objects.select_for_update().filter(of, known_as(email))
        return [dict(row) for row in rows.order_by("email_lower", "pk").values()]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if obj.unchanged else super().log_addition(request, obj, message)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """As Django's; but what was there already was not "added successfully"."""
        if not obj.told:
            return super().response_add(request, obj, post_url_continue)
        self.message_user(request, obj.told, messages.WARNING)
        if "_addanother" in request.POST:
            return HttpResponseRedirect(request.path)
        if "_continue" in request.POST:
            return HttpResponseRedirect(self._url("change", obj))
        return self.response_post_save_add(request, obj)

    # --- releasing ---------------------------------------------------------------------------

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.release_suppression")

    def release_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        entry: Suppression | None = self.get_object(request, unquote(object_id))
        if not self.has_release_permission(request) or not self.has_view_permission(request, entry):
            raise PermissionDenied
        if entry is None:
            answer: HttpResponse = self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
                request, self.opts, object_id
            )
            return answer
        form = ReasonForm(
            request.POST or None,
            initial={"seen": version(entry)},
            help_text="Goes on record, with your name.",
        )
        if request.method == "POST" and form.is_valid():
            given = form.cleaned_data
            try:
                gone = release(entry.pk, seen=given["seen"], words=given["words"], request=request)
            except NotReleased as error:
                self.message_user(request, f"Not released. {error}", messages.ERROR)
                return HttpResponseRedirect(self._list())
            said = f"Released: {gone.email}."
            if was_added_too(gone):
                said += " The person has unsubscribed: only their own new sign-up takes that back."
            self.message_user(request, said, messages.SUCCESS)
            return HttpResponseRedirect(self._list())
        return self._release_page(request, entry, form)

    def _release_page(
        self, request: HttpRequest, entry: Suppression, form: ReasonForm
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        elsewhere = Suppression.objects.filter(email_lower=entry.email_lower).exclude(pk=entry.pk)
        return TemplateResponse(
            request,
            self.release_template,
            {
                **self.admin_site.each_context(request),
                "title": "Release from suppression",
                "opts": self.opts,
                "original": entry,
                "entry": entry,
                "scope": self.scope(entry),
                "why_not": why_not(entry),
                "for_all_too": entry.account_id and elsewhere.filter(account__isnull=True).exists(),
                "form": form,
                "media": self.media,
            },
        )

    def _url(self, page: str, entry: Suppression) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(entry.pk)], current_app=self.admin_site.name)

    def _list(self) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)
