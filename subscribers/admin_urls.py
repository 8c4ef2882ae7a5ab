"""Addresses of admin pages that a site may not have: hosts register admins of their own."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse


def url_if_any(site: str | None, name: str, *args: Any) -> str:
    """Of the admin page called ``name``, as in ``auth_user_change``, within the admin site called
    ``site`` (``AdminSite.name``; None: the one there is); "" where it has no such page."""
    try:
        return reverse(f"admin:{name}", args=[quote(arg) for arg in args], current_app=site)
    except NoReverseMatch:
        return ""


def site_of(request: HttpRequest) -> str | None:
    """The admin site that a request is of."""
    match = request.resolver_match
    return match.namespace if match else None
