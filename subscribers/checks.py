"""System checks of the settings; ``sendonce.E0xx`` errors, ``sendonce.W0xx`` warnings.

Retired numbers are not used again. E001 unknown key, E002 wrong value, E003 another
database, E004 shadowed package; W001 no unsubscribe page, W004 one that is redirected,
W005 a proxy that hides who signs up.
``sending.checks`` looks into the transports: E005 an unusable transport, E006 Amazon SES with its
library's own retries, W002 dead links, W003 an account whose transport is not configured; E001
and E002 there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.urls import NoReverseMatch, reverse
from django.utils import translation

from .conf import KNOWN, conf
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
        path = reverse("sendonce:link", args=["x"])
    except NoReverseMatch:
        return [
            Warning(
                "The URLs do not include subscribers.urls: no unsubscribe link can be made.",
                hint='Add path("", include("subscribers.urls")) to the root URLconf.',
                id="sendonce.W001",
            )
        ]
    return [
        Warning(f"A one-click unsubscribe (RFC 8058) {what}", hint=hint, id="sendonce.W004")
        for what, hint in _redirects(path.lstrip("/"))
    ]


@register()
def check_client_address(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Behind a proxy everybody seems to come from one network: soon nobody could sign up."""
    try:
        hidden = bool(settings.SECURE_PROXY_SSL_HEADER) and not conf.CLIENT_ADDRESS_HEADER
    except (ImproperlyConfigured, TypeError):
        return []  # check_settings says what is wrong with it
    if not hidden:
        return []
    return [
        Warning(
            "The site is behind a proxy, and SENDONCE['CLIENT_ADDRESS_HEADER'] is not set: all "
            "sign-ups count as of one network, and the evidence of consent names the proxy.",
            hint="Name the header into which the proxy writes the client's address, as in "
            '"X-Forwarded-For".',
            id="sendonce.W005",
        )
    ]


def _redirects(path: str) -> Iterator[tuple[str, str]]:
    """What would answer a POST to the link with a redirect, which mailbox providers do not
    follow, before our view is asked; and what to do about it. ``path`` has no leading slash."""
    exempt = any(re.search(pattern, path) for pattern in settings.SECURE_REDIRECT_EXEMPT)
    if settings.SECURE_SSL_REDIRECT and not exempt:
        yield (
            "is redirected by SECURE_SSL_REDIRECT wherever a proxy passes it on as http.",
            f'Add r"^{path.removesuffix("x")}" to SECURE_REDIRECT_EXEMPT.',
        )
    if settings.PREPEND_WWW and not _host().startswith("www."):
        yield (
            "is redirected by PREPEND_WWW.",
            'Let SENDONCE["BASE_URL"] begin with https://www. as the pages themselves do.',
        )
    languages = {settings.LANGUAGE_CODE, *[code for code, _ in settings.LANGUAGES][:2]}
    if settings.USE_I18N and len({_path_in(language) for language in languages}) > 1:
        yield (
            "goes to another path in each language, and links in old mail die with a language.",
            "Include subscribers.urls outside i18n_patterns, and under no translated path.",
        )


def _host() -> str:
    try:
        return urlsplit(conf.BASE_URL).hostname or ""
    except (ImproperlyConfigured, ValueError, TypeError, AttributeError):
        return ""  # check_settings says what is wrong with it


def _path_in(language: str) -> str:
    with translation.override(language):
        return reverse("sendonce:link", args=["x"])
