"""Pages for people who get mail. Include them under any prefix; links follow it."""

from __future__ import annotations

from django.urls import re_path

from . import views
from .joining import views as signup_views

app_name = "sendonce"
_SLUG = "[-a-zA-Z0-9_]{1,100}"

urlpatterns = [
    # The slash is optional in the pattern, not redirected to: a one-click POST that is
    # redirected is a POST that is lost.
    re_path(r"^u/(?P<token>[^/]{1,100})/?$", views.link, name="link"),
    re_path(
        rf"^s/(?P<account>{_SLUG})/(?P<form>{_SLUG})/?$", signup_views.form_page, name="signup"
    ),
    re_path(
        rf"^s/(?P<account>{_SLUG})/(?P<form>{_SLUG})\.json$",
        signup_views.form_json,
        name="signup_json",
    ),
]
