"""Uploading pictures in the admin."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DataError
from django.test import Client

from campaigns import images
from campaigns.models import Image
from subscribers.models import AuditEvent
from tests.factories import AccountFactory, ImageFactory

from . import admin_pages
from .campaign_pages import boss as boss  # a fixture
from .pictures import png

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def url(page: str, *args: Any) -> str:
    return admin_pages.url(Image, page, *args)


def upload(client: Client, name: str, data: bytes, **fields: Any) -> Any:
    account = fields.pop("account", None) or AccountFactory.create()
    picture = SimpleUploadedFile(name, data, content_type="text/html")
    form = {"account": account.pk, "name": "", "alt": "", "picture": picture, **fields}
    return client.post(url("add"), form)


def test_a_picture_is_what_its_bytes_say(boss: Client, storage: Path) -> None:
    answer = upload(boss, "../../evil.html", png(40, 30), alt=" A\n picture ")
    assert answer.status_code == 302
    image = Image.objects.get()
    assert (image.content_type, image.width, image.height) == ("image/png", 40, 30)
    assert (image.name, image.alt) == ("evil.html", "A picture")
    assert image.created_by is not None
    (file,) = [path for path in storage.rglob("*") if path.is_file()]
    assert file.name == f"{image.key}.png"
    assert uuid.UUID(file.stem) == image.key
    assert AuditEvent.objects.get().verb == "image.upload"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.png", b"<svg/>", "no picture"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no picture"),
        ("a.png", png(5_001, 5_000, rows=1), "too large"),
        ("a.png", png(4, 4) + b"\0" * images.MAX_BYTES, "too large"),
        ("a.png", b"", "empty"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    boss: Client, storage: Path, name: str, data: bytes, words: str
) -> None:
    answer = upload(boss, name, data)
    assert answer.status_code == 200
    assert words in answer.context["adminform"].form.errors["picture"].as_text()
    assert not Image.objects.exists()
    assert not storage.exists()


def full(storage: Any, name: str, content: Any, **_: Any) -> str:
    """A disk that is full when half of the file is on it."""
    path = Path(storage.path(name))
    path.parent.mkdir(parents=True)
    path.write_bytes(content.read(20))
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def down(*_: Any, **__: Any) -> str:
    raise RuntimeError("s3.internal.example.org: secret-bucket is not to be reached")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [(full, "stored: No space left on device. Nothing was saved."), (down, "stored. Nothing")],
)
def test_a_storage_that_does_not_take_it_is_said_beside_the_field(
    boss: Client, storage: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any, words: str
) -> None:
    monkeypatch.setattr(FileSystemStorage, "_save", trouble)
    answer = upload(boss, "a.png", png(4, 3), alt="As it was typed")
    assert answer.status_code == 200
    form = answer.context["adminform"].form
    assert words in str(form.errors["picture"])
    assert "secret" not in answer.content.decode()
    assert form["alt"].value() == "As it was typed"
    assert not Image.objects.exists()
    assert not AuditEvent.objects.exists()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_no_file_stays_of_a_row_that_was_not_written(
    boss: Client, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DataError("the audit trail is not to be written")

    monkeypatch.setattr("campaigns.admin.images.record", broken)
    with pytest.raises(DataError):
        upload(boss, "a.png", png(4, 3))
    assert not Image.objects.exists()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_its_words_may_change_and_its_file_may_not(boss: Client) -> None:
    upload(boss, "a.png", png(4, 3))
    before = Image.objects.get()
    page = boss.get(url("change", before.pk)).content.decode()
    assert images.public_url(before) in page
    assert 'type="file"' not in page
    form = {"name": "New", "alt": "Words", "picture": SimpleUploadedFile("b.png", png(9, 9))}
    assert admin_pages.change(boss, before, form).status_code == 302
    after = Image.objects.get()
    assert (after.name, after.alt) == ("New", "Words")
    assert (after.sha256, after.file, after.width) == (before.sha256, before.file, 4)
    answer = admin_pages.change(boss, before, {"name": "a\nb", "alt": ""})
    assert "name" in answer.context["adminform"].form.errors


def test_deleting_says_what_it_does(boss: Client, django_capture_on_commit_callbacks: Any) -> None:
    upload(boss, "a.png", png(4, 3))
    image = Image.objects.get()
    page = boss.get(url("delete", image.pk)).content.decode()
    assert "people who open that mail see nothing in its place" in page
    with django_capture_on_commit_callbacks(execute=True):
        assert boss.post(url("delete", image.pk), {"post": "yes"}).status_code == 302
    assert not Image.objects.exists()
    assert not default_storage.exists(str(image.file.name))
    assert set(AuditEvent.objects.values_list("verb", flat=True)) == {
        "image.upload",
        "image.delete",
    }


def test_without_the_library_the_page_says_what_to_install(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("campaigns.images.can_read", lambda: False)
    monkeypatch.setattr("campaigns.admin.images.can_read", lambda: False)
    account = AccountFactory.create()
    page = boss.get(url("add"), {"account": account.pk}).content.decode()
    assert "django-sendonce[images]" in page
    answer = upload(boss, "a.png", png(4, 3))
    assert "not installed" in answer.context["adminform"].form.errors["picture"].as_text()


def test_the_list_asks_the_same_of_many(boss: Client, django_assert_max_num_queries: Any) -> None:
    ImageFactory.create_batch(30)
    with django_assert_max_num_queries(9):
        assert boss.get(url("changelist")).status_code == 200
