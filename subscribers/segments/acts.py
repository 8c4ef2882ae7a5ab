"""What staff do to a segment, chunk by chunk, and the record of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.db import transaction
from django.http import HttpRequest

from ..audit import record
from ..models import AuditEvent, Segment
from .members import Done, add, remove, work


def add_people(
    segment: Segment, chunks: Iterable[list[int]], *, request: HttpRequest, origin: str
) -> tuple[Done, bool]:
    """Put these people into the segment; what was done, and whether that is all of it (see
    ``segments.work``). ``origin`` says in words where they were taken from.

    Raises ``SegmentGone``; what was committed before stays, and is on record.
    """
    trail = _Trail(segment, "segment.add", request, origin)
    return work(chunks, lambda people: trail.note(lambda: add(segment, people)))


def remove_people(
    segment: Segment, chunks: Iterable[list[int]], *, request: HttpRequest, origin: str
) -> tuple[Done, bool]:
    """As ``add_people``, for taking them out."""
    trail = _Trail(segment, "segment.remove", request, origin)
    source = f"removed by {request.user.get_username()} in the admin"
    return work(chunks, lambda people: trail.note(lambda: remove(segment, people, source=source)))


class _Trail:
    """One entry of the audit trail for an act of many transactions: it comes with the first of
    them, and its numbers grow with each, so that it is right wherever the act breaks off."""

    def __init__(self, segment: Segment, verb: str, request: HttpRequest, origin: str) -> None:
        self.segment, self.verb, self.request, self.origin = segment, verb, request, origin
        self.event: AuditEvent | None = None
        self.done = Done()

    def note(self, act: Callable[[], Done]) -> Done:
        with transaction.atomic():
            done = act()
            detail = {
                "segment": self.segment.pk,
                "from": self.origin,
                **(self.done + done).as_detail(),
            }
            if self.event is None:
                event = record(
                    self.segment.account,
                    self.verb,
                    subject=self.segment.name,
                    detail=detail,
                    request=self.request,
                )
            else:
                event = self.event
                AuditEvent.objects.filter(pk=event.pk).update(detail=detail)
        self.event, self.done = event, self.done + done
        return done
