"""The runnable site: the admin, the pages that people who get mail see, and the addresses to
which mail providers send their events."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

admin.site.site_header = admin.site.site_title = "Sendonce"
admin.site.index_title = "Overview"


class Icon(RedirectView):
    """Where browsers look for a site's icon that no page names."""

    def get_redirect_url(self, *args: Any, **kwargs: Any) -> str:
        return static("sendonce_subscribers/icon.svg")


urlpatterns = [
    path("favicon.ico", Icon.as_view(), name="icon"),
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("admin/", admin.site.urls),
    path("", include("subscribers.urls")),
    path("", include("campaigns.urls")),
    path("webhooks/", include("sending.webhook_urls")),
]
