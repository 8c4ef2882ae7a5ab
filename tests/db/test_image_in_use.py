"""A picture that a campaign is about to show is not deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from campaigns import images, lifecycle
from campaigns.models import Image
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, ImageFactory, StaffFactory

from . import admin_pages
from .campaign_pages import boss, said

__all__ = ["boss"]
pytestmark = pytest.mark.django_db


def test_a_picture_of_an_approved_campaign_stays(boss: Client) -> None:
    image: Any = ImageFactory.create()
    words = "<p>Some words for all to read.</p>"
    campaign = CampaignFactory.create(
        readers=1,
        name="Spring",
        account=image.account,
        body=f'{words}<img alt="x" src="{images.public_url(image)}">',
        text_body="",
    )
    lifecycle.approve(campaign, by=StaffFactory.create())
    url = admin_pages.url(Image, "delete", image.pk)
    answer = boss.post(url, {"post": "yes"})
    assert answer.status_code == 302
    assert "Spring" in said(answer)
    assert Image.objects.filter(pk=image.pk).exists()
    assert not AuditEvent.objects.filter(verb="image.delete").exists()
    lifecycle.withdraw(campaign)
    boss.post(url, {"post": "yes"})
    assert not Image.objects.filter(pk=image.pk).exists()
