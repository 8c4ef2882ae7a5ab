"""Layouts and images."""

# factory-boy marks itself as typed, but neither its declarations nor its re-exports are.
# mypy: allow-untyped-calls, disable-error-code="attr-defined"

from __future__ import annotations

import factory
from factory.django import DjangoModelFactory

from campaigns.models import Image, Layout

from .people import AccountFactory

FRAME = """\
<!doctype html>
<html lang="en"><head><title>{% block title %}News{% endblock %}</title></head><body>
{% block content %}{% endblock %}
<p>{{ account.name }}, {{ account.postal_address }}<br>
<a href="{{ unsubscribe_url }}">Unsubscribe</a></p>
</body></html>
"""


class LayoutFactory(DjangoModelFactory):
    class Meta:
        model = Layout

    account = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Layout {n}")
    body = FRAME


class ImageFactory(DjangoModelFactory):
    """A row alone: there is no file behind it."""

    class Meta:
        model = Image

    account = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Image {n}")
    alt = "A picture"
    file = factory.LazyAttribute(lambda o: f"sendonce/images/{o.key}.png")
    key = factory.Faker("uuid4", cast_to=None)
    content_type = "image/png"
    width = 4
    height = 3
    size = 75
    sha256 = "0" * 64
