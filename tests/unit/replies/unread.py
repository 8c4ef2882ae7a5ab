"""Replies that no rule knows: a cautious fallback decides, and ``known`` is False."""

from __future__ import annotations

from .meanings import DEAD, GARBAGE, GARBAGE_BEFORE, LATER, UNKNOWN, Row

UNREAD: list[Row] = [
    # nobody knows these; the verdict is the cautious one, and staff see it
    ("nobody", "rcpt", 550, "", "Zonk frob 17", *DEAD),
    ("nobody", "rcpt", 554, "", "Transaction failed", *DEAD),
    ("nobody", "rcpt", 599, "", "what is this", *DEAD),
    ("nobody", "rcpt", 551, "", "", *DEAD),
    ("nobody", "rcpt", 550, "5.0.0", "5.0.0 Zonk", *DEAD),
    ("nobody", "rcpt", 550, "5.2.0", "5.2.0 Zonk", *DEAD),
    ("nobody", "rcpt", 550, "5.3.0", "5.3.0 Zonk", *UNKNOWN),
    ("nobody", "rcpt", 550, "5.4.1", "5.4.1 Zonk", *UNKNOWN),
    ("nobody", "rcpt", 501, "5.5.4", "5.5.4 Invalid arguments", *UNKNOWN),
    ("nobody", "rcpt", 501, "", "Syntax error in parameters or arguments", *UNKNOWN),
    ("nobody", "rcpt", 502, "", "command not implemented", *UNKNOWN),
    ("nobody", "rcpt", 502, "", "", *UNKNOWN),
    ("nobody", "data", 554, "", "Transaction failed", *UNKNOWN),
    ("nobody", "data", 554, "", "no valid recipients", *UNKNOWN),
    ("nobody", "dot", 554, "", "Transaction failed", *UNKNOWN),
    ("nobody", "dot", 550, "", "", *UNKNOWN),
    ("nobody", "dot", 550, "5.1.0", "5.1.0 Zonk", *UNKNOWN),
    ("nobody", "dot", 554, "5.2.0", "5.2.0 STOREDRV.Deliver.Exception:StorageTransientException",
     *UNKNOWN),
    ("nobody", "body", 554, "", "Zonk", *UNKNOWN),
    ("nobody", "rcpt", 451, "", "Zonk frob 17", *LATER),
    ("nobody", "dot", 430, "", "", *LATER),
    ("nobody", "dot", 499, "", "Zonk", *LATER),
    ("nobody", "data", 250, "", "ok", *GARBAGE_BEFORE),
    ("nobody", "rcpt", 354, "", "go ahead", *GARBAGE_BEFORE),
    ("nobody", "dot", 354, "", "go ahead", *GARBAGE),
]  # fmt: skip
