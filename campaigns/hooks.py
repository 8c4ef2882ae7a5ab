"""What campaigns need from the app that sends; ``sending`` fills the hooks in ``ready()``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subscribers.hooks import Hook

from .forecasts import Duration, TransportState

if TYPE_CHECKING:
    from django.http import HttpRequest

    from subscribers.models import Account

    from .content import CompiledContent
    from .models import Campaign
    from .test_sends import Trial


def _no_open_rows(campaign_id: int) -> bool:
    return False


def _cancel_nothing(campaign_id: int) -> int:
    return 0


def _no_counts(campaign_id: int) -> dict[str, int]:
    return {}


def _no_brakes(campaign_id: int) -> list[tuple[str, str]]:
    return []


def _waits_for_nothing(campaign_id: int) -> str:
    return ""


def _no_duration(campaign: Campaign, people: int) -> Duration | None:
    return None


def _no_transport(account_id: int, alias: str) -> TransportState:
    return TransportState()


def _has_sender() -> bool:
    return True


def _no_links(campaign: Campaign, request: HttpRequest) -> list[tuple[str, str]]:
    return []


def _no_source(
    account: Account,
    content: CompiledContent,
    context: Mapping[str, Any],
    email: str,
    campaign_id: int,
    subscriber_id: int,
) -> bytes | None:
    return None


def _no_trials(
    account: Account,
    content: CompiledContent,
    context: dict[str, Any],
    emails: Sequence[str],
    key: str,
) -> bool | None:
    return None


def _no_states(account: Account, key: str) -> list[Trial]:
    return []


#: ``(campaign id) -> bool``: is any row of it open? Asked by ``finish`` behind the gate.
open_rows: Hook[[int], bool] = Hook(_no_open_rows)

#: ``(campaign id) -> rows canceled``: cancel what is queued, in retry or claimed.
cancel_rows: Hook[[int], int] = Hook(_cancel_nothing)

#: ``(campaign id) -> {status: rows, ..., "audience": people}``.
counts: Hook[[int], dict[str, int]] = Hook(_no_counts)

#: ``(campaign id) -> [(what, its count and limit in words), ...]``: what may pause it.
brakes: Hook[[int], list[tuple[str, str]]] = Hook(_no_brakes)

#: ``(campaign id) -> a sentence``: what a campaign waits for that could be sent, or what to
#: do about one that was paused by itself; "": nothing.
waits: Hook[[int], str] = Hook(_waits_for_nothing)

#: ``(campaign, people) -> Duration``: how long sending it to so many will take; its account is
#: read. ``None``: nothing is installed that sends.
duration: Hook[[Campaign, int], Duration | None] = Hook(_no_duration)

#: ``(account id, alias) -> TransportState``: whether that account's transport takes mail now.
transport_state: Hook[[int, str], TransportState] = Hook(_no_transport)

#: ``() -> bool``: does anything run that sends? Told to whoever approves; it hinders nothing.
has_sender: Hook[[], bool] = Hook(_has_sender)

#: ``(campaign, request) -> [(label, URL), ...]``: the pages about a campaign that this request
#: may open, the most telling first (progress, report, doubt). Asked by the campaign's page.
links: Hook[[Campaign, HttpRequest], list[tuple[str, str]]] = Hook(_no_links)

#: ``(account, content, context, address, campaign id, subscriber id) -> bytes``: the message (RFC
#: 5322) as a relay would get it; ids are 0 where there is none yet. Raises ``ValueError`` with the
#: reason when none can be made. ``None``: nothing is installed that sends.
message_source: Hook[[Account, CompiledContent, Mapping[str, Any], str, int, int], bytes | None] = (
    Hook(_no_source)
)

#: ``(account, content, context, addresses, key) -> bool``: queue a test message to each, in the
#: caller's transaction. False: this key queued them before. Raises ``ValueError`` when the key
#: stands for other messages. ``None``: nothing is installed that sends.
send_tests: Hook[[Account, CompiledContent, dict[str, Any], Sequence[str], str], bool | None] = (
    Hook(_no_trials)
)

#: ``(account, key) -> [Trial, ...]``: how the tests of this key stand; none for an unknown key.
test_states: Hook[[Account, str], list[Trial]] = Hook(_no_states)
