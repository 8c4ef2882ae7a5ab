"""The pages of a test send: asking for it, and what came of it."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_protect

from subscribers.models import Account

from .. import hooks, previewing, test_sends
from ..models import Campaign
from ..preview_people import EMPTY, choose
from ..test_sends import Refused
from .verbs import Verb, VerbAdmin

TEST = Verb("test", "Send a test", "Test sent", "test", tuple(Campaign.Status.values), asks=True)
SEARCH = "sendonce_subscribers.view_subscriber"


class TestSendForm(forms.Form):
    """To whom, and as whom. ``key`` is made with the page: posted twice it sends once."""

    key = forms.CharField(widget=forms.HiddenInput, required=False)
    addresses = forms.CharField(
        label="To",
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=f"1 to {test_sends.MOST} addresses, one on each line or with commas.",
        required=False,
        max_length=5000,
    )
    nobody = forms.BooleanField(label="As nobody in particular: all fields empty", required=False)
    words = forms.CharField(
        label="As",
        required=False,
        max_length=320,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text="A subscriber's address, or its beginning. Blank: the first of the audience.",
    )

    def clean_addresses(self) -> list[str]:
        try:
            return test_sends.addresses(self.cleaned_data["addresses"])
        except Refused as error:
            raise ValidationError([ValidationError(reason) for reason in error.reasons]) from error


class TestPages(VerbAdmin):
    """The verb that sends a test of the saved campaign; whoever may, may at any status."""

    test_template = "admin/sendonce_campaigns/campaign/test.html"
    test_result_template = "admin/sendonce_campaigns/campaign/test_result.html"
    test_state_template = "admin/sendonce_campaigns/campaign/test_state.html"

    def get_urls(self) -> list[Any]:
        def keyed(view: Any) -> Any:
            return self.admin_site.admin_view(csrf_protect(view))

        name = self._url_name(TEST)
        return [
            path(
                "<path:object_id>/test/<slug:key>/state/",
                keyed(self.test_state_view),
                name=f"{name}_state",
            ),
            path(
                "<path:object_id>/test/<slug:key>/",
                keyed(self.test_result_view),
                name=f"{name}_result",
            ),
            path("<path:object_id>/test/", self._protected(self.test_view), name=name),
            *super().get_urls(),
        ]

    def has_test_permission(self, request: HttpRequest, obj: Campaign | None = None) -> bool:
        """May send tests: a permission of its own, and seeing the campaign at least."""
        return self._may(request, "test", obj)

    def _may_search(self, request: HttpRequest) -> bool:
        """May look people up, and see a campaign as anybody."""
        return request.user.has_perm(SEARCH)

    # --- views -------------------------------------------------------------------------------

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        campaign = self._found(request, object_id, TEST)
        if not isinstance(campaign, Campaign):
            return campaign
        if request.method != "POST":
            return self._test_page(request, campaign, self._new_form(request))
        form = TestSendForm(request.POST)
        key = request.POST.get("key", "")
        if not test_sends.is_key(key):
            self.message_user(request, "Nothing was sent: please repeat.", messages.ERROR)
            return HttpResponseRedirect(self._url(TEST, campaign))
        if hooks.test_states(campaign.account, test_sends.key_of(campaign, key)):
            return self._sent_before(request, campaign, key)
        if form.is_valid():
            try:
                made = self._send(request, campaign, form)
            except Refused as error:
                for reason in error.reasons:
                    form.add_error(None, reason)
            else:
                if not made:
                    return self._sent_before(request, campaign, key)
                return HttpResponseRedirect(self._result_url(campaign, key))
        return self._test_page(request, campaign, form)

    def test_result_view(self, request: HttpRequest, object_id: str, key: str) -> HttpResponse:
        """What came of it, which anybody may look at who may send one."""
        return self._result(request, object_id, key, self.test_result_template)

    def test_state_view(self, request: HttpRequest, object_id: str, key: str) -> HttpResponse:
        """The part of that page that changes."""
        return self._result(request, object_id, key, self.test_state_template)

    # --- how ---------------------------------------------------------------------------------

    def _send(self, request: HttpRequest, campaign: Campaign, form: TestSendForm) -> bool:
        """Did it queue anything? Raises ``Refused``."""
        given = form.cleaned_data
        content, found = previewing.content_of(campaign)
        if content is None:
            raise Refused(*(str(problem) for problem in found))
        chosen = choose(
            campaign.account_id,
            asked=EMPTY if given["nobody"] else "",
            words=given["words"],
            may_search=self._may_search(request),
            include=list(campaign.segments.order_by("name", "pk").values_list("pk", flat=True)),
            exclude=list(campaign.exclude_segments.values_list("pk", flat=True)),
        )
        if chosen.said:
            raise Refused(chosen.said)
        shown = previewing.of_content(content, chosen.reader)
        if shown.rendered is None:
            raise Refused(*(str(problem) for problem in shown.problems))
        emails: list[str] = given["addresses"]
        with transaction.atomic():
            made = test_sends.send(
                campaign, content, chosen.reader, emails, key=given["key"], request=request
            )
            if made:
                number = "1 address" if len(emails) == 1 else f"{len(emails)} addresses"
                self.log_change(request, campaign, f"Sent a test to {number}.")
        return made

    def _new_form(self, request: HttpRequest) -> TestSendForm:
        own = getattr(request.user, "email", "") or ""
        return TestSendForm(initial={"key": secrets.token_hex(16), "addresses": own})

    def _test_page(
        self, request: HttpRequest, campaign: Campaign, form: TestSendForm
    ) -> TemplateResponse:
        answer = self._page(
            request,
            campaign,
            self.test_template,
            TEST.label,
            {
                "form": form,
                "account": campaign.account,
                "may_search": self._may_search(request),
                "people_url": self._people_url(campaign.account),
                "mark": test_sends.MARK.strip(),
                "may_change": self.has_change_permission(request, campaign),
            },
        )
        # A page from the browser's memory would bring its old key along.
        add_never_cache_headers(answer)
        return answer

    def _sent_before(self, request: HttpRequest, campaign: Campaign, key: str) -> HttpResponse:
        said = "This form was sent before, and its messages once. Send another test for more."
        self.message_user(request, said, messages.INFO)
        return HttpResponseRedirect(self._result_url(campaign, key))

    def _result(
        self, request: HttpRequest, object_id: str, key: str, template: str
    ) -> HttpResponse:
        campaign = self._found(request, object_id, TEST)
        if not isinstance(campaign, Campaign):
            return campaign
        trials = []
        if test_sends.is_key(key):
            trials = hooks.test_states(campaign.account, test_sends.key_of(campaign, key))
        if not trials:
            raise Http404
        waiting = sum(trial.is_open for trial in trials)
        context = {
            "trials": trials,
            "waiting": waiting,
            "said": _said(len(trials), waiting),
            "test_url": self._url(TEST, campaign),
            "state_url": self._result_url(campaign, key, "_state"),
            "result_url": self._result_url(campaign, key),
        }
        answer = self._page(request, campaign, template, "Test", context)
        add_never_cache_headers(answer)
        return answer

    def _test_url(self, request: HttpRequest, campaign: Any) -> str:
        """The page that sends a test, where there is a saved campaign and somebody who may."""
        if campaign is None or not campaign.pk or not self.has_test_permission(request, campaign):
            return ""
        return self._url(TEST, campaign)

    def _people_url(self, account: Account) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_preview_people"
        return f"{reverse(name, current_app=self.admin_site.name)}?account={account.pk}"

    def _result_url(self, campaign: Campaign, key: str, page: str = "_result") -> str:
        name = f"admin:{self._url_name(TEST)}{page}"
        return reverse(name, args=[quote(campaign.pk), key], current_app=self.admin_site.name)


def _said(every: int, waiting: int) -> str:
    if waiting == 0:
        return "The test is over."
    return f"{waiting} of {every} wait." if waiting > 1 else f"1 of {every} waits."
