"""Lists that are too long to be read for a page: looks in steps, searches in order, indexes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Q
from django.test import Client, RequestFactory
from django.utils import timezone

from sending.models import ProviderEvent
from subscribers.admin import looking
from subscribers.admin.audit import recorded_verbs
from subscribers.models import (
    Account,
    AuditEvent,
    Membership,
    MembershipChange,
    Segment,
    Signup,
    Subscriber,
    Suppression,
)
from subscribers.suppressing.standing import on_a_list
from tests.db.admin_pages import member_client, url
from tests.factories import (
    AccountFactory,
    AuditEventFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db
STEP = 4


def shown(user: Any, model: type[Any], query: dict[str, Any]) -> Any:
    request = RequestFactory().get(url(model, "changelist"), query)
    request.user = user
    return admin.site._registry[model].get_changelist_instance(request)


def pages(listed: Any) -> list[Any]:
    return [row for n in listed.paginator.page_range for row in listed.paginator.page(n)]


@pytest.fixture(params=range(2))
def accounts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Account]:
    """Three with people of the same few addresses, and lists of them, of others, that ended, of
    erased ones; short looks and short pages."""
    monkeypatch.setattr(looking, "LOOKED_AT", STEP)
    # Each account's entries by themselves, and those of several together.
    monkeypatch.setattr(looking, "FEW_ACCOUNTS", 20 * request.param)
    monkeypatch.setattr(admin.site._registry[Subscriber], "list_per_page", 3)
    monkeypatch.setattr(admin.site._registry[Subscriber], "list_max_show_all", 0)
    dice = random.Random(request.param)
    found = AccountFactory.create_batch(3)
    segment = SegmentFactory.create(account=found[0])
    addresses = [f"{letter}{n}@example.org" for letter in "aB" for n in range(9)]
    for address in dice.sample(addresses, k=len(addresses)):
        for account in dice.sample(found, k=2):
            person = SubscriberFactory.create(
                account=account, email=address, status=dice.choice(Subscriber.Status.values)
            )
            if account == found[0] and dice.random() < 0.5:
                MembershipFactory.create(segment=segment, subscriber=person)
    now = timezone.now()
    for address in (*dice.sample(addresses, k=12), "nobody@example.org"):
        for account in dice.sample([*found, None], k=2):
            ends = dice.choice([None, now + timedelta(1), now - timedelta(1)])
            SuppressionFactory.create(account=account, email=address.upper(), expires=ends)
    SuppressionFactory.create(account=found[0], erased_email=addresses[0])
    return found


def questions(accounts: list[Account]) -> Iterator[tuple[dict[str, Any], Q]]:
    segment = Segment.objects.get()
    yield {}, Q()
    yield {"account": accounts[1].pk}, Q(account=accounts[1])
    yield {"status__exact": "confirmed"}, Q(status="confirmed")
    yield {"segment": segment.pk}, Q(memberships__segment=segment)


@pytest.mark.parametrize("who", ["superuser", "one", "two", "none"])
def test_looks_in_steps_find_whom_the_plain_condition_finds(
    accounts: list[Account], who: str
) -> None:
    mine = {"superuser": accounts, "one": accounts[:1], "two": accounts[1:], "none": []}[who]
    _, user = member_client(*mine)
    user.is_superuser = who == "superuser"
    steps = 0
    for asked, wanted in questions(accounts):
        rows = Subscriber.objects.filter(wanted, account__in=mine).order_by("-pk")
        for answer, condition in (("yes", on_a_list()), ("no", ~on_a_list())):
            found: list[Any] = []
            before: dict[str, Any] = {}
            while True:
                listed = shown(user, Subscriber, {**asked, "suppressed": answer, **before})
                assert listed.look.looked_at <= STEP
                step = pages(listed)
                assert [row.pk for row in step] == sorted((row.pk for row in step), reverse=True)
                found += step
                assert bool(listed.look.further) == bool(listed.further_url)
                if listed.look.further is None:
                    break
                assert listed.look.told
                before, steps = {"before": listed.look.further}, steps + 1
            expected = list(rows.filter(condition))
            if answer == "no":
                assert found == expected, asked
            else:
                # Somebody on two entries may be found in two steps.
                assert set(found) == set(expected), asked
    assert who == "none" or steps > 4


def test_a_search_among_the_suppressed_looks_at_what_it_finds(
    accounts: list[Account], admin_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer, condition in (("yes", on_a_list()), ("no", ~on_a_list())):
        rows = Subscriber.objects.filter(condition, email_lower__startswith="b")
        query = {"q": "B", "suppressed": answer}
        part = shown(admin_user, Subscriber, query)
        assert "search for more" in part.look.told
        assert not part.further_url
        with monkeypatch.context() as patch:
            patch.setattr(looking, "LOOKED_AT", 1000)
            whole = shown(admin_user, Subscriber, query)
        assert whole.look.told == ""
        ordered = sorted(rows, key=lambda row: (row.email_lower, -row.pk))
        assert ordered
        assert pages(whole) == ordered
        assert pages(part) == ordered[: len(pages(part))]


def test_the_page_says_what_was_looked_at_and_leads_on(
    accounts: list[Account], superuser_client: Client
) -> None:
    page = url(Subscriber, "changelist")
    first = superuser_client.get(page, {"suppressed": "yes", "status__exact": "confirmed"})
    further = first.context["cl"].further_url
    told = " ".join(first.content.decode().split())
    assert "Only the latest 4 entries of the suppression list were looked at." in told
    assert "Look at older ones</a>" in told
    assert "status__exact=confirmed" in further
    second = " ".join(superuser_client.get(page + further).content.decode().split())
    assert "The next 4 entries of the suppression list were looked at." in second
    assert "Begin with the newest" in second
    # The other choices of the filter begin anew.
    assert "suppressed=no&amp;before" not in second
    assert "before=" not in second.partition("suppressed=no")[2].partition('"')[0]
    oldest = superuser_client.get(page, {"suppressed": "yes", "before": "1"}).content.decode()
    assert "There are no further entries of the suppression list." in oldest
    people = superuser_client.get(page, {"suppressed": "no"}).content.decode()
    assert "Only the newest 4 people of this list were looked at." in people
    for junk in ("x", "9" * 40, "-1"):
        answer = superuser_client.get(page, {"suppressed": "no", "before": junk})
        assert "Only the newest 4 people" in answer.content.decode()
    assert "looked at" not in superuser_client.get(page, {"before": 3}).content.decode()


def test_what_a_search_finds_is_listed_by_address_just_that_one_first(
    admin_user: Any, accounts: list[Account]
) -> None:
    for email in ("ann@example.org", "Ann@example.org.example", "ann.b@example.org"):
        person = SubscriberFactory.create(account=accounts[0], email=email)
        SuppressionFactory.create(account=accounts[0], email=email)
        MembershipFactory.create(
            subscriber=person, segment=SegmentFactory.create(account=accounts[0])
        )
    for model, path in (
        (Subscriber, "email"), (Suppression, "email"), (Membership, "subscriber__email")
    ):  # fmt: skip
        found = shown(admin_user, model, {"q": " ANN"}).queryset.values_list(path, flat=True)
        ordered = ["ann.b@example.org", "ann@example.org", "Ann@example.org.example"]
        assert list(found) == ordered
        exact = shown(admin_user, model, {"q": "Ann@example.org"}).queryset
        assert list(exact.values_list(path, flat=True)) == ordered[1:]


def test_an_erased_address_is_found_beside_those_that_begin_like_it(admin_user: Any) -> None:
    gone = SuppressionFactory.create(erased_email="ann@example.org")
    longer = SuppressionFactory.create(email="ann@example.org.example")
    assert list(shown(admin_user, Suppression, {"q": "Ann@example.org"}).queryset) == [longer, gone]


def test_expired_entries_are_listed_by_their_end(admin_user: Any) -> None:
    now = timezone.now()
    ends = [now - timedelta(days) for days in (3, 1, 2)] + [now + timedelta(1)]
    made = [SuppressionFactory.create(expires=end) for end in ends]
    listed = shown(admin_user, Suppression, {"state": "expired"}).queryset
    assert list(listed) == [made[1], made[2], made[0]]


def test_the_acts_offered_are_those_on_record_of_ones_accounts() -> None:
    accounts = AccountFactory.create_batch(3)
    for verb, account in (
        ("c.c", 0), ("a.a", 0), ("b.b", 1), ("a.a", 1), ("d.d", 2), ("a.a", 0), ("e.e", None)
    ):  # fmt: skip
        whose = None if account is None else accounts[account]
        AuditEventFactory.create(account=whose, verb=verb)
    mine = [account.pk for account in accounts]
    for ids, verbs in (
        (None, "abcde"), (mine[:1], "ac"), (mine[:2], "abc"), (mine[2:], "d"), ([], "")
    ):  # fmt: skip
        assert sorted(recorded_verbs(ids)) == [f"{letter}.{letter}" for letter in verbs]


@pytest.mark.parametrize(
    ("model", "query", "index"),
    [
        (Subscriber, {"q": "ann"}, "sendonce_subscriber_search"),
        (Membership, {"q": "ann"}, "sendonce_subscriber_search"),
        (Membership, {"left_at__isempty": "0"}, "sendonce_membership_left"),
        (MembershipChange, {"kind__exact": "joined"}, "sendonce_membershipchange_kind"),
        (Suppression, {"q": "ann"}, "sendonce_suppression_search"),
        (Suppression, {"state": "expired"}, "sendonce_suppression_expires"),
        (Signup, {"q": "ann"}, "sendonce_signup_search"),
        (Signup, {"kind__exact": "address"}, "sendonce_signup_changes"),
        (AuditEvent, {"at__gte": "2030-01-01 00:00:00+00:00"}, "sendonce_audit_at"),
        (ProviderEvent, {"result": "error"}, "sendonce_provider_result"),
        (ProviderEvent, {"esp": "Postmark"}, "sendonce_provider_esp"),
    ],
)
def test_an_index_has_what_is_asked_for(
    admin_user: Any, model: type[Any], query: dict[str, Any], index: str
) -> None:
    with connection.cursor() as cursor:
        # Once a table that tests have emptied was vacuumed, all plans cost the same nothing. A new
        # one is taken to hold some pages.
        cursor.execute(f"TRUNCATE {model._meta.db_table} CASCADE")
        cursor.execute("SELECT current_setting('is_superuser') = 'on'")
        if cursor.fetchone() == (True,):  # else what was found by chance to be in it is believed
            name = model._meta.db_table
            cursor.execute("DELETE FROM pg_statistic WHERE starelid = %s::regclass", [name])
        for way in ("seqscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
    rows = shown(admin_user, model, query).queryset
    # As the page reads it, or as it is counted.
    assert index in rows[:50].explain() + rows.order_by().explain()
