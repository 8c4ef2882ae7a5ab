"""The web version of one person's message, behind the ``{{ web_url }}`` of their mail."""

from __future__ import annotations

from django.utils.html import format_html

from subscribers.models import Subscriber
from subscribers.tokens import preferences_url, unsubscribe_url, web_url

from .models import Campaign
from .rendering import Renderer, RenderError, build_context


def web_version(subscriber_id: int, campaign_id: int) -> str | None:
    """The HTML that this person was sent, with their data as it is now; a message without HTML
    as preformatted text. None when the person, the campaign or its content is gone."""
    campaign = (
        Campaign.objects.select_related("content")
        .filter(pk=campaign_id, content__isnull=False)
        .first()
    )
    person = Subscriber.objects.filter(pk=subscriber_id).first()
    if campaign is None or campaign.content is None or person is None:
        return None
    if person.account_id != campaign.account_id:
        return None
    context = build_context(
        email=person.email,
        attributes=person.attributes,
        account_fields=campaign.content.account_fields,
        unsubscribe_url=unsubscribe_url(person.pk, campaign.pk),
        preferences_url=preferences_url(person.pk, campaign.pk),
        web_url=web_url(person.pk, campaign.pk),
    )
    try:
        rendered = Renderer(campaign.content).render(context)
    except RenderError:
        return None
    return rendered.html or format_html(
        "<!doctype html><meta charset=utf-8><title>{}</title><pre>{}</pre>",
        rendered.subject,
        rendered.text,
    )
