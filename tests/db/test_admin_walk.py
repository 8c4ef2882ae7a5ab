"""Every address of the admin, asked for by staff who may not see what is behind it.

Pages are found by walking the admin's patterns, forms by reading the pages that a member of the
account gets: what is new is asked for as well.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from sending.models import Send
from subscribers.models import Account, ImportJob, Segment, Subscriber
from tests.db.admin_pages import LABELS, OURS, SECRET, grant_all, member_client, one_of_each, url
from tests.db.admin_urls import Page, forms, pages, stored
from tests.db.one_person import one_person
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImportJobFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
)

__all__ = ["one_person"]
pytestmark = pytest.mark.django_db

STOCK = {"changelist", "add", "change", "delete", "history"}
#: Nobody's id.
MISSING = "987654321"


class Tenant:
    """An account with one row of everything and campaigns, sends and imports in every state."""

    def __init__(self) -> None:
        self.account = AccountFactory.create(name=f"{SECRET} account", slug=SECRET)
        self.rows: dict[type[Any], list[Any]] = {
            model: [row] for model, row in one_of_each(self.account).items()
        }
        segment = self.rows[Campaign][0].segments.get()
        for state in ("draft", "approved", "sending", "paused", "sent", "canceled"):
            given = {} if state == "draft" else {state: True}
            campaign = CampaignFactory.create(
                account=self.account, name=f"{SECRET} {state}", segments=[segment], **given
            )
            self.rows[Campaign].append(campaign)
        sending = self.rows[Campaign][0]
        for state in ("queued", "failed", "bounced", "sent", "retry"):
            person = SubscriberFactory.create(
                account=self.account, email=f"{SECRET}.{state}@example.org"
            )
            given = {} if state == "queued" else {state: True}
            self.rows[Subscriber].append(person)
            self.rows[Send].append(SendFactory.create(campaign=sending, subscriber=person, **given))
        for status in ("draft", "queued"):
            self.rows[ImportJob].append(
                ImportJobFactory.create(account=self.account, file_name=SECRET, status=status)
            )

    def ids(self, page: Page, *, states: bool = False) -> list[str]:
        """What to put into its address: a row of its own model where it is a page of Django's;
        on another page the id may be of anything, with ``states`` a row in each."""
        mine = self.rows.get(page.model, []) if page.model is not None else []
        if page.verb in STOCK or not states:
            mine = mine[:1]
        if page.verb in STOCK:
            return [str(row.pk) for row in mine]
        others = [self.rows[model][0] for model in (Campaign, Send, Subscriber, Account)]
        return sorted({str(row.pk) for row in (*mine, *others)})


def begin_own_rows() -> None:
    """The stranger's rows have ids that nobody guesses: far above all that there are."""
    with connection.cursor() as cursor:
        for label in LABELS:
            for model in apps.get_app_config(label).get_models(include_auto_created=True):
                if model._meta.pk.get_internal_type() == "BigAutoField":
                    sequence = "pg_get_serial_sequence(%s, %s)"
                    cursor.execute(
                        f"SELECT setval({sequence}, nextval({sequence}) + 1000000)",
                        [model._meta.db_table, model._meta.pk.column] * 2,
                    )


def rows_of(account: Account) -> dict[str, int]:
    """How many rows of each table are of the account."""
    counts = {}
    for label in LABELS:
        for model in apps.get_app_config(label).get_models():
            if any(field.name == "account" for field in model._meta.get_fields()):
                rows = model._base_manager.filter(account=account.pk)
                counts[model.__name__] = rows.count()
    return counts


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def asked(client: Client, address: str) -> tuple[Any, str]:
    answer = client.get(address)
    text = body(answer).decode(errors="replace")
    if answer.status_code in (301, 302):
        text += answer["Location"]
    return answer, text


def nothing() -> tuple[Client, Any]:
    user = StaffFactory.create()
    grant_all(user)
    client = Client()
    client.force_login(user)
    return client, user


