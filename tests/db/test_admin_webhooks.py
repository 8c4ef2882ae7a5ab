"""What providers told, in the admin: for superusers to read, and for nobody to change."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import sending.admin.webhooks  # noqa: F401  (registers its pages)
from sending.models import ProviderEvent
from sending.tracking import inbox as tracking
from sending.tracking import webhook_counts
from tests.factories import AccountFactory, StaffFactory

from .rows import campaign_to, row
from .tracked import event_of, tell

pytestmark = pytest.mark.django_db

EVENTS = "admin:sendonce_sending_providerevent_changelist"
COUNTS = "admin:sendonce_sending_webhookcount_changelist"


def page(client: Client, name: str, query: str = "") -> str:
    answer = client.get(reverse(name) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_superuser_sees_them_filtered(superuser_client: Client) -> None:
    send = row(campaign_to(0), "in_doubt", email="one@example.org")
    tell(send, "delivered", esp="Postmark")
    tell(send, "delivered", esp="Brevo", recipient="two@example.org")
    tracking.store([event_of(send, "opened", esp="Postmark", recipient="three@example.org")])
    every = page(superuser_client, EVENTS)
    assert all(f"{who}@example.org" in every for who in ("one", "two", "three"))
    for query, seen in [
        ("?esp=Postmark", {"one", "three"}),
        ("?result=wrong_recipient", {"two"}),
        ("?result=waiting", {"three"}),
        ("?esp=Brevo&result=applied", set()),
        ("?result=nonsense", set()),
    ]:
        shown = page(superuser_client, EVENTS, query)
        assert {who for who in ("one", "two", "three") if f"{who}@example.org" in shown} == seen
    event = ProviderEvent.objects.earliest("id")
    assert "one@example.org" in page(superuser_client, EVENTS, f"?q={event.event_id}")
    detail = reverse("admin:sendonce_sending_providerevent_change", args=[event.pk])
    assert superuser_client.get(detail).status_code == 200
    assert superuser_client.post(detail, {"kind": "opened"}).status_code == 403


def test_an_event_leads_to_its_send(superuser_client: Client) -> None:
    send = row(campaign_to(0), "in_doubt", email="one@example.org")
    tell(send, "hard_bounce", esp="Postmark")
    shown = page(superuser_client, EVENTS)
    assert "bounced, for good" in shown
    assert "hard_bounce" not in shown
    (link,) = set(re.findall(r'href="([^"]*/send/[^"]+)"', shown))
    found = superuser_client.get(html.unescape(link), follow=True).content.decode()
    assert "one@example.org" in found
    ProviderEvent.objects.update(job_id=f"send:{send.pk}")
    shown = page(superuser_client, EVENTS)
    assert reverse("admin:sendonce_sending_send_change", args=[send.pk]) in shown


def test_the_counts(superuser_client: Client) -> None:
    webhook_counts.count({("Postmark", "too_large"): 3})
    webhook_counts.count({("Postmark", "too_large"): 4, ("Brevo", "refused"): 0})
    shown = page(superuser_client, COUNTS)
    assert "Too large" in shown
    assert ">7<" in shown
    assert "refused" not in shown


def test_staff_of_one_account_see_none(client: Client) -> None:
    staff = StaffFactory.create()
    staff.user_permissions.set(Permission.objects.filter(content_type__app_label__contains="send"))
    AccountFactory.create(members=[staff])
    tell(row(campaign_to(0), "in_doubt", email="one@example.org"), "delivered")
    webhook_counts.count({("Postmark", "too_large"): 3})
    client.force_login(staff)
    assert "one@example.org" not in page(client, EVENTS)
    assert "Too large" not in page(client, COUNTS)
