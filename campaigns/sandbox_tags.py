"""Everything a merge template may use: ``{% if %}`` and the filters below, nothing else.

Each filter answers with no more than a small multiple of what it was given, whatever its
arguments: a filter such as ``ljust`` turns ten characters of template into 400 MB.
"""

from __future__ import annotations

import re
from datetime import date as date_type
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.template import Library
from django.template import defaultfilters as django_filters
from django.template.defaulttags import do_if
from django.utils import translation
from django.utils.dateformat import format as format_date
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register = Library()
register.tag("if", do_if)

#: Digits before the point, beyond which a number is printed as it is: formatting could make it
#: arbitrarily long.
MAX_MAGNITUDE = 30
MAX_DECIMALS = 15
MAX_DATE_FORMAT = 60
DEFAULT_DATE_FORMAT = "j F Y"

#: What a filter's step costs with an empty value, and for each character of its argument, in
#: units of a character of its value: about a quarter of a microsecond for ``title``, the slowest.
WORK = {"date": (100, 25), "floatformat": (60, 1)}
DEFAULT_WORK = (10, 1)


def work_on(value: Any, most: int) -> int:
    """What reading a value to its end costs, in units of a character of text.

    Looks into lists and dicts, counting no further than what first exceeds ``most``.
    """
    if isinstance(value, str):
        return len(value)
    if type(value) is int:
        return value.bit_length() >> 3
    if not isinstance(value, (list, dict)):
        return 0
    work = 0
    inner: list[Any] = [value]
    while inner and work <= most:
        value = inner.pop()
        if isinstance(value, dict):
            work += 4 * len(value)
            inner.extend(dict.values(value))
        elif isinstance(value, list):
            work += 4 * len(value)
            inner.extend(value)
        elif isinstance(value, str):
            work += len(value)
        elif type(value) is int:
            work += value.bit_length() >> 3
    return work


def text_of(value: Any) -> str:
    """A value as people read it; the same in every process, whatever its locale.

    ``None`` and dicts are nothing, a list is its elements with commas, a date is ISO 8601.
    """
    if type(value) is str or isinstance(value, SafeString):
        return value
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value if not isinstance(item, list))
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes")
    if isinstance(value, date_type):
        return value.isoformat()
    return str(value)


@register.filter
def default(value: Any, arg: Any) -> Any:
    """``arg`` when the value is missing, empty, zero or false."""
    return value or arg


@register.filter
def default_if_none(value: Any, arg: Any) -> Any:
    """``arg`` when the value is null."""
    return arg if value is None else value


@register.filter
def upper(value: Any) -> str:
    return text_of(value).upper()


@register.filter
def lower(value: Any) -> str:
    return text_of(value).lower()


@register.filter
def title(value: Any) -> str:
    """Each word with a capital, and no capital after an apostrophe (``Don't``)."""
    return re.sub(r"[^\W_]+(?:['’][^\W_]+)*", lambda m: capfirst(m[0].lower()), text_of(value))


@register.filter
def capfirst(value: Any) -> str:
    text = text_of(value)
    return text[:1].upper() + text[1:]


@register.filter
def truncatechars(value: Any, arg: Any) -> str:
    """At most ``arg`` characters, the last one an ellipsis if something was cut."""
    text = text_of(value)
    limit = _whole(arg)
    if limit is None or limit < 1 or len(text) <= limit:
        return text
    return text[: limit - 1].rstrip() + "…"


@register.filter
def date(value: Any, arg: Any = DEFAULT_DATE_FORMAT) -> str:
    """A date, a time or an ISO 8601 string in Django's date format; anything else is empty."""
    moment = _moment(value)
    if moment is None or len(text_of(arg)) > MAX_DATE_FORMAT:
        return ""
    with translation.override(settings.LANGUAGE_CODE):
        try:
            return format_date(moment, text_of(arg))
        except (AttributeError, TypeError, ValueError):
            # A date has no hours: "H:i" of one says nothing rather than failing the message.
            return ""


@register.filter
def floatformat(value: Any, arg: Any = -1) -> str:
    """A number with ``arg`` decimals (-15 to 15; negative: only if there are any)."""
    digits = _whole(arg)
    try:
        number = Decimal(text_of(value))
    except InvalidOperation:
        return ""
    if not number.is_finite():
        return ""
    if digits is None or abs(digits) > MAX_DECIMALS or number.adjusted() > MAX_MAGNITUDE:
        return text_of(value)
    if number.adjusted() < -MAX_MAGNITUDE:
        number = Decimal(0)
    with translation.override(settings.LANGUAGE_CODE):
        return str(django_filters.floatformat(number.normalize() + 0, digits))


@register.filter
def yesno(value: Any, arg: Any = "yes,no") -> str:
    """``"yes,no,maybe"``: the word for true, false and null."""
    words = text_of(arg).split(",")
    if len(words) < 2:
        return text_of(value)
    if value is None:
        return words[2] if len(words) > 2 else words[1]
    return words[0] if value else words[1]


@register.filter(needs_autoescape=True)
def linebreaksbr(value: Any, autoescape: bool = True) -> str:
    """Line ends as ``<br>`` in HTML; text keeps its line ends."""
    text = text_of(value)
    if not autoescape:
        return text
    escaped = conditional_escape(text)
    return mark_safe("<br>".join(re.split(r"\r\n|\r|\n", escaped)))


@register.filter
def escape(value: Any) -> str:
    """HTML escaping, once: what is escaped already stays as it is."""
    return conditional_escape(text_of(value))


@register.filter
def urlencode(value: Any) -> str:
    """Percent-encoding of everything a part of a URL can't hold."""
    return quote(text_of(value), safe="")


def _whole(value: Any) -> int | None:
    try:
        return int(text_of(value))
    except ValueError:
        return None


def _moment(value: Any) -> date_type | None:
    if isinstance(value, date_type):
        return value
    if not isinstance(value, str):
        return None
    for parse in (date_type.fromisoformat, datetime.fromisoformat):
        try:
            return parse(value)
        except ValueError:
            continue
    return None
