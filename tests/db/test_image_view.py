"""Pictures as mail programs get them: public, cached for long, never anything but a picture."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage, default_storage, storages
from django.test import Client
from django.urls import reverse

from campaigns.images import public_url, read_picture, remove, snippets, store
from campaigns.models import Image
from tests.factories import AccountFactory

from .pictures import gif, png

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def stored(data: bytes = b"") -> Image:
    image = Image(account=AccountFactory.create(), name="x")
    store(image, read_picture(data or png(40, 30)))
    return image


def path_of(image: Image, extension: str = "png") -> str:
    return reverse("sendonce_campaigns:image", args=[image.key, extension])


def test_a_picture_is_served_with_all_that_guards_it(client: Client) -> None:
    data = png(40, 30)
    image = stored(data)
    assert (image.width, image.height, image.size) == (40, 30, len(data))
    assert image.sha256 == hashlib.sha256(data).hexdigest()
    answer: Any = client.get(path_of(image))
    assert b"".join(answer.streaming_content) == data
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["Content-Length"] == str(len(data))
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["ETag"] == f'"{image.sha256}"'
    assert "Cookie" not in answer.headers.get("Vary", "")
    assert not answer.cookies


def test_head_and_conditional_requests_read_no_file(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = stored()
    full: Any = client.get(path_of(image))
    assert b"".join(full.streaming_content)
    default_storage.delete(str(image.file.name))
    head = client.head(path_of(image))
    assert (head.status_code, head.content) == (200, b"")
    for name in ("Content-Type", "Content-Length", "ETag", "Cache-Control", "Last-Modified"):
        assert head.headers[name] == full.headers[name]
    for given in (
        {"If-None-Match": full.headers["ETag"]},
        {"If-None-Match": "*"},
        {"If-Modified-Since": full.headers["Last-Modified"]},
    ):
        answer = client.get(path_of(image), headers=given)
        assert (answer.status_code, answer.content) == (304, b""), given
        assert answer.headers["ETag"] == full.headers["ETag"]
        assert answer.headers["Cache-Control"] == full.headers["Cache-Control"]
        assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert client.get(path_of(image), headers={"If-None-Match": '"x"'}).status_code == 404


def test_what_there_is_not_is_not_found(client: Client) -> None:
    image = stored()
    gone = path_of(image).replace(str(image.key), str(uuid.uuid4()))
    for path in (gone, path_of(image, "jpg"), path_of(image, "html"), "/images/x.png"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert "immutable" not in answer.headers.get("Cache-Control", "")
    for method in (client.post, client.put, client.delete):
        assert method(path_of(image)).status_code == 405


def test_any_storage_will_do(client: Client, settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    assert isinstance(storages["default"], InMemoryStorage)
    data = gif(3, 2)
    image = stored(data)
    answer: Any = client.get(path_of(image, "gif"))
    assert b"".join(answer.streaming_content) == data


def test_the_address_is_absolute_and_of_the_sites_public_url(settings: Any) -> None:
    settings.SENDONCE = {**settings.SENDONCE, "BASE_URL": "https://news.example.org"}
    image = stored()
    assert public_url(image) == f"https://news.example.org/images/{image.key}.png"


@pytest.mark.urls("subscribers.urls")
def test_a_site_without_the_view_has_no_address() -> None:
    image = stored()
    assert public_url(image) == ""
    assert snippets(image) == []


def test_the_file_goes_with_its_image(django_capture_on_commit_callbacks: Any) -> None:
    image = stored()
    name = str(image.file.name)
    assert name.endswith(f"/{image.key}.png")
    with django_capture_on_commit_callbacks(execute=True):
        remove(image)
        assert default_storage.exists(name)
    assert not default_storage.exists(name)
    assert not Image.objects.exists()
