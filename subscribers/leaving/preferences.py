"""The page behind ``preferences_url``: what somebody gets, for a while, at which address, or not.

The link is all that it takes, and mail is passed on. So nothing here gives away more than the
mail did, leaving is always possible, and joining only what they were in themselves.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from ..addresses import AddressError
from ..client_address import client_address
from ..consent import leave, pause, rejoin, resume
from ..joining.asking import Origin
from ..joining.limits import Verdict
from ..languages import language_of
from ..models import Membership, MembershipChange, Subscriber
from ..pages import about, page
from ..timezones import zone_named
from ..tokens import Token
from .address_change import ask, leave_everything
from .farewell import farewell

#: How long a pause may last, in months.
PAUSES = (1, 3, 6)
#: How the record says that the person did it here.
_SOURCE = "The preferences page"


@dataclass(frozen=True)
class Answer:
    """What the page says about what was just asked for; ``done`` names it for the template."""

    done: str = ""
    #: The new address as it was typed, and whether it is none.
    typed: str = ""
    refused: bool = False
    status: int = 200


@dataclass(frozen=True)
class Choice:
    """A segment on the page: of those that the person is in, or has left here."""

    id: int
    name: str
    description: str
    inside: bool


def show(request: HttpRequest, known: Token) -> HttpResponse:
    """GET shows the preferences; POST does what its ``action`` says, and without one nothing."""
    person = _person(known)
    answer = Answer()
    if person is not None and request.method == "POST":
        answer = _act(request, person, known)
        person = _person(known)
    if person is None:
        return page(request, "subscriber_gone.html")
    if person.status == Subscriber.Status.UNSUBSCRIBED:
        return farewell(request, person)
    return about(
        request,
        "preferences.html",
        person,
        context={
            "answer": answer,
            "choices": [
                Choice(
                    one.segment_id, one.segment.name, one.segment.description, one.left_at is None
                )
                for one in _shown(person)
            ],
            "confirmed": person.status == Subscriber.Status.CONFIRMED,
            "paused_until": _paused_until(person),
            "pauses": PAUSES,
        },
        status=answer.status,
    )


def months_later(start: datetime, months: int) -> datetime:
    """The same day and time so many months later; the month's last where it has no such day."""
    count = start.month - 1 + months
    year, month = start.year + count // 12, count % 12 + 1
    return start.replace(year=year, month=month, day=min(start.day, monthrange(year, month)[1]))


def _act(request: HttpRequest, person: Subscriber, known: Token) -> Answer:
    match request.POST.get("action"):
        case "segments":
            return _choose(request, person)
        case "pause" if (months := request.POST.get("months", "")) in {str(n) for n in PAUSES}:
            now = timezone.localtime(timezone.now(), _zone(person))
            pause(person, months_later(now, int(months)))
            return Answer("paused")
        case "resume":
            resume(person)
            return Answer("resumed")
        case "address" if person.status == Subscriber.Status.CONFIRMED:
            return _ask_address(request, person)
        case "leave":
            where = known.campaign_id
            leave_everything(person, evidence=_source(request, where), campaign_id=where)
    return Answer()


def _choose(request: HttpRequest, person: Subscriber) -> Answer:
    """Leave and join what was changed on the page; the rest stays as it is, whatever was changed
    elsewhere since the page was opened."""
    was, chosen = _ids(request, "was"), _ids(request, "in")
    mine = list(_shown(person))
    leave([one for one in mine if one.segment_id in was - chosen], source=_source(request))
    if person.status == Subscriber.Status.CONFIRMED:
        again = [one.segment for one in mine if one.segment_id in chosen - was]
        rejoin(person, again, source=_source(request))
    inside = Membership.objects.filter(subscriber=person, left_at__isnull=True).exists()
    return Answer("saved" if inside else "none")


def _ask_address(request: HttpRequest, person: Subscriber) -> Answer:
    typed = request.POST.get("email", "").strip()[:320]
    agent = request.headers.get("User-Agent", "").replace("\0", "")[:200]
    origin = Origin(client_address(request), agent)
    try:
        verdict = ask(person, typed, origin, language=language_of(request, person.locale))
    except AddressError:
        return Answer(typed=typed, refused=True, status=400)
    if verdict in {Verdict.NETWORK, Verdict.ACCOUNT}:
        return Answer("later", status=429)
    return Answer("asked", typed=typed)


def _person(known: Token) -> Subscriber | None:
    return Subscriber.objects.select_related("account").filter(pk=known.subscriber_id).first()


def _shown(person: Subscriber) -> QuerySet[Membership]:
    """What they are in, and what they left here: only that can be left and joined here."""
    last = MembershipChange.objects.filter(
        segment=OuterRef("segment"), subscriber=OuterRef("subscriber")
    ).order_by("-pk")
    return (
        Membership.objects.filter(subscriber=person, segment__public=True)
        .annotate(last=Subquery(last.values("source")[:1]))
        .filter(Q(left_at__isnull=True) | Q(last__startswith=_SOURCE))
        .select_related("segment")
        .order_by("segment__name", "segment_id")
    )


def _ids(request: HttpRequest, name: str) -> set[int]:
    numbers = (text for text in request.POST.getlist(name) if text.isascii() and text.isdigit())
    return {int(text) for text in numbers if len(text) < 20}


def _source(request: HttpRequest, campaign_id: int | None = None) -> str:
    where = f" of campaign {campaign_id}" if campaign_id else ""
    agent = request.headers.get("User-Agent", "unknown").replace("\0", "")
    return f"{_SOURCE}{where}, by {agent}"[:200]


def _zone(person: Subscriber) -> ZoneInfo:
    return zone_named(person.timezone, person.account.timezone)


def _paused_until(person: Subscriber) -> date | None:
    until = person.paused_until
    if until is None or until <= timezone.now():
        return None
    return timezone.localtime(until, _zone(person)).date()
