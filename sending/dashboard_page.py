"""The front page's panel, in words and links for who asks; the facts are ``sending.dashboard``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst

from campaigns.models import Campaign
from subscribers.models import Account
from subscribers.scoping import account_ids
from subscribers.timezones import zone_named

from .alive import NONE_SERVES, without_sender
from .dashboard import COUNTED, Facts, Held, May, Running, Start, look
from .dashboard_links import CAMPAIGN, SENDING, SUBSCRIBERS, Links
from .watching_words import eta_words, open_rows
from .wording import AFTER_BRAKE, next_try, rate_words, remedy, trouble


@dataclass(frozen=True, slots=True)
class Line:
    """Something that needs somebody: what, where it is mended ("": nowhere for this user), why.
    Without a ``why`` it tells that there are more of those before it."""

    what: str
    url: str
    why: str
    account: str = ""
    grave: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One campaign of a table. ``done`` of ``audience`` people are finished with."""

    name: str
    url: str
    account: str
    when: str = ""
    by: str = ""
    done: int = 0
    audience: int = 0
    far: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What a newcomer does: ``url`` "" where this user can't."""

    what: str
    how: str
    url: str
    done: bool


@dataclass(frozen=True)
class Panel:
    """``several``: of several accounts, so that each is named. ``lists``: where there is more.
    ``pages``: what operating takes, as (label, URL)."""

    attention: list[Line]
    running: list[Row]
    scheduled: list[Row]
    drafts: list[Row]
    sent: list[Row]
    steps: list[Step]
    several: bool
    lists: dict[str, str] = field(default_factory=dict)
    sees_campaigns: bool = True
    pages: list[tuple[str, str]] = field(default_factory=list)


def panel(request: HttpRequest) -> Panel | None:
    """The panel for this request's user; ``None`` when there is nothing of it that they may see."""
    user = request.user
    if not getattr(user, "is_staff", False) or not user.is_active:
        return None
    may = _may(request)
    if may == May():
        return None
    accounts = account_ids(request)
    facts = look(accounts, may, by=user)
    several = accounts is None or len(accounts) > 1
    links = Links(request)
    return Panel(
        attention=list(attention(facts, links)),
        running=[_running(one, links, _waits(one.campaign, facts)) for one in facts.running],
        scheduled=[_scheduled(one, links, facts.now) for one in facts.scheduled],
        drafts=[_draft(one, links) for one in facts.drafts],
        sent=[_sent(one, facts.sent_counts.get(one.pk, {}), links) for one in facts.sent],
        steps=list(_steps(facts.start, links)) if facts.start else [],
        several=several,
        lists={
            kind: links.campaigns(status) for kind, status in _STATUS.items() if kind in facts.more
        },
        sees_campaigns=may.campaigns,
        pages=links.pages(),
    )


#: Of the tables below what needs attention: the status by which the list of all is filtered.
_STATUS = {"running": "sending", "scheduled": "approved", "sent": "sent", "drafts": "draft"}


def _may(request: HttpRequest) -> May:
    def sees(label: str, model: str) -> bool:
        return any(request.user.has_perm(f"{label}.{act}_{model}") for act in ("view", "change"))

    return May(
        campaigns=sees(CAMPAIGN, "campaign"),
        approve=request.user.has_perm(f"{CAMPAIGN}.approve_campaign"),
        sends=sees(SENDING, "send"),
        pauses=sees(SENDING, "transportpause"),
        imports=sees(SUBSCRIBERS, "importjob")
        or request.user.has_perm(f"{SUBSCRIBERS}.import_subscriber"),
    )


# --- what needs somebody -------------------------------------------------------------------------


def attention(facts: Facts, links: Links) -> Iterator[Line]:
    """The gravest first: what stops mail now, then what waits for a decision."""
    if unserved := facts.without_sender():
        yield _unserved(unserved, facts, links)
    for pause in facts.pauses:
        yield _pause(pause, links)
    if "pauses" in facts.more:
        yield _more("paused transports", facts.more["pauses"], links.pauses())
    for one in facts.paused:
        why = capfirst(one.status_reason) or "Paused"
        yield Line(
            f"{one.name} is paused",
            links.campaign(one),
            _sentence(why) + (f" {AFTER_BRAKE}" if one.braked else ""),
            str(one.account),
            True,
        )
    if "paused" in facts.more:
        yield _more("paused campaigns", None, links.campaigns("paused"))
    for held in facts.held:
        yield _held(held, links)
    if "held" in facts.more:
        yield _more("campaigns with messages in doubt", None, links.doubt(None))
    for one in facts.back:
        yield Line(
            f"{one.name} is a draft again",
            links.campaign(one),
            _sentence(capfirst(one.status_reason)) + " It has to be approved anew.",
            str(one.account),
        )
    for one in facts.second:
        who = one.created_by.get_username() if one.created_by else "somebody"
        yield Line(
            f"{one.name} waits for a second person",
            links.campaign(one),
            f"A draft by {who}, who may not approve it: this account asks for somebody else.",
            str(one.account),
        )
    if "back" in facts.more or "second" in facts.more:
        yield _more("drafts that wait for somebody", None, links.campaigns("draft"))
    for job in facts.imports:
        yield Line(
            f"The import of {job.file_name} failed",
            links.to(f"{SUBSCRIBERS}_importjob_change", job.pk),
            _sentence(capfirst(job.error) or "It says not why"),
            str(job.account),
        )
    if "imports" in facts.more:
        failed = links.to(f"{SUBSCRIBERS}_importjob_changelist", query="status__exact=failed")
        yield _more("failed imports", facts.more["imports"], failed)


def _more(what: str, number: int | None, url: str) -> Line:
    """That there are more; ``number`` None: nobody counted how many."""
    return Line(f"And {f'{number:,} ' if number else ''}more {what}", url, "")


