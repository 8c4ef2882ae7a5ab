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
from sending.models import Send
from sending.rescue import rescue_expired
from tests.db.admin_urls import pages
from tests.db.rows import row
from tests.db.test_admin_walk import Tenant, body
from tests.factories import WorkerFactory

pytestmark = pytest.mark.django_db


def shown(html: str) -> str:
    """What people read of a page, tooltips and what is read aloud among it."""
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    told = re.findall(r'\s(?:title|aria-label|alt|placeholder)="([^"]*)"', html)
    return unescape(" | ".join([re.sub(r"<[^>]+>", "|", html), *told]))


def test_a_sender_is_called_so_on_every_page(superuser_client: Client) -> None:
    tenant = Tenant()
    ended = timezone.now() - timedelta(seconds=1)
    send: Any = row(
        tenant.rows[Campaign][0], "sending", worker=WorkerFactory.create(), lease_until=ended
    )
    assert rescue_expired(doubt_wait=600.0) == 1
    tenant.rows[Send].append(send)
    named, wrong = set(), []
    for page in pages():
        for address in page.addresses([*tenant.ids(page, states=True), str(send.pk)]):
            answer = superuser_client.get(address)
            if "html" not in answer.headers["Content-Type"]:
                continue
            text = shown(body(answer).decode())
            if "sender stopped" in text.lower():
                named.add(page.verb)
            wrong += [
                f"{address}: {one}"
                for one in re.findall(r"(?i).{0,40}\bworkers?\b(?!\.example).{0,40}", text)
            ]
    assert wrong == []
    assert named >= {"progress", "report", "change"}
