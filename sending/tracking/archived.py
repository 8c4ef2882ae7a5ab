"""Late news of rows that were pruned: a complaint still bars the address.

The row, and with it whom it was for, is gone; the event names the campaign and the person's number
by its job id, and the address by its recipient. That counts as long as the address is not somebody
else's: who knows a job id and the shared secret must not suppress others by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from django.db.models import Q

from subscribers.addresses import canonical, erased_hashes, lower
from subscribers.models import Subscriber, Suppression

from .. import installation
from ..models import ArchivedCount
from .effects import SUPPRESSED_AS, Whom
from .rules import Result

JOB = re.compile(r"campaign:([0-9]{1,18}):([0-9]{1,18})")


class Told(Protocol):
    """What is read of an event; see ``models.ProviderEvent``."""

    @property
    def id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def job_id(self) -> str: ...
    @property
    def installation(self) -> str: ...
    @property
    def recipient(self) -> str: ...


def whom(told: Iterable[Told]) -> dict[int, Whom | Result]:
    """For each of these events without a row, by its number, whom it concerns, if its campaign has
    pruned rows; or why nobody. Reads the database, locks nothing."""
    tag = installation.tag()
    jobs = {
        t.id: (t, int(job[1]), int(job[2]))
        for t in told
        if t.installation == tag and (job := JOB.fullmatch(t.job_id))
    }
    if not jobs:
        return {}
    archived = ArchivedCount.objects.filter(campaign__in={c for _, c, _ in jobs.values()})
    accounts = dict(archived.order_by().values_list("campaign", "campaign__account"))
    return {
        number: _whom(t, accounts[campaign], person)
        for number, (t, campaign, person) in jobs.items()
        if campaign in accounts
    }


def _whom(told: Told, account_id: int, subscriber_id: int) -> Whom | Result:
    if told.kind not in SUPPRESSED_AS:
        return Result.IGNORED
    if not told.recipient:
        return Result.WRONG_RECIPIENT
    address = canonical(told.recipient)
    people = Subscriber.objects.filter(account=account_id, email_lower=lower(address))
    owner = people.order_by().values_list("pk", flat=True).first()
    if owner not in (None, subscriber_id):
        return Result.WRONG_RECIPIENT
    forgotten = Suppression.objects.filter(
        Q(account=account_id) | Q(account=None), email_hash__in=erased_hashes(address)
    )
    is_forgotten = owner is None and forgotten.exists()
    return Whom(account_id, owner, None if is_forgotten else address)