def another_accounts() -> tuple[Client, Any]:
    begin_own_rows()
    own = AccountFactory.create(transport="other", name="Own", slug="own")
    segment = one_of_each_own(own)
    CampaignFactory.create(account=own, segments=[segment])
    return member_client(own)


def one_of_each_own(account: Account) -> Any:
    """The stranger's own rows, without the words that are looked for."""
    campaign = CampaignFactory.create(account=account, sending=True)
    person = SubscriberFactory.create(account=account)
    SendFactory.create(campaign=campaign, subscriber=person, in_doubt=True)
    return campaign.segments.get()


WHO = pytest.mark.parametrize("who", [another_accounts, nothing], ids=["another's", "nobody's"])


# --- the walk itself -----------------------------------------------------------------------------


def test_the_walk_finds_every_page_of_every_model() -> None:
    found = pages()
    for model in OURS:
        verbs = {page.verb for page in found if page.model is model}
        assert verbs >= STOCK, model
    custom = {str(page) for page in found if page.verb not in STOCK}
    assert {
        "sendonce_campaigns_campaign_approve",
        "sendonce_subscribers_subscriber_person",
    } <= custom


#: Pages of ours that show nothing by an id alone: they take POSTs, or a question beside it.
SILENT = {
    "sendonce_campaigns_campaign_copy",
    "sendonce_campaigns_campaign_pause",
    "sendonce_campaigns_campaign_preview_check",
    "sendonce_campaigns_campaign_preview_new",
    "sendonce_campaigns_campaign_preview_new_check",
    "sendonce_campaigns_campaign_preview_new_frame",
    "sendonce_campaigns_campaign_preview_people",
    "sendonce_campaigns_campaign_resume",
    "sendonce_campaigns_campaign_test_result",
    "sendonce_campaigns_campaign_test_state",
    "sendonce_campaigns_campaign_withdraw",
    "sendonce_campaigns_layout_preview_frame",
    "sendonce_sending_send_report_export",
    "sendonce_sending_send_story",
    "sendonce_subscribers_importjob_go_on",
    "sendonce_subscribers_importjob_rejects",
    "sendonce_subscribers_suppression_export",
    "sendonce_subscribers_suppression_import",
}


# --- looking -------------------------------------------------------------------------------------


@WHO
def test_no_page_shows_anything_and_a_guessed_id_answers_as_one_that_is_nobodys(who: Any) -> None:
    tenant = Tenant()
    client, _ = who()
    wrong = []
    for page in pages():
        expected = None
        if len(page.converters) == 1:
            (nobodys,) = page.addresses([MISSING])
            expected = _in_brief(client.get(nobodys), MISSING)
        for one in tenant.ids(page, states=who is another_accounts):
            for address in page.addresses([one]):
                answer, text = asked(client, address)
                if SECRET in text or answer.status_code >= 500:
                    wrong.append(f"{address}: {answer.status_code}")
                if expected is not None and (got := _in_brief(answer, one)) != expected:
                    wrong.append(f"{address}: {got}, but {expected} for an id that is nobody's")
    assert wrong == []


def _in_brief(answer: Any, one: str) -> tuple[int, str]:
    """What tells whether somebody has such a row."""
    return answer.status_code, answer.headers.get("Location", "").replace(f"/{one}/", "/-/")


def queries(page: Page, tenant: Tenant) -> list[str]:
    """Query strings for a list: searches, its filters and Django's own with the ids of the other
    account, and what else a list understands."""
    model = page.model
    assert model is not None
    own = admin.site._registry[model]
    found = [
        f"q={SECRET[:-1]}", "_facets=True&all=&o=1.-2", "p=2",
        "_popup=1&_to_field=id&_changelist_filters=q%3Dx",
    ]  # fmt: skip
    filters = [getattr(f, "parameter_name", None) for f in own.get_list_filter(None)]  # type: ignore[arg-type]
    names = {"account", "campaign", "segment", *filter(None, filters)}
    for field in model._meta.get_fields():
        related = field.related_model if field.is_relation else None
        rows = tenant.rows.get(related, ()) if isinstance(related, type) else ()
        found += [f"{field.name}__id__exact={row.pk}" for row in rows[:1]]
    fitting = {"campaign": Campaign, "segment": Segment}
    for name in sorted(names):
        found.append(f"{name}={tenant.rows[fitting.get(name, Account)][0].pk}")
    found += [f"id={row.pk}" for row in tenant.rows.get(model, ())[:1]]
    return [*found, f"account__name__startswith={SECRET[:3]}"]


