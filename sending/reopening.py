"""A campaign opens again with a row of it."""

from __future__ import annotations

from campaigns import lifecycle


def reopen_for_row(campaign_id: int) -> None:
    """A row of the campaign has opened from held doubt: open the campaign with it if it was
    ``sent``, and wake the workers. In the transaction that opened the row, behind the
    campaign's gate (shared is enough: it keeps ``finish`` out)."""
    if lifecycle.reopen(campaign_id, "a message in doubt turned out not to have been accepted"):
        lifecycle.notify(campaign_id)
