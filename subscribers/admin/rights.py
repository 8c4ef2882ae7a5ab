"""One person's data in the admin: seeing how much there is, handing it out, erasing it.

Addresses travel in POSTs only: a URL with one would stay in logs and histories.
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.text import slugify

from ..forms.rights import ErasureForm, PersonForm
from ..models import Account, Subscriber
from ..rights.acts import erase_person, export_person, record_export
from ..scoping import as_id, visible


class PersonRights(admin.ModelAdmin):
    """For the subscribers' admin: ``person/``, also for whoever is no subscriber any more."""

    person_template = "admin/sendonce_subscribers/person.html"
    change_form_template = "admin/sendonce_subscribers/subscriber_change_form.html"
    delete_confirmation_template = "admin/sendonce_subscribers/subscriber_delete.html"

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_person"
        view = self.admin_site.admin_view(self.person_view)
        return [path("person/", view, name=name), *super().get_urls()]

    def has_erase_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = request.user.has_perm(f"{self.opts.app_label}.erase_subscriber")
        return allowed and self.has_view_permission(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {"has_erase_permission": self.has_erase_permission(request)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        person = context.get("original")
        context["has_erase_permission"] = person is not None and self.has_erase_permission(
            request, person
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        context = {"has_erase_permission": self.has_erase_permission(request)}
        return super().delete_view(request, object_id, {**context, **(extra_context or {})})

    def person_view(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        if not self.has_erase_permission(request):
            raise PermissionDenied
        accounts = visible(Account.objects.order_by("name"), request, "pk")
        if request.method != "POST":
            return self._asked(request, accounts)
        form = PersonForm(request.POST, accounts=accounts)
        if not form.is_valid():
            return self._page(request, form)
        account, email = form.cleaned_data["account"], form.cleaned_data["email"]
        if "export" in request.POST:
            return self._download(request, account, email)
        erasure = ErasureForm(request.POST if "erase" in request.POST else None, email=email)
        if "erase" in request.POST and erasure.is_valid():
            return self._erase(request, account, email, erasure.cleaned_data["words"])
        return self._found(request, form, account, email, erasure)

    # --- what came of it ---------------------------------------------------------------------

    def _asked(self, request: HttpRequest, accounts: Any) -> HttpResponse:
        """The form; from a subscriber's page at once with what is known of them."""
        given = as_id(request.GET.get("subscriber"))
        person = self.get_queryset(request).filter(pk=given).first() if given else None
        if not isinstance(person, Subscriber):
            only = list(accounts[:2])
            chosen = {"account": only[0]} if len(only) == 1 else {}
            return self._page(request, PersonForm(accounts=accounts, initial=chosen))
        about = {"account": person.account_id, "email": person.email}
        form = PersonForm(about, accounts=accounts)
        form.is_valid()
        erasure = ErasureForm(email=person.email)
        return self._found(request, form, person.account, person.email, erasure)

    def _download(self, request: HttpRequest, account: Account, email: str) -> HttpResponse:
        with transaction.atomic():
            data = export_person(account, email)
            record_export(account, email, request=request)
        text = json.dumps(data, ensure_ascii=False, indent=2)
        answer = HttpResponse(text, content_type="application/json; charset=utf-8")
        name = f"{slugify(email.replace('@', '-at-')) or 'person'}-{timezone.now():%Y-%m-%d}"
        answer["Content-Disposition"] = f'attachment; filename="{name}.json"'
        answer["X-Content-Type-Options"] = "nosniff"
        answer["Cache-Control"] = "no-store, private"
        return answer

    def _erase(
        self, request: HttpRequest, account: Account, email: str, words: str
    ) -> HttpResponse:
        done = erase_person(account, email, reason=words, request=request)
        told = ", ".join(f"{kind} {number}" for kind, number in done.forgotten.items())
        self.message_user(
            request,
            f"Erased from {account}. Forgotten: {told or 'nothing was left'}.",
            messages.SUCCESS,
        )
        if done.uploads:
            self.message_user(
                request,
                f"Files that were uploaded and not imported yet: {done.uploads}. If they name the "
                "person, the row is refused when they are imported.",
                messages.WARNING,
            )
        if done.elsewhere:
            self.message_user(
                request,
                "The list of suppressions for all accounts has this address, too, and keeps it.",
                messages.WARNING,
            )
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    # --- pages -------------------------------------------------------------------------------

    def _found(
        self,
        request: HttpRequest,
        form: PersonForm,
        account: Account,
        email: str,
        erasure: ErasureForm,
    ) -> HttpResponse:
        data = export_person(account, email)
        counts = [
            (kind.replace("_", " ").capitalize(), len(told))
            for kind, told in data.items()
            if isinstance(told, list)
        ]
        return self._page(
            request, form, account=account, email=email, counts=counts, erasure=erasure
        )

    def _page(self, request: HttpRequest, form: PersonForm, **context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            self.person_template,
            {
                **self.admin_site.each_context(request),
                "title": "One person\u2019s data",
                "opts": self.opts,
                "form": form,
                "media": self.media,
                **context,
            },
        )
