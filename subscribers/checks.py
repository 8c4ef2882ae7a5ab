"""System checks of the settings; ``sendonce.E0xx`` errors, ``sendonce.W0xx`` warnings.

Retired numbers are not used again. E001 unknown key, E002 wrong value, E003 another
database, E004 shadowed package; W001 no unsubscribe page. ``sending.checks`` looks into the
transports: E005 an unusable transport, E006 Amazon SES with its library's own retries, W002 dead
links, W003 an account whose transport is not configured; E001 and E002 there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.urls import NoReverseMatch, reverse

from .conf import KNOWN
from .conf_values import wrong_values

LABELS = ("sendonce_subscribers", "sendonce_campaigns", "sendonce_sending")


@register()
def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Unknown keys and values of the wrong kind in ``SENDONCE``."""
    given = getattr(settings, "SENDONCE", {})
    if not isinstance(given, dict):
        return [Error("SENDONCE must be a dict.", id="sendonce.E002")]
    found: list[CheckMessage] = [
        Error(
            f"SENDONCE has an unknown key {key!r}.",
            hint=f"Known keys: {', '.join(sorted(KNOWN))}.",
            id="sendonce.E001",
        )
        for key in sorted(set(given) - KNOWN, key=str)
    ]
    found += [Error(text, id="sendonce.E002") for text in wrong_values(given)]
    return found


@register()
def check_database(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The apps live in the default database, and it is PostgreSQL."""
    found: list[CheckMessage] = []
    for app in apps.get_app_configs():
        if app.label not in LABELS:
            continue
        for model in app.get_models():
            if router.db_for_write(model) != DEFAULT_DB_ALIAS:
                found.append(
                    Error(
                        f"{model._meta.label} is routed to another database than the default one.",
                        hint="Sendonce's tables must be in the default database.",
                        id="sendonce.E003",
                    )
                )
    if connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        found.append(Error("Sendonce needs PostgreSQL.", id="sendonce.E003"))
    return found


@register()
def check_names(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Another package of the same top-level name hides one of ours, or ours hides it."""
    found: list[CheckMessage] = []
    for label in LABELS:
        name = label.removeprefix("sendonce_")
        if not _defines(name, label):
            found.append(
                Error(
                    f"The package {name!r} imported from {_whence(name)} is not Sendonce's.",
                    hint="Rename the package that shadows it, or move it behind on sys.path.",
                    id="sendonce.E004",
                )
            )
    return found


def _defines(name: str, label: str) -> bool:
    """Whether the package holds the app of this label, installed or not.

    The finder of an editable installation gives our ``apps`` to a stranger's package that has
    none, so the module must also lie within the package.
    """
    try:
        package, module = import_module(name), import_module(f"{name}.apps")
    except Exception:  # whatever a stranger's module raises, it is not ours
        return False
    within = str(Path(str(module.__file__)).parent) in map(str, package.__path__)
    return within and any(getattr(value, "label", None) == label for value in vars(module).values())


def _whence(name: str) -> str:
    found = find_spec(name)
    if found is None:
        return "nowhere"
    return found.origin or ", ".join(found.submodule_search_locations or ())


@register()
def check_links(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The page behind the unsubscribe links is reachable: without it no bulk mail can be made."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return []  # a worker-only project without URLs; the message would say it too
    try:
        reverse("sendonce:link", args=["x"])
    except NoReverseMatch:
        return [
            Warning(
                "The URLs do not include subscribers.urls: no unsubscribe link can be made.",
                hint='Add path("", include("subscribers.urls")) to the root URLconf.',
                id="sendonce.W001",
            )
        ]
    return []
