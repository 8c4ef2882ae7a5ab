"""Letting an address go from the suppression list: by staff, or by the person's own new sign-up.

Neither subscribes anybody: what was unsubscribed or has left stays so.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest

from ..audit import record
from ..models import Account, Suppression
from ..suppression import is_suppressed
from .standing import known_as

Reason = Suppression.Reason

#: What staff may release: neither the person's own wish nor their complaint.
BY_STAFF = (Reason.MANUAL, Reason.HARD_BOUNCE)
#: What a person's own new confirmed sign-up lifts; of an erased person, what was known before.
BY_SIGNUP = (Reason.UNSUBSCRIBED, Reason.ERASED)
_FORMERLY = ("", Reason.UNSUBSCRIBED, Reason.HARD_BOUNCE)

#: What lets go of an entry that staff can't release.
ONLY = {
    Reason.UNSUBSCRIBED: "Only the person can take this back, by signing up again and confirming "
    "it by the link in the mail.",
    Reason.COMPLAINT: "Nothing takes this back: a person who called the mail spam gets none for "
    "ever, whatever they sign up to later.",
    Reason.ERASED: "The address itself is not known any more. Only the person can come back, by "
    "signing up again and confirming it by the link in the mail.",
}


class NotReleased(Exception):
    """It was not released; the message says why, in one plain sentence."""


def why_not(entry: Suppression) -> str:
    """Why staff can't release this entry, and what does; empty where they can. Pure."""
    if entry.reason in BY_STAFF or was_added_too(entry):
        return ""
    if entry.reason == Reason.ERASED and entry.former_reason not in _FORMERLY:
        return (
            "Nothing takes this back: before the erasure this person had complained, or had been "
            "added to this list by staff."
        )
    return ONLY[Reason(entry.reason)]


def was_added_too(entry: Suppression) -> bool:
    """Has the person unsubscribed, and staff have added the address besides? Pure."""
    return entry.reason == Reason.UNSUBSCRIBED and entry.former_reason == Reason.MANUAL


def version(entry: Suppression) -> str:
    """What an entry says now, in 64 characters: who saw this one releases this one. Pure."""
    moments = (entry.created, entry.expires)
    said = [
        str(entry.reason),
        entry.former_reason,
        entry.evidence,
        *(m and m.isoformat() for m in moments),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def release(
    entry_id: int,
    *,
    seen: str,
    words: str,
    by: Any = None,
    by_name: str = "",
    request: HttpRequest | None = None,
) -> Suppression:
    """Take an entry off the list, if it still is what was ``seen`` (its ``version``); returns it
    as it was. Of an address that staff added and whose person unsubscribed, only the staff's part
    goes. ``words``: the reason, for the record.

    Nobody is subscribed by it, and other entries of the address (for all accounts, say) hold on.
    Raises ``NotReleased``: gone, changed meanwhile, or not for staff to release; ``ValueError``
    without words.
    """
    if not words.strip():
        raise ValueError("say why it is released")
    with transaction.atomic():
        # The lock waits for whoever makes it stronger at this moment, and then reads what they
        # wrote.
        entry = Suppression.objects.select_for_update(of=("self",)).filter(pk=entry_id).first()
        if entry is None:
            raise NotReleased("It is on the list no more.")
        if why_not(entry):
            raise NotReleased(why_not(entry))
        if version(entry) != seen:
            raise NotReleased("It has changed meanwhile: look at it again.")
        if was_added_too(entry):
            Suppression.objects.filter(pk=entry.pk).update(former_reason="")
        else:
            Suppression.objects.filter(pk=entry.pk).delete()
        record(
            entry.account,
            "suppression.release",
            by=by,
            by_name=by_name,
            subject=entry.email or "",
            reason=words.strip(),
            detail=_told(entry),
            request=request,
        )
    return entry


def lift(account: Account, email: str) -> bool:
    """What a new, confirmed sign-up lifts from the account's list: the person's unsubscription, or
    their erasure, unless they had complained or staff had added the address. Call it in the
    transaction that confirms.

    ``False``: something else still suppresses the address (a complaint, say, or the list for all
    accounts); then nothing is lifted, and the person can't be confirmed.
    """
    mine = Suppression.objects.filter(account=account)
    with transaction.atomic():
        mine.filter(_own_wish(email)).delete()
        held = is_suppressed(account, email)
        if held:
            transaction.set_rollback(True)
    return not held


def _own_wish(email: str) -> Q:
    return Q(reason__in=BY_SIGNUP, former_reason__in=_FORMERLY) & known_as(email)


def listed(account: Account, email: str) -> list[str]:
    """The reasons for which the account's list has the address that ``lift`` takes off it."""
    rows = Suppression.objects.filter(_own_wish(email), account=account)
    return sorted(rows.values_list("reason", flat=True))


def _told(entry: Suppression) -> dict[str, Any]:
    return {
        "suppressed_for": entry.reason,
        "evidence": entry.evidence,
        "since": entry.created.isoformat(),
        "expires": entry.expires.isoformat() if entry.expires else None,
        "scope": "account" if entry.account_id else "all accounts",
    }
