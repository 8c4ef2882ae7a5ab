"""Uploaded pictures: what is taken in, how it is stored, and its public address.

A picture is what its bytes say, not what its name says. It is stored as it came, under a name of
our own, in Django's default storage.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from django.core.files.base import ContentFile
from django.db import transaction
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape

from subscribers.conf import conf

from .errors import CampaignError
from .models import Campaign, Image

#: Bytes. Mail programs load a picture over a phone's line.
MAX_BYTES = 5 * 1024 * 1024
#: Pixels, all together and on one side: a file of 5 MB can be a picture of 30 GB.
MAX_PIXELS = 25_000_000
MAX_SIDE = 10_000
#: The kinds that mail programs show, as Pillow names them: content type and file extension. No
#: SVG: it is a program, and mail programs don't show it.
KINDS = {
    "PNG": ("image/png", "png"),
    "JPEG": ("image/jpeg", "jpg"),
    "GIF": ("image/gif", "gif"),
    "WEBP": ("image/webp", "webp"),
}
EXTENSIONS = dict(KINDS.values())
LIMITS = (
    f"PNG, JPEG, GIF or WebP, up to {MAX_BYTES // 1024 // 1024} MB, {MAX_PIXELS // 1_000_000} "
    f"million pixels and {MAX_SIDE:,} pixels on a side."
)
#: Wider than a message usually is, a picture is shown as wide as this. Pixels.
SHOWN_WIDTH = 600


class ImageRefused(ValueError):
    """The file can't be taken in; the message says why, to whoever uploaded it."""


class ImageInUse(CampaignError):
    """Campaigns that are about to leave, or leaving, show the picture."""

    def __init__(self, names: list[str]) -> None:
        named = ", ".join(f"\u201c{name}\u201d" for name in names)
        super().__init__(
            f"cannot delete: {named} show it and have yet to be sent; withdraw or cancel them first"
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """A file that was looked into. Pixels."""

    data: bytes
    content_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to write into a body of this format, to show a picture."""

    label: str
    source: str


def can_read() -> bool:
    """Is Pillow installed, without which no picture is taken in?"""
    try:
        return find_spec("PIL") is not None
    except ValueError:
        return False


def read_picture(data: bytes) -> Picture:
    """Look into a file: its kind, its size, and whether its first frame can be decoded.

    The size is looked at before anything is decoded. Raises ``ImageRefused``; needs Pillow.
    """
    from PIL import Image as Pillow

    if len(data) > MAX_BYTES:
        raise ImageRefused(f"This file is too large: {_megabytes(len(data))}. Allowed: {LIMITS}")
    try:
        with Pillow.open(BytesIO(data), formats=list(KINDS)) as picture:
            kind, (width, height) = picture.format or "", picture.size
            if not 0 < max(width, height) <= MAX_SIDE or width * height > MAX_PIXELS:
                raise ImageRefused(
                    f"This picture is too large: {width} x {height} pixels. Allowed: {LIMITS}"
                )
            picture.load()
    except ImageRefused:
        raise
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise ImageRefused(f"This picture is too large. Allowed: {LIMITS}") from error
    except Exception as error:
        # Pillow answers damaged files with many kinds of exception.
        raise ImageRefused(f"This is no picture that can be read. Allowed: {LIMITS}") from error
    # Phones make JPEG files with several pictures in them; the first is what everybody shows.
    kind = "JPEG" if kind == "MPO" else kind
    if kind not in KINDS:
        raise ImageRefused(f"This is no picture that can be read. Allowed: {LIMITS}")
    return Picture(data, KINDS[kind][0], width, height)


def store(image: Image, picture: Picture) -> None:
    """Save a new image with its file. What of the transaction comes to nothing leaves a file
    behind that nothing refers to."""
    image.content_type, image.size = picture.content_type, len(picture.data)
    image.width, image.height = picture.width, picture.height
    image.sha256 = hashlib.sha256(picture.data).hexdigest()
    image.file.save(file_name(image), ContentFile(picture.data), save=False)
    image.save(force_insert=True)


def leaving_with(image: Image) -> list[str]:
    """The names of campaigns that show it and are approved or being sent."""
    status = Campaign.Status
    rows = Campaign.objects.filter(
        status__in=(status.APPROVED, status.SENDING, status.PAUSED),
        content__html__contains=str(image.key),
    )
    return list(rows.order_by("pk").values_list("name", flat=True)[:10])


def remove(image: Image) -> None:
    """Delete an image, and its file once that is committed. Raises ``ImageInUse``."""
    storage, name = image.file.storage, image.file.name
    with transaction.atomic():
        if used := leaving_with(image):
            raise ImageInUse(used)
        image.delete()
        if name:
            transaction.on_commit(lambda: storage.delete(name))


def file_name(image: Image) -> str:
    """As its public URL and its storage name it: never what it was uploaded as."""
    return f"{image.key}.{EXTENSIONS.get(image.content_type, 'bin')}"


def public_url(image: Image) -> str:
    """The absolute URL that messages show it by; "" where the site has not included
    ``campaigns.urls``."""
    path = public_path(image)
    return conf.BASE_URL + path if path else ""


def public_path(image: Image) -> str:
    """The same without the host, for pages of this site: their policy lets no other host's
    pictures in, and it may be reached by another name."""
    key, _, extension = file_name(image).rpartition(".")
    try:
        return reverse("sendonce_campaigns:image", args=[key, extension])
    except NoReverseMatch:
        return ""


def snippets(image: Image) -> list[Snippet]:
    """Ready to be copied into a body, one for each format. Empty without a public URL."""
    url = public_url(image)
    if not url:
        return []
    width = min(image.width, SHOWN_WIDTH)
    alt = escape(image.alt)
    words = image.alt.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return [
        Snippet(
            "HTML",
            f'<img src="{url}" alt="{alt}" width="{width}" '
            'style="display:block;max-width:100%;height:auto">',
        ),
        Snippet("Markdown", f"![{' '.join(words.split())}]({url})"),
        Snippet("MJML", f'<mj-image src="{url}" alt="{alt}" width="{width}px" />'),
    ]


def latest(account: Any, number: int) -> list[Image]:
    """The account's newest images."""
    return list(Image.objects.filter(account=account).order_by("-pk")[:number])


def _megabytes(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MB"
