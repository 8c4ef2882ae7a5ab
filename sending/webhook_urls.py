"""Where providers send tracking events: ``path("webhooks/", include("sending.webhook_urls"))``."""

from __future__ import annotations

from .tracking.webhooks import patterns

app_name = "sendonce_webhooks"
urlpatterns = patterns()
