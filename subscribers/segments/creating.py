"""A segment made by its name alone, where somebody names one on the way."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from ..models import Account, Segment

_LONGEST = 90
_TRIES = 100


def create_segment(account: Account, name: str) -> Segment:
    """A new segment of this name; its slug is made from it and differs from all others."""
    stem = slugify(name)[:_LONGEST].strip("-") or "segment"
    for number in range(1, _TRIES):
        slug = stem if number == 1 else f"{stem}-{number}"
        if Segment.objects.filter(account=account, slug=slug).exists():
            continue
        try:
            with transaction.atomic():
                return Segment.objects.create(account=account, name=name, slug=slug)
        except IntegrityError:
            continue  # somebody else took it just now
    raise RuntimeError(f"{_TRIES} segments are named like {stem!r}.")
