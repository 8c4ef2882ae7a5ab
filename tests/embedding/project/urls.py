from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("staff/", admin.site.urls),
    path("mail/", include("subscribers.urls")),
    path("mail/", include("campaigns.urls")),
]
