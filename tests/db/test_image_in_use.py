"""A picture that a campaign is about to show is not deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from campaigns import images, lifecycle
from campaigns.digest import digest
from campaigns.errors import ApprovalRefused
from campaigns.images import ImageInUse
from campaigns.models import Campaign, Image
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, ImageFactory, StaffFactory

from . import admin_pages
from .campaign_pages import boss, said
from .lifecycles import stored
from .racing import Race

__all__ = ["boss"]


def shown_in(image: Any) -> Campaign:
    """A draft that shows it."""
    words = "<p>Some words for all to read.</p>"
    campaign: Campaign = CampaignFactory.create(
        readers=1,
        name="Spring",
        account=image.account,
        body=f'{words}<img alt="x" src="{images.public_url(image)}">',
        text_body="",
    )
    return campaign


@pytest.mark.django_db
def test_a_picture_of_an_approved_campaign_stays(boss: Client) -> None:
    image: Any = ImageFactory.create()
    campaign = shown_in(image)
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


@pytest.mark.django_db
def test_what_shows_a_picture_that_is_no_more_is_not_approved() -> None:
    image: Any = ImageFactory.create()
    elsewhere = f"https://cdn.example.org/{image.key}.png"
    draft, other = shown_in(image), shown_in(image)
    body = draft.body.replace(images.public_url(image), elsewhere)
    Campaign.objects.filter(pk=other.pk).update(body=body)
    images.remove(image)
    with pytest.raises(ApprovalRefused, match=f"was deleted: {images.public_url(image)};"):
        lifecycle.approve(draft, by=StaffFactory.create())
    # What is on another site, nobody here knows.
    assert lifecycle.approve(stored(other), by=StaffFactory.create()).content is not None


def test_a_refusal_names_ten_campaigns_and_says_how_many_more() -> None:
    assert "\u201cNo 9\u201d and 2 more show it" in str(ImageInUse([f"No {n}" for n in range(12)]))
    assert "more" not in str(ImageInUse([f"No {n}" for n in range(10)]))


@pytest.mark.django_db(transaction=True)
def test_a_picture_is_not_deleted_while_an_approval_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image: Any = ImageFactory.create()
    draft, second = shown_in(image), shown_in(image)
    by: Any = StaffFactory.create()
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "digest", halt.behind(digest))
        approver = race.start_to(halt, lambda: lifecycle.approve(draft, by=by))
        # Others approve with the same picture, and its words may be edited.
        race.start(lambda: lifecycle.approve(second, by=by)).result()
        race.start(lambda: Image.objects.filter(pk=image.pk).update(alt="New")).result()
        deleter = race.start(lambda: images.remove(image))
        deleter.wait_until_blocked()
        halt.released.set()
        assert approver.result().content is not None
        with pytest.raises(ImageInUse):
            deleter.result()
    assert Image.objects.filter(pk=image.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_an_approval_waits_for_who_deletes_a_picture_and_then_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image: Any = ImageFactory.create()
    draft = shown_in(image)
    by: Any = StaffFactory.create()
    with Race() as race:
        halt = race.halt()
        # It holds the picture, and found nobody who shows it.
        monkeypatch.setattr(images, "leaving_with", halt.behind(images.leaving_with))
        deleter = race.start_to(halt, lambda: images.remove(image))
        approver = race.start(lambda: lifecycle.approve(draft, by=by))
        approver.wait_until_blocked()
        halt.released.set()
        deleter.result()
        with pytest.raises(ApprovalRefused, match="was deleted"):
            approver.result()
    assert stored(draft).status == Campaign.Status.DRAFT
