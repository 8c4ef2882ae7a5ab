"""The verbs as staff see them, and what came of one, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import CampaignError, WrongState
from ..models import Campaign

Status = Campaign.Status

#: Campaigns that a summary names, of each group.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb as staff see it. ``asks``: a page stands before it, so its button is a link.

    ``leads_to`` is the status that it ends in: a verb that finds it already was done before.
    ``told`` is one sentence beside the button: what happens, and what can't be taken back.
    """

    name: str
    label: str
    done: str
    permission: str
    states: tuple[str, ...]
    asks: bool = False
    leads_to: str = ""
    told: str = ""


APPROVE = Verb(
    "approve",
    "Approve",
    "Approved",
    "approve",
    (Status.DRAFT,),
    asks=True,
    leads_to=Status.APPROVED,
    told="Shows who gets it, what they get and when, and what was found; then asks.",
)
WITHDRAW = Verb(
    "withdraw",
    "Withdraw approval",
    "Approval withdrawn",
    "approve",
    (Status.APPROVED,),
    leads_to=Status.DRAFT,
    told="Makes it a draft again. It can be approved anew.",
)
PAUSE = Verb(
    "pause",
    "Pause",
    "Paused",
    "control",
    (Status.SENDING,),
    leads_to=Status.PAUSED,
    told="Nothing more leaves until it is resumed; what a mail server has just been given arrives.",
)
RESUME = Verb(
    "resume",
    "Resume",
    "Resumed",
    "control",
    (Status.PAUSED,),
    leads_to=Status.SENDING,
    told="Goes on where it stopped. Nobody gets it twice.",
)
CANCEL = Verb(
    "cancel",
    "Cancel campaign",
    "Canceled",
    "control",
    (Status.APPROVED, Status.SENDING, Status.PAUSED),
    asks=True,
    leads_to=Status.CANCELED,
    told="For good; asks first.",
)
VERBS = (APPROVE, WITHDRAW, PAUSE, RESUME, CANCEL)


def offered(status: str, permissions: set[str]) -> list[Verb]:
    """The verbs that a campaign in ``status`` allows to somebody with ``permissions``."""
    return [verb for verb in VERBS if status in verb.states and verb.permission in permissions]


#: Why a verb has nothing to do, where the reason is worth more than the two statuses.
_TOO_LATE: Mapping[tuple[str, str], str] = {
    ("cancel", Status.SENT): "everything had left before, there is nothing to cancel",
    ("cancel", Status.DRAFT): "it is a draft, nothing of it is sent anyway",
    ("pause", Status.SENT): "everything had left before, there is nothing to pause",
    ("pause", Status.APPROVED): "it has not started yet; withdraw its approval instead",
    ("withdraw", Status.SENDING): "sending has begun; pause or cancel it instead",
    ("withdraw", Status.PAUSED): "sending has begun; cancel it instead",
    ("withdraw", Status.SENT): "it was sent before",
}


def state(status: str) -> str:
    """A status behind "it is"."""
    label = str(Status(status).label)
    return f"a {label}" if status == Status.DRAFT else label


def is_waiting(status: str, waits: str) -> bool:
    """Whether it could be sent and nothing leaves; ``waits`` is of ``hooks.waits``, which tells
    of limits, too."""
    return status == Status.SENDING and waits.startswith("Waits")


def happens_next(told: Mapping[Status, str], status: str, *, waits: str, in_doubt: int) -> str:
    """The sentence under the state: ``told`` has it for each where nothing is odd."""
    if is_waiting(status, waits):
        return "Nothing of it leaves just now."
    if status == Status.APPROVED and waits:
        return "Nothing has been sent yet. A sender starts it as soon as one runs."
    if status == Status.SENT and in_doubt:
        are = "is" if in_doubt == 1 else "are"
        return f"Nothing more leaves by itself. {in_doubt:,} {are} in doubt: somebody decides."
    return told[Status(status)]


def is_done_before(verb: Verb, error: CampaignError) -> bool:
    """Was the verb refused because its effect is there already (a second click, a colleague)?"""
    return isinstance(error, WrongState) and error.found == verb.leads_to


def refusal(verb: Verb, error: CampaignError) -> str:
    """Why the verb did nothing, to stand after the campaign's name; no full stop."""
    if not isinstance(error, WrongState):
        return str(error)
    if is_done_before(verb, error):
        return f"it is {state(error.found)} already, nothing was changed"
    if error.found == "deleted":
        return "it was deleted meanwhile"
    return _TOO_LATE.get((verb.name, error.found)) or str(error)


def summary(verb: Verb, done: list[str], refused: Iterable[tuple[str, str]]) -> str:
    """One message about a verb on many: ``done`` are names, ``refused`` names with the reason.

    Each group names the first few, so that the message stays one.
    """
    parts = [f"{verb.done}: {_names(done)}."] if done else []
    by_reason: dict[str, list[str]] = {}
    for name, reason in refused:
        by_reason.setdefault(reason, []).append(name)
    parts += [
        f"Not {verb.done.lower()}: {_names(names)} ({reason})."
        for reason, names in by_reason.items()
    ]
    return " ".join(parts) or "No campaign was chosen."


def _names(names: list[str]) -> str:
    more = len(names) - NAMED
    named = ", ".join(names[:NAMED])
    if more > 0:
        named += f" and {more} more"
    return named if len(names) == 1 else f"{len(names)} campaigns, {named}"
