"""Which row of the ledger an event of a provider speaks of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from subscribers.addresses import canonical, erased_hashes, lower

from .. import installation
from ..models import Send
from .rules import Result

#: Job ids that no metadata takes travel as the row's number.
BY_NUMBER = "send:"


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says of the message it is about; see ``models.ProviderEvent``."""

    event: int
    job_id: str
    installation: str
    message_id: str
    recipient: str


@dataclass(frozen=True, slots=True)
class Match:
    """The row, or why there is none for us."""

    send_id: int | None = None
    campaign_id: int | None = None
    refusal: Result | None = None


_UNKNOWN = Match(refusal=Result.UNKNOWN_JOB)


def match(told: Sequence[Told]) -> dict[int, Match]:
    """For each event, by its number, the row.

    By the job id, which counts only with our installation's tag beside it: another installation
    at the same provider has a campaign 1, too. Without it, by the provider's id of the message
    and the recipient. Reads the database, locks nothing.
    """
    tag = installation.tag()
    ours = [t for t in told if t.job_id and t.installation == tag]
    by_job = _by_job(t.job_id for t in ours)
    plain = [t for t in told if t.message_id and not (t.job_id and t.installation)]
    by_message = _by_message(t.message_id for t in plain)
    found: dict[int, Match] = {}
    for t in told:
        if t.job_id and t.installation:
            ours_too = t.installation == tag
            found[t.event] = (
                by_job.get(t.job_id, _UNKNOWN)
                if ours_too
                else Match(refusal=Result.OTHER_INSTALLATION)
            )
            continue
        same = [m for m, row in by_message[t.message_id] if is_recipient(t.recipient, *row)]
        found[t.event] = same[0] if t.recipient and len(same) == 1 else _UNKNOWN
    return found


def is_recipient(recipient: str, email: str | None, email_hash: str | None) -> bool:
    """Whether ``recipient``, as a provider spells it, is the one that a row was sent to. True
    where the provider did not say: a message has one recipient."""
    if not recipient:
        return True
    forms = {lower(recipient), lower(canonical(recipient))}
    if email is not None:
        return not forms.isdisjoint({lower(email), lower(canonical(email))})
    return email_hash in {digest for form in forms for digest in erased_hashes(form)}


def _by_job(job_ids: Iterable[str]) -> dict[str, Match]:
    wanted = set(job_ids)
    if not wanted:
        return {}
    numbers = {n: job for job in wanted if (n := _number(job)) is not None}
    rows = Send.objects.order_by()
    found = {
        job: Match(pk, campaign)
        for pk, job, campaign in rows.filter(job_id__in=wanted).values_list(
            "pk", "job_id", "campaign_id"
        )
    }
    if numbers:
        for pk, campaign in rows.filter(pk__in=numbers).values_list("pk", "campaign_id"):
            found.setdefault(numbers[pk], Match(pk, campaign))
    return found


def _number(job_id: str) -> int | None:
    text = job_id.removeprefix(BY_NUMBER)
    is_number = text != job_id and text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if is_number else None


def _by_message(
    message_ids: Iterable[str],
) -> dict[str, list[tuple[Match, tuple[str | None, str | None]]]]:
    found: dict[str, list[tuple[Match, tuple[str | None, str | None]]]] = defaultdict(list)
    wanted = {m for m in message_ids if m}
    if wanted:
        rows = Send.objects.order_by().filter(provider_message_id__in=wanted)
        for pk, campaign, message_id, email, digest in rows.exclude(
            provider_message_id=""
        ).values_list("pk", "campaign_id", "provider_message_id", "email", "email_hash"):
            found[message_id].append((Match(pk, campaign), (email, digest)))
    return found
