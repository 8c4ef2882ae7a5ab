"""What whoever writes a campaign may use: merge fields, filters, images. As plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from subscribers.models import AttributeDefinition

from .images import Snippet, latest, public_path, snippets
from .models import Image

#: Attributes and images that the page lists.
SHOWN_FIELDS = 100
SHOWN_IMAGES = 12

Kind = AttributeDefinition.Kind


@dataclass(frozen=True, slots=True)
class MergeField:
    """A field, and the ``tag`` that prints it. ``about``: what it is, and its choices."""

    key: str
    about: str
    tag: str


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of the sandbox: what it does, and an example."""

    name: str
    about: str
    example: str


@dataclass(frozen=True, slots=True)
class Shown:
    """An image with its path on this site and what is written to show it; without either where
    the site has no address for it."""

    image: Image
    path: str
    snippets: list[Snippet]


SYSTEM_FIELDS = (
    MergeField("email", "their address", "{{ email }}"),
    MergeField("unsubscribe_url", "where they leave", "{{ unsubscribe_url }}"),
    MergeField("preferences_url", "where they choose what they get", "{{ preferences_url }}"),
    MergeField("web_url", "this message in the browser", "{{ web_url }}"),
    MergeField("account.name", "the account's name", "{{ account.name }}"),
    MergeField(
        "account.postal_address",
        "the account's postal address",
        "{{ account.postal_address|linebreaksbr }}",
    ),
)
FILTERS = (
    Filter("default", "when there is nothing", '{{ first_name|default:"friend" }}'),
    Filter("default_if_none", "when it is null", '{{ points|default_if_none:"none yet" }}'),
    Filter("date", "a date as you write it", '{{ birthday|date:"j F Y" }}'),
    Filter("floatformat", "so many decimals", "{{ balance|floatformat:2 }}"),
    Filter("yesno", "words for yes, no and unknown", '{{ member|yesno:"member,guest,guest" }}'),
    Filter("upper", "CAPITALS", "{{ code|upper }}"),
    Filter("lower", "small letters", "{{ code|lower }}"),
    Filter("title", "Each Word With A Capital", "{{ city|title }}"),
    Filter("capfirst", "The first letter a capital", "{{ city|capfirst }}"),
    Filter("truncatechars", "at most so many characters", "{{ note|truncatechars:80 }}"),
    Filter("linebreaksbr", "line ends as <br> in HTML", "{{ note|linebreaksbr }}"),
    Filter("urlencode", "for a part of a link", "{{ code|urlencode }}"),
    Filter("escape", "for HTML; done without it too", "{{ note|escape }}"),
)
#: What can stand between quotation marks in a tag as it is.
_PLAIN = re.compile(r"[^\"\\{}%#]{1,100}")
_CHOICES = 8


def merge_fields(account: Any) -> list[MergeField]:
    """The system's fields, then the attributes that the account has defined, by key."""
    rows = AttributeDefinition.objects.filter(account=account).order_by("key")[:SHOWN_FIELDS]
    return [*map(attribute_field, rows), *SYSTEM_FIELDS]


def more_fields(account: Any) -> int:
    """Attributes of the account beyond those that ``merge_fields`` lists."""
    return max(0, AttributeDefinition.objects.filter(account=account).count() - SHOWN_FIELDS)


def more_images(account: Any) -> int:
    """Images of the account beyond those that ``images`` lists."""
    return max(0, Image.objects.filter(account=account).count() - SHOWN_IMAGES)


def attribute_field(definition: AttributeDefinition) -> MergeField:
    """An attribute with a tag that suits its kind. Pure."""
    key, kind = definition.key, definition.kind
    words = [definition.label] if definition.label and definition.label != key else []
    words.append(str(Kind(kind).label))
    if kind == Kind.CHOICE and definition.choices:
        more = ", ..." if len(definition.choices) > _CHOICES else ""
        words[-1] = f"one of {', '.join(definition.choices[:_CHOICES])}{more}"
    return MergeField(key, ": ".join(words), _tag(definition))


def images(account: Any) -> list[Shown]:
    """The account's newest images."""
    return [
        Shown(image, public_path(image), snippets(image)) for image in latest(account, SHOWN_IMAGES)
    ]


def _tag(definition: AttributeDefinition) -> str:
    key, kind = definition.key, definition.kind
    if kind == Kind.BOOLEAN:
        return f"{{% if {key} %}}...{{% endif %}}"
    if kind == Kind.DATE:
        return f'{{{{ {key}|date:"j F Y" }}}}'
    if kind == Kind.NUMBER:
        return f'{{{{ {key}|default:"0" }}}}'
    first = definition.choices[0] if kind == Kind.CHOICE and definition.choices else ""
    if _PLAIN.fullmatch(first):
        return f'{{{{ {key}|default:"{first}" }}}}'
    if kind == Kind.TEXT and "name" in key.lower():
        return f'{{{{ {key}|default:"friend" }}}}'
    return f"{{{{ {key} }}}}"
