"""As whom a campaign is shown: the first of its audience, or whoever was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from subscribers.addresses import canonical, lower
from subscribers.models import Membership, Subscriber

from .previewing import NOBODY, Reader

#: What asks for nobody in particular.
EMPTY = "nobody"
MOST_FOUND = 10
#: Segments, and members of each, among whom the first of an audience is looked for.
_SEGMENTS, _MEMBERS = 10, 20


@dataclass(frozen=True)
class Chosen:
    """``said`` is what was not as it was asked for; ``others`` fit what was typed, too."""

    reader: Reader
    said: str = ""
    others: tuple[Reader, ...] = ()
    is_first: bool = False


def choose(
    account_id: int,
    *,
    asked: str = "",
    words: str = "",
    may_search: bool = True,
    include: Sequence[int] = (),
    exclude: Sequence[int] = (),
) -> Chosen:
    """Whom to show it as: ``asked`` is a subscriber's id or ``nobody``, ``words`` the beginning
    of an address; with neither, the first of those in the segments ``include`` and in none of
    ``exclude``. Who may not see people (``may_search``) is shown it as nobody's.

    Never anybody of another account, whose ids are answered as those that don't exist.
    """
    if asked == EMPTY or not may_search:
        return Chosen(NOBODY)
    first = None
    if asked.isascii() and asked.isdigit() and len(asked) <= 18:
        person = Subscriber.objects.filter(account=account_id, pk=int(asked)).first()
        if person is not None:
            return Chosen(_reader(person))
        first = "There is no such subscriber."
    elif words.strip():
        found = beginning_with(account_id, words)
        if found:
            return Chosen(found[0], others=tuple(found[1:]))
        first = f"No address begins with {words.strip()[:100]}."
    reader = first_of(account_id, include, exclude)
    return Chosen(reader or NOBODY, said=first or "", is_first=reader is not None)


def beginning_with(account_id: int, words: str, most: int = MOST_FOUND) -> list[Reader]:
    """The account's people whose address begins so, by address: the exact one is the first."""
    text = words.strip()
    if not text or len(text) > 320 or "\0" in text:
        return []
    form = lower(text if text.isascii() or "@" not in text else canonical(text))
    rows = Subscriber.objects.filter(account=account_id, email_lower__startswith=form)
    return [_reader(person) for person in rows.order_by("email_lower")[:most]]


def first_of(account_id: int, include: Sequence[int], exclude: Sequence[int]) -> Reader | None:
    """The first of an audience, looked for among its segments' first members: the same few rows
    are read of a segment of ten and of ten million."""
    present = Membership.objects.filter(
        left_at__isnull=True, subscriber__status=Subscriber.Status.CONFIRMED
    )
    each = [
        present.filter(segment=segment, segment__account=account_id)
        .order_by("subscriber_id")
        .values_list("subscriber_id", flat=True)[:_MEMBERS]
        for segment in include[:_SEGMENTS]
    ]
    if not each:
        return None
    barred = Membership.objects.filter(
        subscriber=OuterRef("pk"), left_at__isnull=True, segment__in=exclude[:100]
    )
    ids = list(each[0].union(*each[1:]))
    rows = Subscriber.objects.filter(~Exists(barred), account=account_id, pk__in=ids)
    person = rows.order_by("pk").first()
    return _reader(person) if person is not None else None


def _reader(person: Subscriber) -> Reader:
    return Reader(person.email, person.attributes or {}, person.pk)
