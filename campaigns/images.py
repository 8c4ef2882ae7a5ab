"""Uploaded pictures: what is taken in, how it is stored, and its public address.

A picture is what its bytes say, not what its name says. It is stored as it came but for what
cameras and editors wrote into it, under a name of our own, in Django's default storage.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from django.core.files.base import ContentFile
from django.db import OperationalError, connection, transaction
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape

from subscribers.conf import conf

from .errors import CampaignError, GateBusy
from .gate import is_lock_timeout
from .models import Campaign, Image
from .picture_metadata import ORIENTATION, Unreadable, without_metadata

log = logging.getLogger(__name__)

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
_KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Wider than a message usually is, a picture is shown as wide as this. Pixels.
SHOWN_WIDTH = 600
#: Campaigns that a refusal names.
NAMED = 10


class ImageRefused(ValueError):
    """The file can't be taken in; the message says why, to whoever uploaded it."""


class NotStored(Exception):
    """The storage did not take the file, and nothing was saved; the message says why."""

    def __init__(self, error: Exception) -> None:
        # What other errors say may be of the storage's insides; the log has it.
        reason = error.strerror if isinstance(error, OSError) else None
        super().__init__(
            f"The file could not be stored{f': {reason}' if reason else ''}. Nothing was saved. "
            "Try again; if it stays so, tell whoever runs this site."
        )


class ImageInUse(CampaignError):
    """Campaigns that are about to leave, or leaving, show the picture."""

    def __init__(self, names: list[str]) -> None:
        named = ", ".join(f"\u201c{name}\u201d" for name in names[:NAMED])
        if len(names) > NAMED:
            named += f" and {len(names) - NAMED:,} more"
        super().__init__(
            f"cannot delete: {named} show it and have yet to be sent; withdraw or cancel them first"
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """A file that was looked into, without its metadata. Pixels, as it is shown."""

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
    """Look into a file: its kind, its size, and whether its first frame can be decoded once its
    metadata is out of it.

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
            turned = _orientation(picture)
        # Phones make JPEG files with several pictures in them; the first is what everybody shows.
        kind = "JPEG" if kind == "MPO" else kind
        if kind in KINDS:
            data = without_metadata(data, kind, turned)
            with Pillow.open(BytesIO(data), formats=[kind]) as picture:
                picture.load()
    except ImageRefused:
        raise
    except Unreadable as error:
        raise ImageRefused(
            "This file is not built as it should be. Save the picture anew, in another program. "
            f"Allowed: {LIMITS}"
        ) from error
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise ImageRefused(f"This picture is too large. Allowed: {LIMITS}") from error
    except Exception as error:
        # Pillow answers damaged files with many kinds of exception.
        raise ImageRefused(f"This is no picture that can be read. Allowed: {LIMITS}") from error
    if kind not in KINDS:
        raise ImageRefused(f"This is no picture that can be read. Allowed: {LIMITS}")
    if turned > 4:
        # Of 5 to 8, programs that show it swap rows and columns.
        width, height = height, width
    return Picture(data, KINDS[kind][0], width, height)


def _orientation(picture: Any) -> int:
    """Which side of a picture of Pillow's is up, as its Exif numbers it; 1 where that does not say.

    Pillow's ``getexif`` asks XMP and PNG's texts, too, which browsers and mail programs don't: by
    them a picture would be turned that nobody has seen turned.
    """
    from PIL import Image as Pillow

    try:
        if "exif" not in picture.info and picture.format == "PNG":
            picture.load()  # it may stand behind the picture
        exif = Pillow.Exif()
        exif.load(picture.info.get("exif", b""))
        found = exif.get(ORIENTATION, 1)
    except Exception:
        # What is in it besides may be damaged in many ways, and is not kept.
        return 1
    return found if found in range(1, 9) else 1


@contextmanager
def storing(image: Image, picture: Picture) -> Iterator[None]:
    """A context: a new image with its file is saved, both or none of them.

    What its body raises takes the file away again; a transaction that comes to nothing later
    leaves one that nothing refers to. Raises ``NotStored``.
    """
    image.content_type, image.size = picture.content_type, len(picture.data)
    image.width, image.height = picture.width, picture.height
    image.sha256 = hashlib.sha256(picture.data).hexdigest()
    storage = image.file.storage
    # Where it will be, should saving it end half-way: the key is in no other file's name.
    name = image._meta.get_field("file").generate_filename(image, file_name(image))
    try:
        try:
            image.file.save(file_name(image), ContentFile(picture.data), save=False)
            name = str(image.file.name)
        except Exception as error:
            # Full disks are OSErrors; a storage over a network has errors of its own.
            log.exception("a picture could not be stored as %s", name)
            raise NotStored(error) from error
        with transaction.atomic():
            image.save(force_insert=True)
            yield
    except BaseException:
        with suppress(Exception):
            storage.delete(name)
        raise


def store(image: Image, picture: Picture) -> None:
    """Save a new image with its file. Raises ``NotStored``."""
    with storing(image, picture):
        pass


def leaving_with(image: Image) -> list[str]:
    """The names of campaigns that show it and are approved or being sent."""
    status = Campaign.Status
    rows = Campaign.objects.filter(
        status__in=(status.APPROVED, status.SENDING, status.PAUSED),
        content__html__contains=str(image.key),
    )
    return list(rows.order_by("pk").values_list("name", flat=True))


def hold(html: str) -> list[str]:
    """Keep the pictures that a message's HTML shows from being deleted, until the caller's
    transaction ends; whoever deletes one meanwhile waits, and then looks at what was decided.

    Returns the addresses in it of pictures of this site that are no more, each once. Raises
    ``GateBusy`` when somebody who deletes one is waited for too long.
    """
    keys = {uuid.UUID(found) for found in _KEY.findall(html)}
    if not keys:
        return []
    table = connection.ops.quote_name(Image._meta.db_table)
    with connection.cursor() as cursor:
        try:
            # Shared: others approve with the same picture, and its words may be edited.
            cursor.execute(
                f"SELECT key FROM {table} WHERE key = ANY(%s) ORDER BY id FOR KEY SHARE",
                [list(keys)],
            )
        except OperationalError as error:
            if is_lock_timeout(error):
                raise GateBusy from error
            raise
        there = {key for (key,) in cursor.fetchall()}
    nil = Image(key=uuid.UUID(int=0))
    before = re.escape(public_url(nil).partition(str(nil.key))[0])
    ours = re.finditer(rf"{before}({_KEY.pattern})\.\w+", html) if before else ()
    return list(dict.fromkeys(found[0] for found in ours if uuid.UUID(found[1]) not in there))


def remove(image: Image) -> None:
    """Delete an image, and its file once that is committed. Raises ``ImageInUse``."""
    storage, name = image.file.storage, image.file.name
    with transaction.atomic():
        # Whoever approves a campaign that shows it holds it, until that is committed.
        Image.objects.select_for_update().filter(pk=image.pk).first()
        if used := leaving_with(image):
            raise ImageInUse(used)
        image.delete()
        if name:
            # Robust: the row is gone, and a storage that is down does not bring it back.
            transaction.on_commit(lambda: storage.delete(name), robust=True)


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
