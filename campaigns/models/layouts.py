"""What an account's campaigns share: frames around their bodies, and images."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from subscribers.models import Account


class Layout(models.Model):
    """A frame around a body, of an account: a document with blocks that a campaign fills.

    ``{% block content %}{% endblock %}`` takes the body; other blocks hold what stands there where
    a campaign says nothing else. HTML frames take HTML and Markdown, MJML and text their own.
    """

    class BodyFormat(models.TextChoices):
        HTML = "html", "HTML (for HTML and Markdown)"
        MJML = "mjml", "MJML"
        TEXT = "text", "plain text"

    account = models.ForeignKey(Account, models.CASCADE, related_name="layouts")
    name = models.CharField(max_length=200)
    body_format = models.CharField(
        max_length=20, choices=BodyFormat.choices, default=BodyFormat.HTML
    )
    body = models.TextField()
    #: Compare-and-set token of edits: two editors at once, the later is told.
    version = models.PositiveIntegerField(default=1, editable=False)
    #: Who made it or changed what a message shows of it last: a part of every message is theirs.
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    created = models.DateTimeField(default=timezone.now, editable=False)
    changed = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["account", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "name"], name="sendonce_layout_name"),
            models.CheckConstraint(
                condition=Q(body_format__in=["html", "mjml", "text"]),
                name="sendonce_layout_format",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Image(models.Model):
    """An uploaded picture, in Django's default storage; messages show it by a public URL."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="images")
    #: Names it in its public URL: not to be guessed, and never another picture's.
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    file = models.FileField(upload_to="sendonce/images/%Y/%m", max_length=300)
    name = models.CharField(max_length=200, help_text="As the list of images shows it.")
    alt = models.CharField(
        "alternative text",
        max_length=500,
        blank=True,
        help_text="What people read who don't see it. Blank: it only decorates.",
    )
    content_type = models.CharField(max_length=100, editable=False)
    width = models.PositiveIntegerField(default=0, editable=False, help_text="Pixels.")
    height = models.PositiveIntegerField(default=0, editable=False, help_text="Pixels.")
    size = models.PositiveBigIntegerField(default=0, editable=False, help_text="Bytes.")
    sha256 = models.CharField(max_length=64, blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    created = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return self.name
