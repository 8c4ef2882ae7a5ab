"""Tests of a campaign: its message to a few addresses of the staff's, and in nobody's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from subscribers.addresses import AddressError, erased_hashes, lower, normalize
from subscribers.audit import record
from subscribers.models import Account, Subscriber, Suppression
from subscribers.suppressing.standing import is_live, known_as

from . import hooks
from .content import CompiledContent
from .models import Campaign
from .previewing import Reader, context_of
from .rendering import Renderer

#: The act, as the audit trail names it.
VERB = "campaign.test"
#: Addresses of one test.
MOST = 10
#: Begins the subject of every test.
MARK = "[Test] "
#: A subject's longest, with the mark.
MOST_SUBJECT = 500

_SEPARATORS = re.compile(r"[\s,;]+")
_KEY = re.compile(r"[0-9a-f]{32}")


class Refused(ValueError):
    """No test was sent, and nothing written; each of ``reasons`` says why in a sentence."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Trial:
    """How one test message stands. ``status`` is a word, ``told`` a sentence or two; ``is_open``:
    it may still change by itself."""

    email: str
    status: str
    told: str
    is_open: bool


def addresses(text: str) -> list[str]:
    """The addresses in a text, as they are stored, each once, in order: 1 to ``MOST``. Pure.

    Between them stand commas, semicolons, spaces or line ends. Raises ``Refused``.
    """
    found: dict[str, str] = {}
    wrong = []
    words = [word for word in _SEPARATORS.split(text.strip()) if word]
    if len(words) > 5 * MOST:
        raise Refused(f"{MOST} addresses at most.")
    for word in words:
        try:
            email = normalize(word)
        except AddressError as error:
            wrong.append(f"{word[:100]}: {error}")
            continue
        found.setdefault(lower(email), email)
    if wrong:
        raise Refused(*wrong)
    if not found:
        raise Refused("Say to which addresses.")
    if len(found) > MOST:
        raise Refused(f"{MOST} addresses at most.")
    return list(found.values())


def is_key(text: str) -> bool:
    """Is it the key of a rendered form?"""
    return _KEY.fullmatch(text) is not None


def marked(content: CompiledContent) -> CompiledContent:
    """The content as a test has it: all of it as it is, and a subject that says so. Pure.

    The mark is in the subject alone: filters hold it against nobody, people see it before they
    open the message, and the body is the one that everybody will get. Raises ``Refused``.
    """
    subject = f"{MARK}{content.subject}"
    if len(subject) > MOST_SUBJECT:
        longest = MOST_SUBJECT - len(MARK)
        raise Refused(f"The subject is too long for a test: {longest} characters at most.")
    return replace(content, subject=subject)


def data_for(content: CompiledContent, reader: Reader) -> dict[str, Any]:
    """What the templates see: of the person only the fields that they read. Pure.

    Each address finds itself in ``{{ email }}``, as in any message to it.
    """
    renderer = Renderer(content)
    parts = [renderer.subject, renderer.text, *([renderer.html] if renderer.html else [])]
    read = {name.partition(".")[0] for part in parts for name in part.fields}
    seen = context_of(content, reader)
    return {name: value for name, value in seen.items() if name in read - {"email", "account"}}


def barred(account: Account, emails: Sequence[str]) -> dict[str, str]:
    """Why some of these addresses get no test, by address: they are suppressed. One query."""
    if not emails:
        return {}
    condition = known_as(emails[0])
    for email in emails[1:]:
        condition |= known_as(email)
    rows = Suppression.objects.filter(condition, is_live())
    mine = [row for row in rows if row.account_id in (None, account.pk)]
    return {email: _why(row) for email in emails for row in mine if _is_of(row, email)}


def send(
    campaign: Campaign,
    content: CompiledContent,
    reader: Reader,
    emails: Sequence[str],
    *,
    key: str,
    request: HttpRequest,
) -> bool:
    """Queue a test to each address and record who asked for it, all or nothing; a worker sends
    it. ``key`` is the rendered form's (``is_key``): asked twice it is sent once, and False comes
    back.

    Raises ``Refused``: an address is suppressed, the key stood for another test, nothing is
    installed that sends, or the person is gone.
    """
    account: Account = campaign.account
    tested = marked(content)
    own = key_of(campaign, key)
    with transaction.atomic():
        if reader.pk and not _held(account, reader):
            raise Refused("The person as whom it is shown was deleted meanwhile.")
        if reasons := barred(account, emails):
            raise Refused(*(f"{email} {why}" for email, why in reasons.items()))
        try:
            made = hooks.send_tests(account, tested, data_for(tested, reader), emails, own)
        except ValueError as error:
            raise Refused(
                "This form has sent another test already. Open it anew to send one more."
            ) from error
        if made is None:
            raise Refused("Nothing is installed here that sends.")
        if made:
            _record(campaign, reader, emails, own, request)
    return made


def key_of(campaign: Campaign, key: str) -> str:
    """What names the tests of one form; those of another campaign are never found by it."""
    return f"{campaign.pk}.{key}"


def _record(
    campaign: Campaign, reader: Reader, emails: Iterable[str], own: str, request: HttpRequest
) -> None:
    """One act for each address, found and forgotten with it. ``shown`` is whose data it holds:
    the erasure of that person finds it by this."""
    for number, email in enumerate(emails):
        detail = {"campaign": campaign.pk, "test": f"{own}.{number}"}
        if reader.pk:
            detail["shown"] = reader.pk
        record(campaign.account, VERB, subject=email, detail=detail, request=request)


def _held(account: Account, reader: Reader) -> bool:
    """Whether the person is still there, and stays until we commit: an erasure waits for us, and
    finds what we wrote."""
    rows = Subscriber.objects.select_for_update(no_key=True).filter(account=account, pk=reader.pk)
    return rows.values_list("pk", flat=True).first() is not None


def _is_of(row: Suppression, email: str) -> bool:
    if row.email_lower is not None:
        return row.email_lower == lower(email)
    return row.email_hash in erased_hashes(email)


def _why(row: Suppression) -> str:
    where = "" if row.account_id else " everywhere"
    match row.reason:
        case Suppression.Reason.HARD_BOUNCE:
            return f"is dead{where}: mail to it came back."
        case Suppression.Reason.COMPLAINT:
            return f"is suppressed{where}: its owner has called our mail spam."
        case Suppression.Reason.UNSUBSCRIBED:
            return f"is suppressed{where}: its owner has unsubscribed."
        case Suppression.Reason.ERASED:
            return f"is suppressed{where}: its owner was erased at their own wish."
    return f"is suppressed{where}: staff have put it on the list."
