"""The admin of joining: the forms, and the sign-ups as evidence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from ..audit import record
from ..conf import conf
from ..forms.attributes import LinesField
from ..forms.signups import SignupFormForm
from ..joining.asking import digest, keep_words
from ..joining.fields import TRAP, entry_form
from ..joining.limits import Verdict
from ..models import Account, ConsentText, Signup, SignupAttempt, SignupForm
from ..scoping import AccountFilter, ReadOnly, ScopedAdmin, ScopedChoices, as_id, visible
from .meanwhile import NothingOverwritten
from .parts import AddressSearch, StyledMedia

#: Accounts that are offered when a form is made.
OFFERED = 500


@admin.register(SignupForm)
class SignupFormAdmin(StyledMedia, NothingOverwritten, ScopedAdmin):
    form = SignupFormForm
    list_display = ("name", "slug", "account", "is_open", "created")
    list_select_related = ("account",)
    list_filter = ("is_open", AccountFilter)
    search_fields = ("name__istartswith", "slug__startswith")
    search_help_text = "The beginning of a name or a slug."
    prepopulated_fields = {"slug": ("name",)}
    choose_account_template = "admin/sendonce_subscribers/choose_account.html"
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    fieldsets = (
        (None, {"fields": ("account", "name", "slug", "is_open", "segments")}),
        ("What people see", {"fields": ("intro", "fields", "consent_text")}),
        (
            "Confirmation mail",
            {
                "fields": ("subject", "body"),
                "description": "Blank: the usual words, in the person's language. Merge fields: "
                "{{ confirm_url }}, {{ account.name }}, {{ account.postal_address }}. What "
                "somebody typed into the form is not among them: anybody can type anybody's "
                "address.",
            },
        ),
        ("Where it leads", {"fields": ("thanks_url", "welcome_url")}),
        ("Other sites", {"fields": ("allowed_origins",)}),
    )
    shown = (
        ("Use it", {"fields": ("page_link", "snippet", "frame", "json_link")}),
        ("So far", {"fields": ("waiting", "confirmed", "turned_away")}),
    )
    readonly_fields = (
        "page_link",
        "snippet",
        "frame",
        "json_link",
        "waiting",
        "confirmed",
        "turned_away",
    )

    # --- pages -----------------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        given = super().get_fieldsets(request, obj)
        return (*given, *self.shown) if obj else given

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "account") if obj else self.readonly_fields

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # The slug is in links that stand on other sites.
        return {} if obj else self.prepopulated_fields

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        segments: Any = form.base_fields.get("segments")
        account = obj.account_id if obj else as_id(request.GET.get("account"))
        if segments is not None and account is not None:
            segments.queryset = segments.queryset.filter(account=account).order_by("name")
        return form

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "fields":
            return LinesField(required=False, label="Attributes")
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        # Its buttons need scripts, and a list of boxes has no use for them.
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        kwargs["widget"] = CheckboxSelectMultiple(attrs={"class": "sendonce-choices"})
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The account comes first: it says which segments and attributes there are."""
        if request.method == "GET" and self.has_add_permission(request):
            accounts = visible(Account.objects.order_by("name"), request, "pk")
            chosen = as_id(request.GET.get("account"))
            if chosen is None or not accounts.filter(pk=chosen).exists():
                return self._choose_account(request, list(accounts[:OFFERED]))
        return super().add_view(request, form_url, extra_context)

    def _choose_account(self, request: HttpRequest, accounts: list[Account]) -> HttpResponse:
        if len(accounts) == 1:
            return HttpResponseRedirect(f"{request.path}?account={accounts[0].pk}")
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": "Add sign-up form",
            "question": "Whose list do people join by it?",
            "opts": self.opts,
            "accounts": accounts,
            "media": self.media,
        }
        return TemplateResponse(request, self.choose_account_template, context)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        turned_away = visible(_turned_away(), request, "account_id").select_related("account")
        names = sorted({one.account.name for one in turned_away.order_by("-pk")[:200]})
        if names:
            self.message_user(
                request,
                "In the last 24 hours more people asked to join than an account may write to in "
                f"an hour ({conf.SIGNUP_ACCOUNT_HOUR}), and were told to come back later: "
                f"{', '.join(names[:10])}{', ...' if len(names) > 10 else ''}. If they are not "
                "people, close the form for a while.",
                messages.WARNING,
            )
        return super().changelist_view(request, extra_context)

    # --- changes ---------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            # A snippet may stand elsewhere from now on: its words must be known by their digest.
            keep_words(obj.account, obj.consent_text)
            record(
                obj.account,
                "signup_form.change" if change else "signup_form.add",
                subject=obj.name,
                detail={"fields": form.changed_data, "words": digest(obj.consent_text)},
                request=request,
            )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            record(obj.account, "signup_form.delete", subject=obj.name, request=request)
            super().delete_model(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        # The evidence stays; the links of those who still wait lead nowhere.
        return [str(obj) for obj in objs], {}, set(), []

    # --- what it is for --------------------------------------------------------------------------

    @admin.display(description="page")
    def page_link(self, obj: SignupForm) -> str:
        return format_html('<a href="{0}">{0}</a>', _url(obj, "signup"))

    @admin.display(description="for a page of yours")
    def snippet(self, obj: SignupForm) -> str:
        context = {
            "form": obj,
            "entry": entry_form(obj)(),
            "url": _url(obj, "signup"),
            "words": digest(obj.consent_text),
            "trap": TRAP,
        }
        html = render_to_string("sendonce_subscribers/signup_snippet.html", context)
        return _to_copy(html.strip(), "HTML of the form", 14)

    @admin.display(description="in a frame")
    def frame(self, obj: SignupForm) -> str:
        if not obj.allowed_origins:
            return "Only on the sites that are allowed below."
        html = format_html(
            '<iframe src="{}" title="{}" width="100%" height="720"></iframe>',
            _url(obj, "signup"),
            obj.name,
        )
        return _to_copy(html, "HTML of the frame", 3)

    @admin.display(description="for programs (JSON)")
    def json_link(self, obj: SignupForm) -> str:
        return _url(obj, "signup_json")

    @admin.display(description="wait for confirmation")
    def waiting(self, obj: SignupForm) -> int:
        return obj.signups.filter(confirmed_at__isnull=True).count()

    @admin.display(description="confirmed")
    def confirmed(self, obj: SignupForm) -> int:
        return obj.signups.filter(confirmed_at__isnull=False).count()

    @admin.display(description="turned away in the last 24 hours")
    def turned_away(self, obj: SignupForm) -> str:
        found = _turned_away().filter(account=obj.account_id).count()
        most = f"the account may send {conf.SIGNUP_ACCOUNT_HOUR} confirmation mails an hour"
        return f"{found} ({most})"


@admin.register(Signup)
class SignupAdmin(StyledMedia, AddressSearch, ReadOnly, ScopedAdmin):
    """Who asked for what, and when and from where they confirmed it."""

    list_display = ("address", "kind", "form", "requested_at", "confirmed_at")
    list_select_related = ("account", "form")
    list_filter = ("kind", ("confirmed_at", admin.EmptyFieldListFilter), AccountFilter)
    sortable_by = ()
    search_fields = ("email_lower__startswith",)
    address_field = "email_lower"
    fieldsets = (
        (None, {"fields": ("account", "kind", "form", "address", "subscriber")}),
        ("What they said", {"fields": ("attributes", "locale")}),
        ("What they agreed to", {"fields": ("words",)}),
        ("Asked", {"fields": ("requested_at", "requested_from", "requested_agent")}),
        ("Mails", {"fields": ("mails", "mailed_at")}),
        ("Confirmed", {"fields": ("confirmed_at", "confirmed_from", "confirmed_agent")}),
    )

    @admin.display(description="address")
    def address(self, obj: Signup) -> str:
        return obj.email or "erased person"

    @admin.display(description="words")
    def words(self, obj: Signup) -> str:
        if obj.consent is None:
            return "-"
        return format_html('<pre class="sendonce-text">{}</pre>', obj.consent.text)


class SignupInline(ScopedChoices, admin.TabularInline):
    """How somebody came to be on the list: the evidence, with a link to all of it."""

    model = Signup
    fk_name = "subscriber"
    verbose_name_plural = "Sign-ups that they confirmed"
    fields = ("kind", "form", "requested_at", "requested_from", "confirmed_at", "confirmed_from")
    readonly_fields = fields
    extra = 0
    max_num = 0
    can_delete = False
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> Any:
        confirmed = super().get_queryset(request).filter(confirmed_at__isnull=False)
        return confirmed.select_related("form")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ConsentText)
class ConsentTextAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """Every wording that people have agreed to, as long as there is anybody who did."""

    list_display = ("beginning", "account", "created")
    list_select_related = ("account",)
    list_filter = (AccountFilter,)
    sortable_by = ()
    ordering = ("-id",)
    fields = ("account", "text", "digest", "created")

    @admin.display(description="words")
    def beginning(self, obj: ConsentText) -> str:
        return str(obj)


class OutcomeFilter(admin.SimpleListFilter):
    """Of what there can be: to ask the rows what there is would read all of them."""

    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        kept = (verdict for verdict in Verdict if verdict != Verdict.NETWORK)
        return [(verdict.value, verdict.value) for verdict in kept]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(outcome=self.value()) if self.value() else queryset


@admin.register(SignupAttempt)
class SignupAttemptAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """What the limits count by, of the last two days. The address is a keyed hash."""

    list_display = ("at", "outcome", "network", "account")
    list_select_related = ("account",)
    list_filter = (OutcomeFilter, AccountFilter)
    sortable_by = ()
    ordering = ("-id",)
    fields = ("account", "at", "outcome", "network")


def _turned_away() -> Any:
    day = Now() - timedelta(days=1)
    return SignupAttempt.objects.filter(outcome=Verdict.ACCOUNT.value, at__gt=day)


def _url(form: SignupForm, name: str) -> str:
    try:
        path = reverse(f"sendonce:{name}", args=[form.account.slug, form.slug])
    except NoReverseMatch:
        return ""  # a system check says that the URLs are not included
    return conf.BASE_URL + path


def _to_copy(text: str, label: str, rows: int) -> str:
    return format_html(
        '<textarea readonly class="sendonce-source" cols="86" rows="{}" aria-label="{}">{}'
        "</textarea>",
        rows,
        label,
        text,
    )
