"""Test messages of campaigns: transactional ones, so that they go the road that all mail goes, and
are in no campaign's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from campaigns.content import CompiledContent, as_content
from campaigns.test_sends import MOST, VERB, Trial
from subscribers.database_clock import database_time
from subscribers.models import Account, AuditEvent

from . import waits
from .answers import said
from .models import Send
from .plain_table import due
from .transactional import enqueue
from .withheld import WITHHELD
from .wording import doubt_words, words

KIND = "test"
#: A test that has not left by then never does: whoever waited for it has given up.
EXPIRES = timedelta(hours=1)

Status = Send.Status
_OPEN = (Status.QUEUED, Status.CLAIMED, Status.SENDING, Status.RETRY)


def send_tests(
    account: Account,
    content: CompiledContent,
    context: dict[str, Any],
    emails: Sequence[str],
    key: str,
) -> bool:
    """Queue one message to each address, in the caller's transaction.

    Asked twice with the same ``key`` it sends once, and returns False. Raises
    ``transactional.KeyReused`` (a ``ValueError``) when the key stands for other messages.
    The rows are nobody's: they are to the staff, and must not be taken for the person's of whom
    the context speaks.
    """
    row = as_content(content, account.pk)
    expires = database_time() + EXPIRES
    made = False
    for number, email in enumerate(emails):
        enqueue(
            account,
            kind=KIND,
            key=f"{key}.{number}",
            to=email,
            content=row,
            context=context,
            expires=expires,
        )
        # Saved: the row is ours. Else somebody was quicker with this key, or it was there.
        made = made or row.pk is not None
    return made


def states(account: Account, key: str) -> list[Trial]:
    """How the messages of ``key`` stand now, in the order in which they were asked for."""
    jobs = [_job(account.pk, f"{key}.{number}") for number in range(MOST)]
    rows = {row.job_id: row for row in Send.objects.filter(job_id__in=jobs).order_by("pk")}
    if not rows:
        return []
    seen = waits.around({(account.pk, waits.by(row, account)) for row in rows.values()})
    return [_trial(rows[job], account, seen) for job in jobs if job in rows]


def forget_shown(account_id: int, subscriber_id: int) -> int:
    """Empty the data of the tests that were made with this person's; returns how many.

    Their rows are to other addresses, and stay. The record of who asked for a test says of whom.
    """
    acts = AuditEvent.objects.filter(account=account_id, verb=VERB, detail__shown=subscriber_id)
    jobs = [
        _job(account_id, str(detail.get("test", "")))
        for detail in acts.values_list("detail", flat=True)
    ]
    rows = Send.objects.filter(job_id__in=jobs, context__isnull=False)
    return rows.update(context={}, frozen=None)


def _job(account_id: int, key: str) -> str:
    return f"message:{account_id}:{KIND}:{key}"


def _trial(row: Send, account: Account, seen: waits.Around) -> Trial:
    status = Status(row.status)
    return Trial(
        email=row.email or "an erased person",
        status=_word(status),
        told=_told(row, account, seen),
        is_open=status in _OPEN,
    )


def _word(status: Send.Status) -> str:
    match status:
        case Status.CLAIMED:
            return "queued"
        case Status.SUPPRESSED | Status.FAILED | Status.BOUNCED:
            return "refused"
    return words(status)


def _told(row: Send, account: Account, seen: waits.Around) -> str:
    """Why it is so, in a sentence or two."""
    answer = said(row.answer_code, row.answer_enhanced, row.answer_text)
    heard = f": {answer}" if answer else ""
    why = words(row.reason)
    match row.status:
        case Status.SENT:
            return f"The relay accepted it{heard}."
        case Status.QUEUED | Status.CLAIMED:
            waiting = waits.of_message(row, account, seen)
            return f"It waits, because {waiting}." if waiting else "A sender takes it next."
        case Status.SENDING:
            return "It was handed over this moment; the answer is awaited."
        case Status.RETRY:
            again = row.next_attempt_at
            when = f", tried again {due(again, seen.now)}" if again else ""
            return f"Refused for now{when}{heard}."
        case Status.IN_DOUBT:
            return f"Handed over and {doubt_words(row.reason, row.answer_code)}; it may arrive."
        case Status.SUPPRESSED:
            return f"Not handed over: {WITHHELD.get(row.reason, why or 'suppressed')}."
        case Status.FAILED if row.reason == "expired":
            return "No sender took it within an hour; it is not sent any more."
    return f"Not delivered ({why or 'no reason kept'}){heard}."
