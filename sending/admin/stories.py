"""One person's story as a page: a search, what was sent to them or not and why, in order."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone

from campaigns.models import Campaign
from subscribers.admin_urls import url_if_any
from subscribers.models import Account, AuditEvent, Subscriber
from subscribers.scoping import account_ids, as_id, visible
from subscribers.suppressing.standing import entries_against, hindrances
from subscribers.timezones import zone_named

from .. import person_search, why_not
from ..models import Send
from ..person_facts import Entry, Sees, read_mark
from ..person_story import person_story
from .pages import OperatingPages

#: Campaigns that the page offers to ask about, the latest; an older one is asked for by its link.
OFFERED = 100
#: Accounts that the search offers to choose from.
ACCOUNTS = 200
#: As long as an address can be; and as short as a beginning may be: a letter would be half of all.
LONGEST = 320
SHORTEST = 3


class Stories(OperatingPages):
    """For the ledger's admin: ``story/``."""

    story_template = "admin/sendonce_sending/story/story.html"

    def get_urls(self) -> list[Any]:
        return [self.operating_path("story/", self.story_view, "story"), *super().get_urls()]

    def may_see_stories(self, request: HttpRequest) -> bool:
        sees_people = request.user.has_perm(f"{Subscriber._meta.app_label}.view_subscriber")
        return sees_people and self.has_view_or_change_permission(request)

    def story_url(self, request: HttpRequest, send: Send) -> str:
        """The story of a row's recipient, "" where there is none for this user."""
        if not send.email or not self.may_see_stories(request):
            return ""
        query = urlencode({"q": send.email, "account": send.account_id})
        return f"{self.operating_url('story')}?{query}"

    def story_view(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.may_see_stories(request):
            raise PermissionDenied
        asked = request.GET.get("q", "").replace("\x00", "").strip()[:LONGEST]
        every = visible(Account.objects.all(), request, "pk")
        wanted = as_id(request.GET.get("account", ""))
        offered = list(every.order_by("name")[: ACCOUNTS + 1])
        account = every.filter(pk=wanted).first() if wanted is not None else None
        context: dict[str, Any] = {
            "asked": asked,
            "account": account,
            "accounts": offered if 1 < len(offered) <= ACCOUNTS else [],
        }
        if len(asked) >= SHORTEST:
            context |= self._found(request, asked, account, every)
        return self.operating_page(request, self.story_template, "One person's story", context)

    def _found(
        self, request: HttpRequest, asked: str, account: Account | None, every: Any
    ) -> dict[str, Any]:
        accounts = [account] if account is not None else list(every)
        matches, more = person_search.matches(accounts, asked)
        exact = [match for match in matches if person_search.is_exact(match, asked)]
        if len(exact) == 1 and (account is not None or len(matches) == 1):
            return self._story(request, exact[0].account, exact[0].email)
        if "@" in asked and account is not None and not matches:
            return self._story(request, account, asked)
        return {
            "matches": [(match, self._story_link(match.email, match.account)) for match in matches],
            "more": more,
        }

    def _story(self, request: HttpRequest, account: Account, email: str) -> dict[str, Any]:
        superuser = account_ids(request) is None
        audit = AuditEvent._meta
        told = person_story(
            account,
            email,
            sees=Sees(
                everywhere=superuser,
                staff=request.user.has_perm(f"{audit.app_label}.view_{audit.model_name}"),
            ),
            before=as_id(request.GET.get("before", "")),
            until=read_mark(request.GET.get("until", "")),
        )
        zone = zone_named(account.timezone)
        sees_campaigns = request.user.has_perm(f"{Campaign._meta.app_label}.view_campaign")
        older = ""
        if told.next is not None:
            before, until = told.next
            older = self._story_link(told.email, account, before=before, until=until or "")
        campaigns = self._campaigns(request, account)
        answer = self._why(request, account, email, told.person, zone, superuser)
        if answer is not None and answer["campaign"] not in campaigns:
            campaigns.insert(0, answer["campaign"])
        return {
            "story": told,
            "zone": zone,
            "entries": [self._entry(entry, sees_campaigns) for entry in told.entries],
            "newest": self._story_link(told.email, account) if "before" in request.GET else "",
            "older": older,
            "person_url": self._other_url(Subscriber, told.person.pk) if told.person else "",
            "now": _now(told.person),
            "paused_until": _paused_until(told.person),
            "campaigns": campaigns,
            "answer": answer,
        }

    def _entry(self, entry: Entry, sees_campaigns: bool) -> dict[str, Any]:
        campaign = entry.campaign if sees_campaigns else None
        return {
            "entry": entry,
            "url": self.operating_url("change", entry.send) if entry.send else "",
            "campaign_url": self._other_url(Campaign, campaign) if campaign else "",
        }

    def _campaigns(self, request: HttpRequest, account: Account) -> list[Campaign]:
        found = Campaign.objects.filter(account=account).only("pk", "name", "account")
        # A draft is the last that anybody asks about.
        return list(found.order_by(F("started_at").desc(nulls_last=True), "-pk")[:OFFERED])

    def _why(
        self,
        request: HttpRequest,
        account: Account,
        email: str,
        person: Subscriber | None,
        zone: ZoneInfo,
        superuser: bool,
    ) -> dict[str, Any] | None:
        """The answer to "why did they not get it?", where that is asked about a campaign of the
        account."""
        pk = as_id(request.GET.get("campaign", ""))
        if pk is None:
            return None
        campaigns = Campaign.objects.select_related("account").defer("body", "text_body")
        campaign = campaigns.filter(pk=pk, account=account).first()
        if campaign is None:
            return None
        facts = why_not.look(campaign, email, person, sees_all=superuser)
        return {"campaign": campaign, "sentence": why_not.sentence(facts, zone)}

    def _story_link(self, email: str, account: Account, **more: Any) -> str:
        query = urlencode({"q": email, "account": account.pk, **more})
        return f"{self.operating_url('story')}?{query}"

    def _other_url(self, model: type[Any], pk: Any) -> str:
        """Of a row of another app; "" where this site does not have it."""
        name = f"{model._meta.app_label}_{model._meta.model_name}_change"
        return url_if_any(self.admin_site.name, name, pk)


#: By the kind of a hindrance; see ``subscribers.suppressing.standing``.
_HINDERED = {
    "everywhere": "Suppressed for all accounts.",
    "suppressed": "Suppressed.",
    "pending": "Pending: not confirmed yet.",
    "unsubscribed": "Unsubscribed.",
}


def _now(person: Subscriber | None) -> str:
    """Whether campaigns reach them now, in a sentence or a few."""
    if person is None:
        return "Nobody's subscriber in this account (any more)."
    found = hindrances(person, entries_against(person), timezone.now())
    told = dict.fromkeys(_HINDERED[one.kind] for one in found if one.kind in _HINDERED)
    if found:
        return f"{' '.join([*told, 'No campaign reaches them.'])}"
    return "Confirmed: campaigns reach them."


def _paused_until(person: Subscriber | None) -> datetime | None:
    until = person.paused_until if person is not None else None
    return until if until is not None and until > timezone.now() else None
