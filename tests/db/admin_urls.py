"""Every address of the admin, found by walking its patterns: new pages are in it at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.urls import URLPattern, URLResolver
from lxml import html

from tests.db.admin_pages import LABELS

PREFIX = "/admin/"
#: Django's own, which show nothing of ours or end the session.
NOT_OURS = {"login", "logout", "password_change", "password_change_done", "jsi18n"}


@dataclass(frozen=True)
class Page:
    """One pattern: ``route`` with ``{}`` for what it captures, and the converters' names."""

    name: str
    route: str
    converters: tuple[str, ...]
    model: type[Model] | None

    def __str__(self) -> str:
        return self.name or self.route

    @property
    def verb(self) -> str:
        """``changelist``, ``approve``: the name without its model."""
        if self.model is None:
            return self.name
        return self.name.removeprefix(
            f"{self.model._meta.app_label}_{self.model._meta.model_name}_"
        )

    def addresses(self, ids: Iterable[str]) -> Iterator[str]:
        """Its addresses with these for everything it captures."""
        choices = [
            [one for one in ids if kind != "int" or one.isdigit()] for kind in self.converters
        ]
        for chosen in product(*choices):
            yield PREFIX + self.route.format(*chosen)


def pages() -> list[Page]:
    """All of ours, custom ones too; those of other apps are not."""
    return [
        page
        for page in _walk(admin.site.urls[0])
        if page.name not in NOT_OURS and not page.name.startswith(("auth_", "authtoken_"))
    ]


def _walk(patterns: Iterable[Any], before: str = "", kinds: tuple[str, ...] = ()) -> Iterator[Page]:
    for one in patterns:
        route = str(one.pattern)
        captured = re.findall(r"<(?:(\w+):)?\w+>", route)
        whole = before + re.sub(r"<(?:\w+:)?\w+>", "{}", route)
        converters = (*kinds, *(kind or "str" for kind in captured))
        if isinstance(one, URLResolver):
            yield from _walk(one.url_patterns, whole, converters)
        elif isinstance(one, URLPattern) and one.name and not route.startswith("^"):
            yield Page(one.name, whole, converters, _model_of(one.name))


def _model_of(name: str) -> type[Model] | None:
    ours = [m for m in admin.site._registry if m._meta.app_label in LABELS]
    fitting = [m for m in ours if name.startswith(f"{m._meta.app_label}_{m._meta.model_name}_")]
    return max(fitting, key=lambda m: len(m._meta.model_name or ""), default=None)


def forms(content: bytes, address: str) -> list[tuple[str, dict[str, Any]]]:
    """The POST forms of a page: where to, and what a browser would send, each button in turn."""
    found = []
    for form in html.fromstring(content).forms if content.strip() else ():
        if (form.get("method") or "").lower() != "post":
            continue
        target = form.get("action") or address
        if not target.startswith(PREFIX) or target.endswith("/logout/"):
            continue
        data: dict[str, Any] = {}
        for name, value in form.form_values():
            data.setdefault(name, []).append(value)
        data.pop("csrfmiddlewaretoken", None)
        buttons = [
            (b.get("name"), b.get("value") or "")
            for b in form.xpath(".//button[@name] | .//input[@type='submit'][@name]")
        ]
        for name, value in [*buttons, ("", "")]:
            found.append((target, {**data, **({name: value} if name else {})}))
    return found


def stored() -> Counter[str]:
    """Every row of ours in the database, as text."""
    found: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for label in LABELS:
            for model in apps.get_app_config(label).get_models(include_auto_created=True):
                table = model._meta.db_table
                cursor.execute(f"SELECT %s || t::text FROM {table} t", [table])
                found.update(row for (row,) in cursor.fetchall())
    return found