def _unserved(campaigns: list[Campaign], facts: Facts, links: Links) -> Line:
    start = "“manage.py run_sender” starts one"
    senders = links.allowed(f"{SENDING}.view_worker", f"{SENDING}_worker_changelist")
    if not facts.served:
        why = f"Something is due, and nothing leaves before one runs: {start}."
        return Line("No sender is alive", senders, why, grave=True)
    named = ", ".join(one.name for one in campaigns[:3])
    more = f" and {len(campaigns) - 3} more" if len(campaigns) > 3 else ""
    why = f"{capfirst(NONE_SERVES)}. {capfirst(start)} for everything."
    return Line(f"No sender serves {named}{more}", senders, why, grave=True)


def _pause(pause: Any, links: Links) -> Line:
    whose = str(pause.account) if pause.account else None
    then = next_try(pause.probe_at, pause.db_now, may_try=links.may_try(pause))
    advice = remedy(pause.stage, pause.code, whose=whose, said=pause.reason, then=then)
    words = trouble(pause.stage, pause.code, whose=whose, said=pause.reason)
    return Line(
        f"Transport {pause.alias} {words}",
        links.pause(pause),
        f"No mail{f' of {whose}' if whose else ''} leaves by it. {advice}",
        whose or "",
        True,
    )


def _held(held: Held, links: Links) -> Line:
    more = "+" if held.rows >= COUNTED else ""
    rows = f"{held.rows:,}{more} {'message' if held.rows == 1 else 'messages'}"
    what = held.name if held.campaign else "Single messages"
    return Line(
        f"{what}: {rows} in doubt",
        links.doubt(held.campaign),
        f"Nobody knows whether {'it was' if held.rows == 1 else 'they were'} taken. Somebody "
        "decides: send again, or treat as sent.",
        held.account,
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


# --- campaigns -----------------------------------------------------------------------------------


def _waits(campaign: Campaign, facts: Facts) -> str:
    """Why nothing of it leaves, as far as the page knows anyway; "": it does. ``sending.waits``
    asks for each campaign."""
    account = campaign.account
    for pause in facts.pauses:
        if pause.alias == account.transport and pause.account_id in (None, account.pk):
            words = trouble(pause.stage, pause.code, said=pause.reason)
            return f"transport {pause.alias} {words}"
    return without_sender(facts.served, campaign.pk)


def _running(one: Running, links: Links, waits: str = "") -> Row:
    campaign, counts = one.campaign, one.counts
    audience = max(campaign.audience, sum(counts.values()))
    done = max(0, audience - open_rows(counts))
    built = campaign.built_at is not None
    speed = rate_words(one.rate.per_second) if one.rate.per_second > 0 else "nothing"
    parts = [f"{speed} just now", eta_words(counts, one.rate.per_second, built=built)]
    if waits:
        # What just left was the last for now.
        parts = [f"waits: {waits}"]
    return Row(
        name=campaign.name,
        url=links.progress(campaign),
        account=str(campaign.account),
        done=done,
        audience=audience,
        far=f"{done:,} of {audience:,}{'' if built else ' so far'}",
        told=_sentence(capfirst("; ".join(filter(None, parts)))),
    )


def _scheduled(campaign: Campaign, links: Links, now: datetime | None) -> Row:
    by = campaign.approved_by.get_username() if campaign.approved_by else ""
    starts = campaign.scheduled_for
    is_due = starts is not None and now is not None and starts <= now
    return Row(
        name=campaign.name,
        url=links.campaign(campaign),
        account=str(campaign.account),
        when=_local(campaign.scheduled_for, campaign.account),
        told="Due since" if is_due else "Starts",
        by=by,
    )


def _draft(campaign: Campaign, links: Links) -> Row:
    return Row(
        name=campaign.name,
        url=links.campaign(campaign),
        account=str(campaign.account),
        when=_local(campaign.created, campaign.account),
        by=campaign.created_by.get_username() if campaign.created_by else "",
    )


def _sent(campaign: Campaign, counts: dict[str, int], links: Links) -> Row:
    total = max(campaign.audience, sum(counts.values()))
    return Row(
        name=campaign.name,
        url=links.progress(campaign),
        account=str(campaign.account),
        when=_local(campaign.finished_at, campaign.account),
        far=f"{counts.get('sent', 0):,} of {total:,}",
    )


def _local(moment: datetime | None, account: Account) -> str:
    if moment is None:
        return "-"
    local = timezone.localtime(moment, zone_named(account.timezone))
    return f"{date_format(local, 'j M Y, H:i')} {local.tzname()}"


# --- the first time ------------------------------------------------------------------------------


def _steps(start: Start, links: Links) -> Iterator[Step]:
    yield Step(
        "An account",
        "who sends: its name, address and limits"
        if links.request.user.has_perm(f"{SUBSCRIBERS}.add_account")
        else "who sends; a superuser makes it and makes you a member",
        links.allowed(f"{SUBSCRIBERS}.add_account", f"{SUBSCRIBERS}_account_add"),
        start.account,
    )
    yield Step(
        "A segment",
        "the people whom a campaign can be for",
        links.allowed(f"{SUBSCRIBERS}.add_segment", f"{SUBSCRIBERS}_segment_add"),
        start.segment,
    )
    yield Step(
        "People",
        "import them from a file into the segment, or have them sign up",
        links.allowed(f"{SUBSCRIBERS}.import_subscriber", f"{SUBSCRIBERS}_subscriber_import"),
        start.people,
    )
    yield Step(
        "A campaign",
        "write it, look at it, test it; nothing is sent before somebody approves it",
        links.allowed(f"{CAMPAIGN}.add_campaign", f"{CAMPAIGN}_campaign_add"),
        start.campaign,
    )
