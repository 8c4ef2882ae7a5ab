"""Counting, and asking whether anything is open."""

from __future__ import annotations

from .counters import COUNTED
from .tables import (
    ACCOUNT,
    ARCHIVED,
    CAMPAIGN,
    IN_DOUBT,
    IN_FLIGHT,
    QUEUED,
    RETRY,
    SEND,
)

# Rows that are there, what is left of those that were pruned, and the counters of both (see
# ``models.counts``): one statement, so one snapshot, in which a batch of pruning is either both
# deleted and counted or neither.
COUNTS = f"""
WITH counted AS (
    SELECT s.status, s.reason, count(*) AS here, 0 AS archived, 0 AS counter FROM {SEND} s
    WHERE s.campaign_id = %(campaign)s GROUP BY s.status, s.reason
    UNION ALL
    SELECT a.status, a.reason, 0, a.number, 0 FROM {ARCHIVED} a WHERE a.campaign_id = %(campaign)s
    UNION ALL
    SELECT n.status, n.reason, 0, 0, n.number FROM {COUNTED} WHERE n.what = 0
)
SELECT c.audience, c.built_at IS NOT NULL, n.status, n.reason,
    sum(n.here)::bigint, sum(n.archived)::bigint, sum(n.counter)::bigint
FROM {CAMPAIGN} c LEFT JOIN counted n ON true
WHERE c.id = %(campaign)s GROUP BY c.audience, c.built_at, n.status, n.reason"""

# Open: somebody may still get it without a person deciding so. Each arm has its partial index.
OPEN_ROWS = f"""
SELECT EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND {QUEUED})
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND {RETRY})
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s
        AND {IN_FLIGHT})
    OR EXISTS (SELECT 1 FROM {SEND} s JOIN {ACCOUNT} a ON a.id = s.account_id
        WHERE s.campaign_id = %(campaign)s AND {IN_DOUBT} AND s.settle_at IS NOT NULL
          AND (s.replay_until > clock_timestamp() OR a.in_doubt_policy <> 'hold'))"""

# For --drain: is there something to do now, or within the patience (seconds)? A paused
# campaign's queue is not work; what is in flight anywhere is.
HAS_WORK = f"""
WITH scope AS (
    SELECT c.id, c.status, c.built_at, c.scheduled_for FROM {CAMPAIGN} c
    WHERE c.status IN ('approved', 'sending')
      AND (%(campaign)s::bigint IS NULL OR c.id = %(campaign)s::bigint)
)
SELECT EXISTS (SELECT 1 FROM scope WHERE status = 'approved'
        AND scheduled_for <= clock_timestamp())
    OR EXISTS (SELECT 1 FROM scope WHERE status = 'sending' AND built_at IS NULL)
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE {IN_FLIGHT}
        AND (%(campaign)s::bigint IS NULL OR s.campaign_id = %(campaign)s::bigint))
    OR EXISTS (SELECT 1 FROM scope c WHERE c.status = 'sending' AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND {QUEUED}))
    OR EXISTS (SELECT 1 FROM scope c WHERE c.status = 'sending' AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND {IN_DOUBT}
          AND s.settle_at <= clock_timestamp() + %(patience)s * interval '1 second'))
    OR EXISTS (SELECT 1 FROM scope c WHERE c.status = 'sending' AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND {RETRY}
          AND (s.reason = 'rate_limited'
            OR s.next_attempt_at <= clock_timestamp() + %(patience)s * interval '1 second')))
    OR (%(campaign)s::bigint IS NULL AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id IS NULL AND ({QUEUED}
          OR ({RETRY}
            AND s.next_attempt_at <= clock_timestamp() + %(patience)s * interval '1 second'))))"""
