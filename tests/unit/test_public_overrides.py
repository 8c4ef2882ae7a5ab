"""A host makes the public pages its own: by templates and static files of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client, override_settings

NAME = "sendonce_subscribers"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NAME).mkdir()
    return tmp_path


def templates(folder: Path) -> Any:
    changed = deepcopy(settings.TEMPLATES)
    changed[0]["DIRS"] = [folder]
    return override_settings(TEMPLATES=changed)


def page() -> str:
    return Client().get(f"/u/{'x' * 32}").content.decode()


def test_a_whole_page(folder: Path) -> None:
    (folder / NAME / "link_unknown.html").write_text("<!doctype html><title>Lost?</title>")
    with templates(folder):
        assert page() == "<!doctype html><title>Lost?</title>"


def test_the_frame_of_all_pages(folder: Path) -> None:
    (folder / NAME / "base.html").write_text(
        f"{{% extends '{NAME}/base.html' %}}{{% load static %}}"
        '{% block sender %}<img src="{% static \'logo.svg\' %}" alt="Acme">{% endblock %}'
        '{% block head %}<link rel="icon" href="{% static \'icon.svg\' %}">{% endblock %}'
        '{% block footer %}<footer><a href="/imprint">Imprint</a></footer>{% endblock %}'
    )
    with templates(folder):
        shown = page()
    assert '<img src="/static/logo.svg" alt="Acme">' in shown
    assert '<link rel="icon" href="/static/icon.svg">\n</head>' in shown
    assert '<a href="/imprint">' in shown
    assert "This link is not valid" in shown


@pytest.fixture
def static_folder(folder: Path) -> Iterator[Path]:
    forget: Any = finders.get_finder
    forget.cache_clear()
    with override_settings(STATICFILES_DIRS=[folder]):
        yield folder
    forget.cache_clear()


def test_the_stylesheet(static_folder: Path) -> None:
    own = static_folder / NAME / "page.css"
    own.write_text(":root { --accent: #085 }")
    assert finders.find(f"{NAME}/page.css") == str(own)


@override_settings(STATIC_URL="https://cdn.example.org/s/")
def test_what_a_host_adds_may_be_shown() -> None:
    policy = Client().get(f"/u/{'x' * 32}").headers["Content-Security-Policy"]
    for kind in ("style", "img", "font"):
        assert f"{kind}-src 'self' https://cdn.example.org" in policy
    assert policy.startswith("default-src 'none';")
