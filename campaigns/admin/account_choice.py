"""The page before an add page that asks whose it is to be: the account says what else there is."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from subscribers.models import Account
from subscribers.scoping import as_id, visible

#: Accounts that the page offers.
MOST = 500


class AccountFirst(admin.ModelAdmin):
    """For admins of what an account has. ``question`` stands above the choice."""

    choose_account_template = "admin/sendonce_campaigns/campaign/choose_account.html"
    question = "Whose is it?"

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        # Its buttons open another tenant's form as readily, and a list of boxes has no use of it.
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method == "GET" and self.has_add_permission(request):
            accounts = visible(Account.objects.order_by("name"), request, "pk")
            chosen = as_id(request.GET.get("account"))
            if chosen is None or not accounts.filter(pk=chosen).exists():
                return self._choose_account(request, list(accounts[: MOST + 1]))
        return super().add_view(request, form_url, extra_context)

    def _choose_account(self, request: HttpRequest, accounts: list[Account]) -> HttpResponse:
        if len(accounts) == 1:
            query = request.GET.copy()
            query["account"] = str(accounts[0].pk)
            return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            self.choose_account_template,
            {
                **self.admin_site.each_context(request),
                "title": f"Add {self.opts.verbose_name}",
                "opts": self.opts,
                "accounts": accounts[:MOST],
                "most": MOST if len(accounts) > MOST else 0,
                "question": self.question,
                "media": self.media,
            },
        )
