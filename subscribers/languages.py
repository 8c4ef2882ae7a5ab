"""In which language people outside are spoken to: one that we really have the words for.

Django's own catalogues cover a hundred languages, ours some; a page that calls itself German and
is not would be read aloud as nonsense. A host adds a language by a catalogue of its own.
"""

from __future__ import annotations

from gettext import find
from pathlib import Path

import django
from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation.trans_real import all_locale_paths, parse_accept_lang_header

#: The language of the words in the code.
WRITTEN_IN = "en"
#: Whoever has translated our pages has translated this.
_PROBE = "You are unsubscribed"
_DJANGO = Path(django.__file__).parent


def language_of(request: HttpRequest, locale: str = "") -> str:
    """The person's language (``locale``) where we have it, else what their browser asks for."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", ""))
    wanted = [locale, chosen, *(language for language, _ in accepted)]
    return next(filter(None, map(spoken, wanted)), "") or language_for("")


def language_for(locale: str) -> str:
    """The language of what is written to a person of whom no browser is at hand."""
    return spoken(locale) or spoken(settings.LANGUAGE_CODE) or WRITTEN_IN


def spoken(locale: str) -> str:
    """The language of a locale (``fr``, ``pt-BR``, ``pt_BR``) if the site has it and there are
    words of ours in it, else empty."""
    if not locale or not settings.USE_I18N:
        return ""
    try:
        language = translation.get_supported_language_variant(locale.replace("_", "-").lower())
    except LookupError:
        return ""
    if language.partition("-")[0] == WRITTEN_IN:
        return language
    # A look at the files first: only what may have our words is loaded, and it stays in memory.
    names = [translation.to_locale(language)]
    places = [place for place in all_locale_paths() if _DJANGO not in Path(place).parents]
    if not any(find("django", place, names) for place in places):
        return ""
    with translation.override(language):
        return language if gettext(_PROBE) != _PROBE else ""
