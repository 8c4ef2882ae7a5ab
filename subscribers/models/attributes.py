"""What an account knows of its people: the attributes there are, and of which kind."""

from __future__ import annotations

import re
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

from .accounts import Account

#: What a merge field can spell; templates refuse a name that begins with ``_``.
KEY = re.compile(r"\A[^\W\d_]\w{0,99}\Z")
#: Fields that the system fills, and columns of import files that are no attributes.
RESERVED = frozenset(
    {
        "account",
        "consent_source",
        "email",
        "locale",
        "preferences_url",
        "status",
        "suppressed",
        "timezone",
        "unsubscribe_url",
        "web_url",
    }
)


def refuse_reserved(key: str) -> None:
    """Raises ``ValidationError`` for a name that templates or import files use otherwise."""
    if key.lower() in RESERVED:
        raise ValidationError(f"\u201c{key}\u201d is a name of the system's own.")


class AttributeDefinition(models.Model):
    """An attribute that an account's people may have.

    The value in ``Subscriber.attributes`` is of the JSON type of its kind: text and choice a
    string, number a number, date an ISO 8601 string (``2026-11-30``), boolean a boolean.
    """

    class Kind(models.TextChoices):
        TEXT = "text", "text"
        NUMBER = "number", "number"
        DATE = "date", "date"
        BOOLEAN = "boolean", "yes or no"
        CHOICE = "choice", "one of several"

    account = models.ForeignKey(Account, models.CASCADE, related_name="attribute_definitions")
    key = models.CharField(
        max_length=100,
        validators=[
            RegexValidator(KEY, "Letters, digits and _, beginning with a letter."),
            refuse_reserved,
        ],
        help_text="As merge fields spell it: first_name.",
    )
    label = models.CharField(
        max_length=200, blank=True, help_text="As people read it, in a form. Blank: the key."
    )
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.TEXT)
    choices = ArrayField(models.CharField(max_length=200), default=list, blank=True, size=500)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["account", "key"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "key"], name="sendonce_attribute_key"),
        ]

    def __str__(self) -> str:
        return self.label or self.key
