"""How long sending a campaign will take, told before it is approved.

The estimate is a pure function of the limits in force and of how fast it went lately. A limit
says "at least so long": retries, other campaigns beside it and a slow relay come on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import CharField, Count, F, Func, IntegerField, OuterRef, Subquery, Value

from campaigns.audience import addressed
from campaigns.forecasts import Duration
from campaigns.models import Campaign
from subscribers.conf import conf
from subscribers.models import Account

from .limits import slow_downs
from .limits.keys import account_key, configured_rates, is_of_domain, transport_key
from .limits.mailbox_providers import BY_DOMAIN, ascii_domain, group
from .models import Counted, LedgerCount
from .wording import limit_words, rate_words

#: Campaigns that say how fast it went lately, and the smallest that says anything.
RECENT = 10
LEAST_PEOPLE = 200
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of ``rate`` messages a second that ``people`` of a campaign fall under. ``of`` says
    it in words; ``slowed``: it is less than usual, because the other side asked for it."""

    of: str
    rate: float
    people: int
    hourly: bool = False
    slowed: bool = False

    @property
    def seconds(self) -> float:
        return self.people / self.rate


def estimate(people: int, bounds: Iterable[Bound], lately: float | None = None) -> Duration:
    """How long ``people`` messages take within these limits. ``lately`` is what really went, in
    messages a second, None where nobody knows. Pure."""
    if people <= 0:
        return Duration(0.0, "", "Nobody would get it.")
    tightest = max(bounds, key=lambda bound: bound.seconds, default=None)
    at_least = tightest.seconds if tightest is not None else 0.0
    as_lately = people / lately if lately else 0.0
    if tightest is not None and at_least >= as_lately:
        return Duration(at_least, tightest.of, _bound_words(tightest, people))
    if lately:
        words = (
            f"{_capital(span_words(as_lately))}, if it goes as fast as it did lately "
            f"({rate_words(lately)})."
        )
        return Duration(as_lately, "", words)
    words = "Nothing limits it here: how long it takes depends on the relay and on the senders."
    return Duration(None, "", words)


def _bound_words(bound: Bound, people: int) -> str:
    rate = rate_words(bound.rate, hourly=bound.hourly)
    whose = "" if bound.people == people else f", and {bound.people:,} of them are there"
    slow = ", because the other side asked to slow down" if bound.slowed else ""
    told = span_words(bound.seconds)
    at_least = "Less than a minute" if bound.seconds < 60 else f"{_capital(told)} at least"
    return f"{at_least}: the limit of {bound.of} is {rate}{slow}{whose}."


def span_words(seconds: float) -> str:
    """``less than a minute``, ``about 5 minutes``, ``about 3 hours``, ``about 2 days``."""
    if seconds < 60:
        return "less than a minute"
    for size, name in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= 1.5 * size or name == "minute":
            count = round(seconds / size)
            return f"about {count:,} {name}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def of_campaign(campaign: Campaign, people: int) -> Duration:
    """The estimate for a campaign to ``people``, from the limits that are in force now; four
    queries at most. Its account is read."""
    account = campaign.account
    return estimate(people, _bounds(campaign, account, people), lately(account.transport))


def _bounds(campaign: Campaign, account: Account, people: int) -> list[Bound]:
    rates = dict(configured_rates([(account.pk, account.max_per_hour)]))
    slowed = dict(slow_downs.slowed().values_list("key", "rate"))
    own = (transport_key(account.transport), account_key(account.pk))
    of_domains = [key for key in {*rates, *slowed} if is_of_domain(key)]
    shares = dict.fromkeys(own, people)
    shares |= _people_at(campaign, of_domains) if of_domains and people else {}
    bounds = []
    for key, share in sorted(shares.items()):
        rate = slowed.get(key, rates.get(key))
        if rate and share:
            bounds.append(
                Bound(
                    of=limit_words(key, account.name),
                    rate=rate,
                    people=share,
                    hourly=key == account_key(account.pk),
                    slowed=key in slowed,
                )
            )
    return bounds


def _people_at(campaign: Campaign, keys: Iterable[str]) -> dict[str, int]:
    """How many of the people have their mailboxes where these limits hold."""
    wanted = {key.removeprefix("domain:") for key in keys}
    domains = {domain for domain, provider in BY_DOMAIN.items() if provider in wanted}
    domains |= {ascii_domain(domain) for domain in conf.DOMAIN_GROUPS}
    domains |= wanted
    domain = Func(
        F("email_lower"), Value("@"), Value(-1), function="split_part", output_field=CharField()
    )
    rows = (
        addressed(campaign)
        .annotate(domain=domain)
        .filter(domain__in=sorted(domains))
        .order_by()
        .values_list("domain")
        .annotate(people=Count("pk"))
    )
    found: dict[str, int] = {}
    for name, count in rows:
        key = f"domain:{group(name)}"
        if group(name) in wanted:
            found[key] = found.get(key, 0) + count
    return found


def lately(alias: str) -> float | None:
    """Messages a second of the fastest of the last campaigns over this transport; None where none
    was large enough. The fastest: others waited for retries, or were paused. One that lay still for
    an hour says nothing: it was paused, or finished and opened again for what was in doubt."""
    rows = LedgerCount.objects.filter(
        campaign=OuterRef("pk"),
        what=Counted.ROWS,
        hour__gt=OuterRef("started_at"),
        hour__lte=OuterRef("finished_at") - HOUR,
    )
    busy = rows.order_by().values("campaign").annotate(n=Count("hour", distinct=True)).values("n")
    last = (
        Campaign.objects.filter(
            account__transport=alias,
            status=Campaign.Status.SENT,
            audience__gte=LEAST_PEOPLE,
        )
        .order_by("-pk")
        .annotate(busy=Subquery(busy, output_field=IntegerField()))
        .values_list("audience", "started_at", "finished_at", "busy")[:RECENT]
    )
    rates = [
        people / max((finished - started).total_seconds(), 1.0)
        for people, started, finished, hours in last
        if started and finished and (hours or 0) >= whole_hours(started, finished)
    ]
    return max(rates, default=None)


def whole_hours(started: datetime, finished: datetime) -> int:
    """How many hours by UTC's clock began and ended between the two. Pure."""
    return max(0, int(finished.timestamp() // 3600) - int(started.timestamp() // 3600) - 1)