def test_no_list_shows_anything_whatever_is_asked() -> None:
    """Who has an account of their own, whose rows a query could be mixed up with."""
    tenant = Tenant()
    client, _ = another_accounts()
    wrong = []
    for page in pages():
        if page.verb != "changelist":
            continue
        for query in queries(page, tenant):
            answer, text = asked(client, f"{url(page.model, 'changelist')}?{query}")  # type: ignore[arg-type]
            if SECRET in text or answer.status_code >= 500:
                wrong.append(f"{page}?{query}: {answer.status_code}")
    assert wrong == []


@WHO
def test_no_custom_page_shows_anything_whatever_is_asked(who: Any) -> None:
    """Of the strangers' own rows, too, where they have some."""
    tenant = Tenant()
    client, user = who()
    mine: Any = Campaign.objects.filter(account__members=user).values_list("pk", flat=True)
    own = [str(pk) for pk in mine[:1]]
    wrong = []
    given = {
        "account": Account,
        "campaign": Campaign,
        "segment": Segment,
        "subscriber": Subscriber,
        "person": Subscriber,
        "send": Send,
        "import": ImportJob,
    }
    # All at once: a page reads the one or two that it knows.
    asks = [
        "&".join(f"{name}={tenant.rows[model][0].pk}" for name, model in given.items()),
        "&".join(f"{name}={SECRET[:-1]}" for name in ("q", "term", "address", "email", "search")),
    ]
    for page in pages():
        if page.verb in STOCK - {"add"} or page.name in ("autocomplete", "view_on_site"):
            continue
        for address in page.addresses(own):
            for ask in asks:
                answer, text = asked(client, f"{address}?{ask}")
                if SECRET in text or answer.status_code >= 500:
                    wrong.append(f"{address}?{ask}: {answer.status_code}")
    assert wrong == []


@WHO
def test_no_autocomplete_offers_anything(who: Any) -> None:
    Tenant()
    client, _ = who()
    for model in OURS:
        for field in (f for f in model._meta.get_fields() if f.is_relation and f.concrete):
            given = {
                "app_label": model._meta.app_label,
                "model_name": model._meta.model_name,
                "field_name": field.name,
            }
            for term in ("", SECRET):
                answer = client.get(reverse("admin:autocomplete"), {**given, "term": term})
                assert SECRET not in answer.content.decode(), (model, field)
                assert answer.status_code in (200, 403, 404)


@WHO
def test_django_s_redirect_to_a_row_s_own_page_tells_nothing(who: Any) -> None:
    tenant = Tenant()
    client, _ = who()
    for model, rows in tenant.rows.items():
        kind = ContentType.objects.get_for_model(model)
        answer, text = asked(client, reverse("admin:view_on_site", args=[kind.pk, rows[0].pk]))
        assert answer.status_code == 404, model
        assert SECRET not in text


# --- acting --------------------------------------------------------------------------------------


def test_no_form_of_the_account_does_anything_when_a_stranger_sends_it() -> None:
    """All forms that a member of it gets, every button, sent by somebody else.

    A member sees on these pages what a stranger must not: else the tests above would pass with
    pages that show nothing to anybody.
    """
    tenant = Tenant()
    member, _ = member_client(tenant.account)
    taken: dict[str, tuple[str, dict[str, Any]]] = {}
    shown: set[str] = set()
    for page in pages():
        for address in page.addresses(tenant.ids(page, states=True)):
            answer = member.get(address)
            content = body(answer)
            if SECRET in content.decode(errors="replace") + answer.headers.get("Location", ""):
                shown.add(str(page))
            if answer.status_code == 200 and "html" in answer.headers["Content-Type"]:
                for target, data in forms(content, address):
                    for filled in _variants(target, data, tenant):
                        one = (target, _guessing(filled))
                        taken[repr(one)] = one  # many pages have the same form
            if page.converters:
                # Whatever is not behind a form: the verbs' addresses, which take a POST alone.
                taken[address] = (address, {"post": "yes"})
    ours = {str(page) for page in pages() if page.verb not in STOCK and page.model is not None}
    assert sorted(ours - shown - SILENT) == []
    assert len(shown) > 60
    assert len(taken) > 200
    _nothing_comes_of(list(taken.values()), tenant, another_accounts)


