"""Rows that must not be sent any more."""

from __future__ import annotations

from .tables import (
    CAMPAIGN,
    DOUBTED,
    EVENT,
    INCLUDE,
    MEMBERSHIP,
    PERSON_MOVED,
    PERSON_PAUSED,
    QUEUED,
    RETRY,
    SEND,
    SUBSCRIBER,
)

# In slices, so that a million rows do not make one transaction of a minute.
CANCEL_ROWS = f"""
WITH doomed AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id = %(campaign)s AND s.status IN ('queued', 'retry', 'claimed')
    ORDER BY s.id LIMIT %(size)s FOR NO KEY UPDATE OF s
), closed AS (
    UPDATE {SEND} s SET
        status = CASE WHEN {DOUBTED} THEN 'in_doubt' ELSE 'canceled' END,
        claim_token = CASE WHEN {DOUBTED} THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
        doubt_tokens = CASE WHEN {DOUBTED} THEN trim_array(s.doubt_tokens, 1)
            ELSE s.doubt_tokens END,
        lease_until = NULL, worker_id = NULL, reason = 'canceled'
    FROM doomed WHERE s.id = doomed.id AND s.status IN ('queued', 'retry', 'claimed')
    RETURNING s.id, s.account_id, s.status
), noted AS (
    INSERT INTO {EVENT} (send_id, account_id, kind, stage, enhanced, text, reason, by_name, at)
    SELECT id, account_id, status, 'local', '', %(text)s, 'canceled', '', clock_timestamp()
    FROM closed
)
SELECT count(*) FROM closed"""

# A cancel that died half-way. Claimed rows need no look: hand-over or rescue closes them.
CANCELED_WITH_OPEN_ROWS = f"""
SELECT c.id FROM {CAMPAIGN} c
WHERE c.status = 'canceled' AND (
    EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND {QUEUED})
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND {RETRY}))"""

LEAVERS_CAMPAIGNS = f"""
SELECT DISTINCT s.campaign_id FROM {SEND} s JOIN {CAMPAIGN} c ON c.id = s.campaign_id
WHERE s.subscriber_id = ANY(%(subscribers)s::bigint[]) AND s.status IN ('queued', 'retry')
  AND c.status IN ('sending', 'paused')"""

# Before anybody's row follows to another address: a build counts people in the snapshot in which
# it inserts them, and no address may come to another row between the two. Its first statement
# takes the same row.
HOLD_BUILD = f"""
SELECT 1 FROM {CAMPAIGN} c WHERE c.id = %(campaign)s AND EXISTS (
    SELECT 1 FROM {SEND} s JOIN {SUBSCRIBER} p ON p.id = s.subscriber_id
    WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = ANY(%(subscribers)s::bigint[])
      AND s.status IN ('queued', 'retry') AND {PERSON_MOVED})
FOR SHARE OF c"""

# The rows' locks, so that what comes next reads people as they are once nobody else is at the rows.
LOCK_LEAVERS = f"""
SELECT s.id FROM {SEND} s
WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = ANY(%(subscribers)s::bigint[])
  AND s.status IN ('queued', 'retry')
ORDER BY s.id FOR NO KEY UPDATE OF s"""

# Who changed their address gets the message there, as long as nothing of it was tried. One whose
# new address has a row already is left as they are, and found to have moved.
FOLLOW_MOVED = f"""
WITH found AS MATERIALIZED (
    SELECT s.id, p.email FROM {SEND} s JOIN {SUBSCRIBER} p ON p.id = s.subscriber_id
    WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = ANY(%(subscribers)s::bigint[])
      AND s.status IN ('queued', 'retry') AND s.attempts = 0 AND NOT {DOUBTED}
      AND s.frozen IS NULL AND {PERSON_MOVED}
      AND NOT EXISTS (SELECT 1 FROM {SEND} o
        WHERE o.campaign_id = s.campaign_id AND o.email_lower = p.email_lower)
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET email = found.email FROM found WHERE s.id = found.id"""

# All of a campaign's, before the sweep counts: whoever has a former address now is another
# recipient, and not the one whose row still has it.
FOLLOW_ALL_MOVED = FOLLOW_MOVED.replace(" AND s.subscriber_id = ANY(%(subscribers)s::bigint[])", "")

# The last four findings of the hand-over, in the same order.
WITHDRAW_LEAVERS = f"""
WITH found AS MATERIALIZED (
    SELECT s.id, CASE
        WHEN p.status <> 'confirmed' THEN 'unsubscribed'
        WHEN NOT EXISTS (
            SELECT 1 FROM {MEMBERSHIP} m JOIN {INCLUDE} i ON i.segment_id = m.segment_id
            WHERE i.campaign_id = s.campaign_id AND m.subscriber_id = p.id
              AND m.left_at IS NULL) THEN 'left'
        WHEN {PERSON_PAUSED} THEN 'paused'
        WHEN %(moved)s AND {PERSON_MOVED} THEN 'moved' END AS why
    FROM {SEND} s JOIN {SUBSCRIBER} p ON p.id = s.subscriber_id
    WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = ANY(%(subscribers)s::bigint[])
      AND s.status IN ('queued', 'retry')
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET
    status = CASE WHEN {DOUBTED} THEN 'in_doubt' ELSE 'suppressed' END,
    claim_token = CASE WHEN {DOUBTED} THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN {DOUBTED} THEN trim_array(s.doubt_tokens, 1)
        ELSE s.doubt_tokens END,
    reason = found.why
FROM found WHERE s.id = found.id AND found.why IS NOT NULL
RETURNING s.id, s.account_id, s.status, s.reason"""
