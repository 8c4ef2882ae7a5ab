"""What this app needs from the apps above it; they fill the hooks in their ``ready()``.

An empty hook is a working project: nothing is installed above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from django.http import HttpRequest

    from .models import Account, Subscriber

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """One replaceable function. Calling an unfilled hook returns its default."""

    def __init__(self, default: Callable[P, R]) -> None:
        self.default = default
        self._filled: Callable[P, R] | None = None

    def fill(self, function: Callable[P, R]) -> None:
        """Set the implementation; filling it again replaces it (reload, tests)."""
        self._filled = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (self._filled or self.default)(*args, **kwargs)


@dataclass(frozen=True)
class Message:
    """A message to one person. ``subject``, ``text`` and ``html`` (blank: text only) are merge
    templates, ``context`` is the plain data that they see. ``kind`` and ``key`` name it: asked
    for twice it is sent once. What has not left by ``expires`` never does."""

    account: Account
    kind: str
    key: str
    to: str
    subject: str
    text: str
    expires: datetime
    html: str = ""
    context: dict[str, Any] = field(default_factory=dict)
    subscriber: Subscriber | None = None


def _withdraw_nothing(subscriber_ids: list[int]) -> int:
    return 0


def _nothing_to_note(subscriber_id: int, campaign_id: int) -> None:
    return None


def _no_web_version(subscriber_id: int, campaign_id: int) -> str | None:
    return None


#: ``(subscriber id, campaign id) -> HTML or None``: one person's message, for the browser.
web_version: Hook[[int, int], str | None] = Hook(_no_web_version)

#: ``(subscriber ids) -> rows withdrawn``: called after people left, paused or changed their
#: address, inside their transaction's ``on_commit``; withdraws open rows of running campaigns that
#: no longer reach them, and lets untried ones follow to a new address.
withdraw_leavers: Hook[[list[int]], int] = Hook(_withdraw_nothing)


#: ``(subscriber id, campaign id)``: the person has just unsubscribed by a link of that campaign, in
#: the caller's transaction; for the campaign's report.
left_through: Hook[[int, int], None] = Hook(_nothing_to_note)


def _send_nothing(message: Message) -> int | None:
    return None


def _nothing_wrong(source: str, html: bool) -> str:
    return ""


def _no_data(account_id: int, subscriber_id: int | None, email: str) -> dict[str, Any]:
    return {}


def _nothing_to_erase(
    account_id: int, subscriber_id: int | None, email: str, email_hash: str
) -> dict[str, int]:
    return {}


def _no_links(subscriber: Subscriber, request: HttpRequest) -> list[tuple[str, str]]:
    return []


#: ``(message) -> its id``: queue it in the caller's transaction; workers send it once that has
#: committed, and never the request. ``None``: nothing is installed that sends.
send_message: Hook[[Message], int | None] = Hook(_send_nothing)

#: ``(merge template, is it HTML) -> what is wrong with it``, in words with line and column; "":
#: nothing.
check_template: Hook[[str, bool], str] = Hook(_nothing_wrong)

#: ``(account id, subscriber id, address) -> plain JSON data``: what the apps above know of a
#: person, under a name for each kind of thing.
personal_data: Hook[[int, int | None, str], dict[str, Any]] = Hook(_no_data)

#: ``(account id, subscriber id, address, keyed hash) -> rows by kind``: make the apps above forget
#: a person, in the caller's transaction; the hash stays where the address was.
erase_personal_data: Hook[[int, int | None, str, str], dict[str, int]] = Hook(_nothing_to_erase)

#: ``(subscriber, request) -> [(label, URL), ...]``: pages of the apps above about a person, those
#: that this request may open. Asked by the person's page.
links: Hook[[Subscriber, HttpRequest], list[tuple[str, str]]] = Hook(_no_links)
