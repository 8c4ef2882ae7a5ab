"""System checks of the settings; ``sendonce.E0xx`` errors, ``sendonce.W0xx`` warnings.

Retired numbers are not used again. E001 unknown key, E002 wrong value, E003 another
database, E004 shadowed package; W001 no unsubscribe page.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.urls import NoReverseMatch, reverse

from .conf import KNOWN, Conf

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
        for key in sorted(set(given) - KNOWN)
    ]
    found += [Error(text, id="sendonce.E002") for text in _wrong_values(given)]
    return found


def _wrong_values(given: dict[str, Any]) -> list[str]:
    conf = Conf(**{k: v for k, v in given.items() if k in KNOWN})
    wrong = []
    for key in ("LANES", "LOT", "BUILD_CHUNK"):
        value = getattr(conf, key)
        if not isinstance(value, int) or value < 1:
            wrong.append(f"SENDONCE[{key!r}] must be a whole number above 0, not {value!r}.")
    for key in ("LEASE", "LEASE_MARGIN", "POLL", "GRACE", "ANSWER_TIMEOUT", "HANDOVER_FRESHNESS"):
        value = getattr(conf, key)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            wrong.append(f"SENDONCE[{key!r}] must be seconds above 0, not {value!r}.")
    if not wrong and conf.LEASE_MARGIN * 2 > conf.LEASE:
        wrong.append("SENDONCE['LEASE_MARGIN'] must be at most half of LEASE.")
    if not str(conf.BASE_URL).startswith(("http://", "https://")) or conf.BASE_URL.endswith("/"):
        wrong.append("SENDONCE['BASE_URL'] must be an http(s) URL without a trailing slash.")
    for alias, transport in dict(conf.TRANSPORTS).items():
        if not isinstance(transport, dict) or not isinstance(transport.get("BACKEND"), str):
            wrong.append(f"SENDONCE['TRANSPORTS'][{alias!r}] must be a dict with a BACKEND path.")
    return wrong


@register()
def check_database(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The apps live in the default database, and it is PostgreSQL."""
    found: list[CheckMessage] = []
    for label in LABELS:
        if not apps.is_installed(label.removeprefix("sendonce_")):
            continue
        for model in apps.get_app_config(label).get_models():
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
        module = import_module(name)
        if not (Path(str(module.__file__)).parent / "apps.py").exists() or (
            apps.is_installed(name) and apps.get_app_config(label).name != name
        ):
            found.append(
                Error(
                    f"The package {name!r} imported from {module.__file__} is not Sendonce's.",
                    hint="Rename the package that shadows it, or move it behind on sys.path.",
                    id="sendonce.E004",
                )
            )
    return found


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
