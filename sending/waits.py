"""What mail waits for that does not leave: told of a campaign and of one message, in words.

The words complete "It waits, because ...": no capital, no full stop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.db.models.fields.json import KT

from campaigns.models import Campaign
from subscribers.database_clock import database_time
from subscribers.models import Account

from .alive import has_sender, served, without_sender
from .limits.keys import domain_key
from .models import CampaignHealth, Send
from .plain_table import due
from .status import PauseFact, pauses
from .status_limits import LimitedFact, PaceFact, limited, pace_words, paces
from .wording import AFTER_BRAKE, trouble

#: ``CampaignHealth`` of campaigns that a brake has paused: somebody's own pause has other words.
BRAKED = ~Q(campaign__status_reason="") & Q(
    campaign__status=Campaign.Status.PAUSED, campaign__status_reason=KT("base__trip")
)


@dataclass(frozen=True, slots=True)
class Around:
    """What may hold the mail of some accounts back, looked at once. ``served``: see
    ``status.served``; ``paces`` by account and transport."""

    now: datetime
    served: frozenset[int | None]
    pauses: list[PauseFact]
    paces: Mapping[tuple[int, str], PaceFact]


def around(users: Collection[tuple[int, str]], email: str = "") -> Around:
    """``users`` are accounts and the transports that their mail goes by; ``email``: with the
    limit of this address's provider of mailboxes, too."""
    now = database_time()
    more = [domain_key(email.rpartition("@")[2])] if email else []
    return Around(now=now, served=served(now), pauses=pauses(), paces=paces(users, more))


def has_sender_now() -> bool:
    """Whether a sender is alive that serves everything, by the database's clock."""
    return has_sender(database_time())


def pause_of(pauses: Iterable[PauseFact], account: str, alias: str) -> PauseFact | None:
    """The pause that holds back what the account (its slug) sends over this transport."""
    return next((p for p in pauses if p.transport == alias and p.account in (None, account)), None)


def held(account: Account, alias: str, seen: Around, campaign_id: int | None) -> str:
    """What keeps the account's mail of this campaign (None: single messages) from leaving by this
    transport; "" when nothing is known that does."""
    pause = pause_of(seen.pauses, account.slug, alias)
    nobody = without_sender(seen.served, campaign_id)
    if pause is not None:
        return pause_words(pause, seen.now) + (f"; and {nobody}" if nobody else "")
    if nobody:
        return f"{nobody}; run_sender starts one"
    pace = seen.paces.get((account.pk, alias))
    return pace_words(pace) if pace is not None and pace.nothing_before is not None else ""


def pause_words(pause: PauseFact, now: datetime) -> str:
    """A pause, its trouble and the next try."""
    whose = f" for {pause.account}" if pause.account else ""
    wrong = trouble(pause.stage, pause.code, said=pause.reason)
    said = f": {pause.reason.rstrip('.')}" if pause.reason else ""
    return (
        f"transport {pause.transport} is paused{whose}, it {wrong}{said}; "
        f"the next try {due(pause.probe_at, now)}"
    )


def by(send: Send, account: Account) -> str:
    """The transport that a message goes by."""
    return send.transport or account.transport


def of_message(send: Send, account: Account, seen: Around) -> str:
    """What one message waits for, that a sender has yet to take or to repeat; "" when nothing
    holds it, and its turn comes. Its campaign is read."""
    if send.status not in (Send.Status.QUEUED, Send.Status.RETRY, Send.Status.IN_DOUBT):
        return ""
    campaign = send.campaign
    if campaign is not None and campaign.status != Campaign.Status.SENDING:
        said = f" ({campaign.status_reason})" if campaign.status_reason else ""
        return f"the campaign is {campaign.status}{said}"
    return held(account, by(send, account), seen, send.campaign_id)


def of_send(send: Send) -> str:
    """A sentence for the message's page: what it waits for; "" when it does not wait to be taken
    by a sender."""
    if send.status not in (Send.Status.QUEUED, Send.Status.RETRY):
        return ""
    user = (send.account.pk, by(send, send.account))
    seen = around([user], send.email or "")
    if waits := of_message(send, send.account, seen):
        return f"It waits, because {waits}."
    pace = seen.paces.get(user)
    return f"It waits for its turn: {pace_words(pace)}." if pace is not None else ""


def of_campaign(campaign_id: int, rate_limited: int | None = None) -> str:
    """A sentence for the campaign's page: what it waits for, or by what it is limited; "" when
    nothing is known that holds it; of one that a brake has paused, what to do. ``rate_limited``:
    its rows that wait for a limit, where that was counted before."""
    campaign = Campaign.objects.select_related("account").get(pk=campaign_id)
    account = campaign.account
    user = (account.pk, account.transport)
    if campaign.status == Campaign.Status.APPROVED:
        now = database_time()
        is_due = campaign.scheduled_for is not None and campaign.scheduled_for <= now
        nobody = without_sender(served(now), campaign_id) if is_due else ""
        return f"Waits: {nobody}; run_sender starts one." if nobody else ""
    if campaign.status == Campaign.Status.PAUSED:
        braked = CampaignHealth.objects.filter(BRAKED, campaign=campaign_id)
        return AFTER_BRAKE if braked.exists() else ""
    if campaign.status != Campaign.Status.SENDING:
        return ""
    seen = around([user])
    if why := held(account, account.transport, seen, campaign_id):
        return f"Waits: {why}."
    pace = seen.paces.get(user)
    parts = [f"Limited: {pace_words(pace)}."] if pace is not None else []
    known = None if rate_limited is None else {campaign_id: rate_limited}
    parts += [f"{limited_words(fact, seen.now)}." for fact in limited([campaign_id], known)]
    return " ".join(parts)


def limited_words(fact: LimitedFact, now: datetime) -> str:
    """``53 wait for the limit of mailboxes at google, the next in 1 s``."""
    waits = "waits" if fact.rows == 1 else "wait"
    more = " or more" if fact.at_least else ""
    return (
        f"{fact.rows:,}{more} {waits} for the limit of {fact.of}, the next {due(fact.next_at, now)}"
    )
