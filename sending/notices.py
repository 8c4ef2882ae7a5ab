"""Mail to an account's staff: a brake paused a campaign, a campaign is sent, rows are in doubt, a
transport takes no mail.

Upkeep looks every few seconds at what the database says happened and queues what staff were not
told yet, so a worker that dies in between loses nothing; a lock on the campaign's counts and the
messages' keys see to it that any number of workers tell it once. Notices are transactional
messages of the account: over its own transport they wait while that is paused, and where its
sender is blocked they are refused like everything else. ``SENDONCE["NOTICES_TRANSPORT"]`` names
another road for them.

Never in a loop: a notice belongs to no campaign, so none that fails, bounces or is in doubt is
counted, or told of, here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from campaigns.content import as_content
from campaigns.models import Campaign
from subscribers.addresses import AddressError, normalize
from subscribers.conf import conf
from subscribers.models import Account
from subscribers.timezones import zone_named

from . import ledger, notice_texts, sql
from .brakes import LEAST_BOUNCES, LEAST_COMPLAINTS, judge_rates
from .connections import LOST
from .health import totals_of
from .models import Send
from .notice_texts import Notice
from .sql import health as statements
from .sql.pauses import LASTING
from .transactional import enqueue

log = logging.getLogger("sendonce.sender")

KIND = "notice"
EXPIRES = timedelta(days=2)
#: Seconds a transport must have been paused before anybody is told; a refused login is told at
#: once, since nothing but a person mends it.
LASTS = 300.0
#: So many messages about a transport are queued at one look, or a few more.
MOST = 100
_LOGIN = (401, 403, 525, 530, 534, 535, 538)


def tell() -> int:
    """Queue what staff are to be told; returns how many messages that makes.

    Idempotent, and safe next to another worker that does the same.
    """
    return (
        _tell(statements.DUE_TRIPS, {}, _paused)
        + _tell(statements.DUE_SENT, {}, _sent)
        + _tell(statements.DUE_DOUBT, {"wait": conf.ANSWER_TIMEOUT}, _doubt)
        + _tell_rates()
        + _tell_transports()
    )


def _zone(account: Account) -> tzinfo:
    """The account's; UTC where that is none, or not known on this machine."""
    try:
        return zone_named(account.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


# --- about campaigns -------------------------------------------------------------------------

#: What to tell of a campaign whose counts are locked, or None; the key of the message; and what
#: to remember as told.
Told = tuple[Notice | None, str, dict[str, Any]]
Maker = Callable[[Campaign, dict[str, Any]], Told | None]


def _tell(statement: str, given: dict[str, Any], make: Maker) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        due = [campaign_id for (campaign_id,) in cursor.fetchall()]
    return sum(_tell_one(campaign_id, make) for campaign_id in due)


def _tell_one(campaign_id: int, make: Maker) -> int:
    """One that can't be told keeps none of the others: a fault of ours, and said in the log."""
    try:
        return _tell_now(campaign_id, make)
    except LOST:
        raise
    except Exception:
        log.exception(
            "a notice can't be made", extra={"event": "notice_error", "campaign": campaign_id}
        )
        return 0


def _tell_now(campaign_id: int, make: Maker) -> int:
    """In one transaction: look again behind the lock, queue, and remember that it is told."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        cursor.execute(statements.ENSURE, {"campaign": campaign_id})
        cursor.execute(statements.LOCK, {"campaign": campaign_id})
        row = cursor.fetchone()
        if row is None:
            return 0  # deleted meanwhile
        campaign = Campaign.objects.select_related("account").get(pk=campaign_id)
        made = make(campaign, json.loads(row[0]) if isinstance(row[0], str) else row[0])
        if made is None:
            return 0  # another worker was faster, or it is so no more
        notice, key, told = made
        cursor.execute(
            statements.TOLD,
            {"campaign": campaign_id, "told": json.dumps(told)},
        )
        if notice is None or not campaign.account.notices:
            return 0
        url = admin_url("sendonce_campaigns_campaign_change", campaign_id)
        return _queue(campaign.account, notice, key, url, _members(campaign.account))


def _paused(campaign: Campaign, base: dict[str, Any]) -> Told | None:
    trips = int(base.get("trips") or 0)
    if trips <= int(base.get("told_trips") or 0):
        return None
    notice = notice_texts.paused(
        campaign.name,
        str(base.get("trip") or campaign.status_reason),
        ledger.counts(campaign),
        status=campaign.status,
    )
    return notice, f"paused:{campaign.pk}:{trips}", {"told_trips": trips}


def _sent(campaign: Campaign, base: dict[str, Any]) -> Told | None:
    """Once, also when a row of it opens later and it is sent again: whoever sends rows again
    looks at it."""
    if campaign.status != Campaign.Status.SENT or "told_sent" in base:
        return None
    counts = ledger.counts(campaign)
    told = {"told_sent": True}
    if counts["in_doubt"]:
        told |= _now_told_doubt()
    return notice_texts.sent(campaign.name, counts), f"sent:{campaign.pk}", told


def _doubt(campaign: Campaign, base: dict[str, Any]) -> Told | None:
    """At most once a day, and again only for rows that came into doubt since."""
    last = base.get("told_doubt")
    now = timezone.now()
    if last is not None and datetime.fromisoformat(last) > now - timedelta(days=1):
        return None
    with connection.cursor() as cursor:
        cursor.execute(statements.COUNT_DOUBT, {"campaign": campaign.pk})
        (rows,) = cursor.fetchone()
    if not rows:
        return None
    key = f"doubt:{campaign.pk}:{now.astimezone(UTC):%Y%m%d}"
    return notice_texts.doubt(campaign.name, rows), key, _now_told_doubt()


def _now_told_doubt() -> dict[str, Any]:
    return {"told_doubt": timezone.now().isoformat()}


def _tell_rates() -> int:
    """Of sent campaigns that would be paused by their rates if they were still running."""
    with connection.cursor() as cursor:
        cursor.execute(
            statements.SENT_LATELY, {"complaints": LEAST_COMPLAINTS, "bounces": LEAST_BOUNCES}
        )
        found = [totals_of(row) for row in cursor.fetchall()]
    told = 0
    for campaign_id, totals, limits in found:
        reason = judge_rates(totals, limits)
        if reason is not None:
            told += _tell_one(campaign_id, _rates(reason))
    return told


def _rates(reason: str) -> Maker:
    def make(campaign: Campaign, base: dict[str, Any]) -> Told | None:
        if "told_rates" in base:
            return None
        notice = notice_texts.rates(campaign.name, reason)
        return notice, f"rates:{campaign.pk}", {"told_rates": True}

    return make


# --- about transports ------------------------------------------------------------------------


def _tell_transports() -> int:
    """Of pauses that last, and of refused logins; one message a member and outage, and at most
    one an hour for a transport that comes and goes."""
    with connection.cursor() as cursor:
        cursor.execute(LASTING, {"lasts": LASTS, "login": list(_LOGIN)})
        pauses = cursor.fetchall()
    return sum(_tell_pause(*pause) for pause in pauses)


def _tell_pause(
    alias: str, account_id: int | None, stage: str, code: int | None, reason: str, since: datetime
) -> int:
    accounts = Account.objects.filter(transport=alias, notices=True).order_by("pk")
    if account_id is not None:
        accounts = accounts.filter(pk=account_id)
    key = f"transport:{quote(alias, safe='')}:{account_id or ''}:{since.astimezone(UTC):%Y%m%dT%H}"
    told: set[str] = set()
    to_tell: list[tuple[Account, list[tuple[int, str]]]] = []
    for account in accounts.prefetch_related("members"):
        # Who is in several accounts is told once.
        fresh = [(pk, to) for pk, to in _members(account) if to.lower() not in told]
        told.update(to.lower() for _, to in fresh)
        if fresh:
            to_tell.append((account, fresh))
    wanted = [_job_id(account, key, pk) for account, fresh in to_tell for pk, _ in fresh]
    known = set(Send.objects.filter(job_id__in=wanted).order_by().values_list("job_id", flat=True))
    queued = 0
    for account, fresh in to_tell:
        missing = [(pk, to) for pk, to in fresh if _job_id(account, key, pk) not in known]
        if missing:
            notice = notice_texts.transport(
                alias,
                stage,
                code,
                reason,
                since=f"{since.astimezone(_zone(account)):%-d %B %Y, %H:%M %Z}",
                whose=account.name if account_id is not None else None,
            )
            url = admin_url("sendonce_sending_transportpause_changelist")
            queued += _queue(account, notice, key, url, missing)
            if queued >= MOST:
                break  # the rest at the next look: upkeep has other things to do
    return queued


# --- queueing --------------------------------------------------------------------------------


def _members(account: Account) -> list[tuple[int, str]]:
    """``(id, address)`` of its active members that have one, each address once."""
    found: dict[str, tuple[int, str]] = {}
    for user in sorted(account.members.all(), key=lambda user: user.pk):
        address = str(getattr(user, user.get_email_field_name(), "") or "").strip()
        if not address or not getattr(user, "is_active", True):
            continue
        try:
            normalize(address)
        except AddressError:
            continue  # it would be tried again at every look, in vain
        found.setdefault(address.lower(), (user.pk, address))
    return list(found.values())


def _job_id(account: Account, key: str, member_id: Any) -> str:
    return f"message:{account.pk}:{KIND}:{key}:{member_id}"


def _queue(
    account: Account, notice: Notice, key: str, url: str, members: Iterable[tuple[int, str]]
) -> int:
    """A message to each of ``members``; one that can't be queued keeps none of the others."""
    compiled = notice_texts.content(
        from_email=account.from_email,
        from_name=account.from_name,
        reply_to=account.reply_to,
        account={
            "name": account.name,
            "slug": account.slug,
            "postal_address": account.postal_address,
        },
    )
    content = as_content(compiled, account.pk)
    queued = 0
    for member_id, address in members:
        try:
            with transaction.atomic():
                enqueue(
                    account,
                    kind=KIND,
                    key=f"{key}:{member_id}",
                    to=address,
                    content=content,
                    context={"headline": notice.headline, "words": notice.words, "url": url},
                    expires=timezone.now() + EXPIRES,
                    transport=conf.NOTICES_TRANSPORT,
                )
        except ValueError as error:
            # An address that is none, or another worker that told the same in other words.
            content = as_content(compiled, account.pk)
            log.info(
                "a notice was not queued",
                extra={"event": "notice_not_queued", "key": key, "error": str(error)},
            )
        else:
            queued += 1
    return queued


def admin_url(name: str, *args: Any) -> str:
    """The full address of an admin page; "" where the site has no admin or not this page."""
    try:
        return str(conf.BASE_URL + reverse(f"admin:{name}", args=args))
    except (NoReverseMatch, ImproperlyConfigured, ImportError):
        return ""
