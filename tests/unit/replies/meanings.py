"""What a reply may become, as outcome and reason, and the form of the tables' rows."""

from __future__ import annotations

#: House, stage, basic code (None: no valid reply), enhanced code, text as it comes on the wire
#: without the basic code, outcome, reason.
Row = tuple[str, str, int | None, str, str, str, str]

SENT = ("sent", "accepted")
DEAD = ("bounced", "address_dead")

FULL = ("retry", "mailbox_full")
GREY = ("retry", "greylisted")
SLOWER = ("retry", "throttled")
LATER = ("retry", "transient")
LOST_BEFORE = ("retry", "connection_lost")
LATE_BEFORE = ("retry", "timeout")
GARBAGE_BEFORE = ("retry", "unreadable")
SPENT = ("retry", "quota")

POLICY = ("failed", "policy")
CONTENT = ("failed", "content")
QUOTA = ("failed", "quota")
LOGIN = ("failed", "credentials")
SENDER = ("failed", "sender_refused")
UNWANTED = ("failed", "address_refused")
UNKNOWN = ("failed", "unclassified")
LOCAL = ("failed", "refused_locally")

NO_RELAY = ("relay_down", "relay")
NO_LOGIN = ("relay_down", "credentials")
NO_SENDER = ("relay_down", "sender_refused")
NO_QUOTA = ("relay_down", "quota")
BLOCKED_HOST = ("relay_down", "policy")

LOST = ("in_doubt", "connection_lost")
LATE = ("in_doubt", "timeout")
GARBAGE = ("in_doubt", "unreadable")
