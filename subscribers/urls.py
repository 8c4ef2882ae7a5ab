"""Pages for people who get mail. Include them under any prefix; links follow it."""

from __future__ import annotations

from django.urls import re_path

from . import views

app_name = "sendonce"

urlpatterns = [
    # The slash is optional in the pattern, not redirected to: a one-click POST that is
    # redirected is a POST that is lost.
    re_path(r"^u/(?P<token>[^/]{1,100})/?$", views.link, name="link"),
]
