"""Why a row is not handed over: what the last look finds, in words."""

from __future__ import annotations

#: By what ``sql.HAND_OVER`` may find, besides ``go``; the reason of the row where that closes it.
WITHHELD = {
    "canceled": "the campaign was canceled",
    "not_sending": "the campaign is paused",
    "expired": "the message expired before it could be sent",
    "suppressed": "the address is suppressed",
    "erased": "the person was erased",
    "unsubscribed": "the person unsubscribed",
    "left": "the person left the segment",
    "paused": "the person paused their mail for a while",
    "moved": "the person changed their address",
    "held": "it can't be repeated without risk any more: it is held for evidence or a person",
}
