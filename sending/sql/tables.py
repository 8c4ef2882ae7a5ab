"""The tables that the statements speak of, and a condition that many share."""

from __future__ import annotations

SEND = "sendonce_sending_send"
WORKER = "sendonce_sending_worker"
EVENT = "sendonce_sending_deliveryevent"
CONTENT = "sendonce_campaigns_content"
CAMPAIGN = "sendonce_campaigns_campaign"
INCLUDE = "sendonce_campaigns_campaign_segments"
EXCLUDE = "sendonce_campaigns_campaign_exclude_segments"
ACCOUNT = "sendonce_subscribers_account"
SUBSCRIBER = "sendonce_subscribers_subscriber"
MEMBERSHIP = "sendonce_subscribers_membership"
SUPPRESSION = "sendonce_subscribers_suppression"
PAUSE = "sendonce_sending_transportpause"
PROVIDER_EVENT = "sendonce_sending_providerevent"
COUNT = "sendonce_sending_webhookcount"
LIMIT = "sendonce_sending_ratelimit"
HEALTH = "sendonce_sending_campaignhealth"
ARCHIVED = "sendonce_sending_archivedcount"
LEDGER_CHANGE = "sendonce_sending_ledgerchange"
LEDGER_COUNT = "sendonce_sending_ledgercount"
LEDGER_MARK = "sendonce_sending_ledgermark"
# The rows of a lot, by their key whatever the statistics say. Of an array that a subquery makes the
# planner expects ten elements; for four hundred it would rather read a table of fifty thousand rows
# whole, each time. For one side of a join: asked of both, it may be gone through for each row.
IN_LOT = "ANY(ARRAY(SELECT unnest(%(ids)s::bigint[])))"

# Of these campaigns (an array; NULL: of all), what is not rolled up. See models.LedgerMark.
LEDGER_CHANGES = "sendonce_ledger_changes({})"

# What the partial indexes are about (see ``Send.queue``): where one of them is to be found, a
# statement says it so, and else by the status.
QUEUED, RETRY, IN_FLIGHT, IN_DOUBT = (f"s.queue = {number}" for number in (1, 2, 3, 4))

# What becomes of a row that would open, be closed or be canceled while an earlier hand-over of
# it is still in doubt: back in doubt. "Canceled" or "suppressed" would say that nothing left.
DOUBTED = "cardinality(s.doubt_tokens) > 0"

# Of an erased person: nothing of it is sent again, and no words that may name them are kept.
ERASED = "s.email IS NULL"

# By the person's own wish, and by the database's clock: no campaign until then.
PERSON_PAUSED = "COALESCE(p.paused_until > clock_timestamp(), false)"

# The address of the row is theirs no more: they changed it, or staff corrected it.
PERSON_MOVED = "p.email_lower <> s.email_lower"
