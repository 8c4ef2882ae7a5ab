"""How long a sign-up waits to be confirmed, and when what was not is deleted."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from ..conf import conf
from ..models import Signup, SignupAttempt, Subscriber

#: A sign-up that nobody confirmed is deleted so long after its last mail, and never before its
#: link has run out.
KEPT_DAYS = 30
#: The longest time that a limit looks back is a day.
ATTEMPTS_KEPT_DAYS = 2

_SIGNUPS = Signup._meta.db_table
_ATTEMPTS = SignupAttempt._meta.db_table

# Locked and skipped: somebody confirms it at this moment. An array, or the planner may run the
# LIMIT for each row, and skip what it has deleted.
_DELETE_SIGNUPS = f"""
DELETE FROM {_SIGNUPS} WHERE id = ANY (ARRAY(
    SELECT id FROM {_SIGNUPS}
    WHERE confirmed_at IS NULL AND requested_at < clock_timestamp() - %(days)s * interval '1 day'
        AND coalesce(mailed_at, requested_at) < clock_timestamp() - %(days)s * interval '1 day'
    ORDER BY requested_at LIMIT %(size)s FOR UPDATE SKIP LOCKED))"""
_DELETE_ATTEMPTS = f"""
DELETE FROM {_ATTEMPTS} WHERE id = ANY (ARRAY(
    SELECT id FROM {_ATTEMPTS}
    WHERE at < clock_timestamp() - %(days)s * interval '1 day'
    ORDER BY at LIMIT %(size)s FOR UPDATE SKIP LOCKED))"""


def window() -> timedelta:
    return timedelta(days=conf.CONFIRM_DAYS)


def still_confirms(signups: QuerySet[Signup]) -> QuerySet[Signup]:
    """Those whose last mail is young enough, by the database's clock."""
    return signups.filter(mailed_at__gt=Now() - window())


def left_since(person: Subscriber, signup: Signup) -> bool:
    """Did they unsubscribe after the mail with this link? Their last word counts: to come back
    they ask anew."""
    return (
        person.status == Subscriber.Status.UNSUBSCRIBED
        and person.unsubscribed_at is not None
        and signup.mailed_at is not None
        and person.unsubscribed_at > signup.mailed_at
    )


def prune_signups(*, size: int = 1000, batches: int = 20) -> int:
    """Delete sign-ups that were never confirmed and what the limits need no more; returns how
    many rows. Each batch is a transaction of its own; what is left waits for the next call. Call
    it every few minutes, from any number of processes."""
    kept = max(KEPT_DAYS, conf.CONFIRM_DAYS + 1)
    deleted = 0
    for statement, days in ((_DELETE_SIGNUPS, kept), (_DELETE_ATTEMPTS, ATTEMPTS_KEPT_DAYS)):
        for _ in range(batches):
            with connection.cursor() as cursor:
                cursor.execute(statement, {"days": days, "size": size})
                gone = cursor.rowcount
            deleted += gone
            if gone < size:
                break
    return deleted