def _variants(target: str, data: dict[str, Any], tenant: Tenant) -> list[dict[str, Any]]:
    """As it is; and of a list's form each action with all rows, confirmed."""
    if "action" not in data or "index" not in data:
        return [data]
    model = next((m for m in OURS if url(m, "changelist") == target.split("?")[0]), None)
    if model is None:
        return [data]
    rows = [row.pk for row in tenant.rows.get(model, ())]
    names = [getattr(one, "__name__", one) for one in admin.site._registry[model].actions or ()]
    return [
        {"action": name, "_selected_action": rows, "confirmed": "yes", "post": "yes", **across}
        for name in (*names, "delete_selected")
        for across in ({}, {"select_across": "1"})
    ]


def _guessing(data: dict[str, Any]) -> dict[str, Any]:
    """Without the words that are looked for: an answer repeats what was typed."""

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(one) for one in value]
        return value.replace(SECRET, "guess") if isinstance(value, str) else value

    return {name: without(value) for name, value in data.items() if without(value) is not None}


def _nothing_comes_of(taken: list[tuple[str, dict[str, Any]]], tenant: Tenant, who: Any) -> None:
    before, counts = stored(), rows_of(tenant.account)
    client, _ = who()
    wrong = []
    for target, data in taken:
        answer = client.post(target, {n: v for n, v in data.items() if v not in (None, [None])})
        text = body(answer).decode(errors="replace") + answer.headers.get("Location", "")
        if SECRET in text or answer.status_code >= 500:
            wrong.append(f"{target} {sorted(data)}: {answer.status_code}")
    assert wrong == []
    assert rows_of(tenant.account) == counts
    assert before - stored() == Counter()


# --- without permission --------------------------------------------------------------------------


def test_every_page_is_closed_to_staff_without_permission() -> None:
    tenant = Tenant()
    user = StaffFactory.create()
    tenant.account.members.add(user)
    client = Client()
    client.force_login(user)
    before, wrong = stored(), []
    for page in pages():
        if page.name in ("index", "view_on_site", "autocomplete"):
            continue
        for address in page.addresses(tenant.ids(page)):
            for answer in (client.get(address), client.post(address, {"post": "yes"})):
                closed = answer.status_code in (403, 404, 405) or (
                    # Django's answer for a row that is not there, on the way to its own 403.
                    answer.status_code == 302 and answer["Location"] == "/admin/"
                )
                if not closed or SECRET in body(answer).decode(errors="replace"):
                    wrong.append(f"{address}: {answer.status_code}")
    assert wrong == []
    assert stored() == before
    index = client.get("/admin/").content.decode()
    assert SECRET not in index
    assert "/admin/sendonce_" not in index
    for label in LABELS:
        assert client.get(f"/admin/{label}/").status_code in (403, 404)


def test_every_page_is_closed_to_who_is_no_staff() -> None:
    tenant = Tenant()
    user = StaffFactory.create(is_staff=False)
    grant_all(user)
    tenant.account.members.add(user)
    for client, name in ((Client(), "nobody"), (Client(), "no staff")):
        if name == "no staff":
            client.force_login(user)
        for page in pages():
            for address in page.addresses(tenant.ids(page)[:2]):
                for answer in (client.get(address), client.post(address, {"post": "yes"})):
                    assert answer.status_code == 302, (name, address)
                    assert answer["Location"].startswith("/admin/login/"), (name, address)
