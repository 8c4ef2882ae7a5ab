"""Words of the code that no page of the admin says: staff know the thing by another name."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import DeliveryEvent, Send, TransportPause
from sending.rescue import rescue_expired
from tests.db.admin_urls import pages
from tests.db.rows import row
from tests.db.test_admin_walk import Tenant, body
from tests.factories import WorkerFactory

pytestmark = pytest.mark.django_db


#: What no page says; an address may, as the workers' hosts of the tests do.
NOT_SAID = re.compile(
    r".{0,40}\b(?:workers?\b(?!\.example)|rcpt|ehlo|at dot\b|dot:|webhook:|http:(?!//)).{0,40}",
    re.I,
)


def shown(html: str) -> str:
    """What people read of a page, tooltips and what is read aloud among it."""
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    told = re.findall(r'\s(?:title|aria-label|alt|placeholder)="([^"]*)"', html)
    return unescape(" | ".join([re.sub(r"<[^>]+>", "|", html), *told]))


def test_no_page_has_the_codes_words_for_senders_and_stages(superuser_client: Client) -> None:
    tenant = Tenant()
    ended = timezone.now() - timedelta(seconds=1)
    send: Any = row(
        tenant.rows[Campaign][0], "sending", worker=WorkerFactory.create(), lease_until=ended
    )
    assert rescue_expired(doubt_wait=600.0) == 1
    tenant.rows[Send].append(send)
    Send.objects.filter(pk=send.pk).update(answer_stage="rcpt", answer_text="timed out")
    for stage in ("rcpt", "ehlo", "dot", "webhook", "http"):
        DeliveryEvent.objects.create(
            send=send, account=send.account, kind="retry", stage=stage, code=451, text="4.7.1 wait"
        )
    TransportPause.objects.create(
        alias="default", stage="ehlo", code=421, reason="421 busy", since=ended, probe_at=ended
    )
    named, quoted, wrong = set(), set(), []
    for page in pages():
        for address in page.addresses([*tenant.ids(page, states=True), str(send.pk)]):
            answer = superuser_client.get(address)
            if "html" not in answer.headers["Content-Type"]:
                continue
            text = shown(body(answer).decode())
            if "sender stopped" in text.lower():
                named.add(page.verb)
            if "at the recipient's address: \u201c451 4.7.1 wait\u201d" in text:
                quoted.add(page.verb)
            wrong += [f"{address}: {one[0]}" for one in NOT_SAID.finditer(text)]
    assert wrong == []
    assert named >= {"progress", "report", "change"}
    assert quoted >= {"progress", "change", "changelist"}
