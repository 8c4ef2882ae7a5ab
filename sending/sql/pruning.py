"""Rows of campaigns that are over become numbers."""

from __future__ import annotations

from .tables import ARCHIVED, CAMPAIGN, EVENT, PROVIDER_EVENT, SEND

# Over, and for long: a cancel leaves no moment on the campaign, but each row that it closed has an
# event of then, by which it stays.
_OVER = """(c.status = 'sent' AND c.finished_at < {before}
    OR c.status = 'canceled' AND COALESCE(c.started_at, c.approved_at, c.created) < {before})"""
_BEFORE = "clock_timestamp() - %(days)s * interval '1 day'"

# What a row may be when it goes: ended, nothing of it in doubt (an acceptance of an earlier
# hand-over may still come), and nothing said of it lately, by whomever.
_CLOSED = """(s.status = 'sent' OR s.status IN ('bounced', 'failed', 'suppressed', 'canceled')
    AND cardinality(s.doubt_tokens) = 0)"""
_PRUNABLE = f"""s.campaign_id = %(campaign)s AND {_CLOSED}
    AND COALESCE(GREATEST(s.handed_at, s.sent_at) < {_BEFORE}, true)
    AND NOT EXISTS (SELECT 1 FROM {EVENT} e WHERE e.send_id = s.id AND e.at >= {_BEFORE})"""

OVER_CAMPAIGNS = f"""
SELECT c.id, c.name FROM {CAMPAIGN} c
WHERE {_OVER.format(before=_BEFORE)}
  AND (%(campaign)s::bigint IS NULL OR c.id = %(campaign)s::bigint)
  AND EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id)
ORDER BY c.id"""

# Behind the gate: it may have been opened again since it was looked for.
IS_OVER = f"""
SELECT 1 FROM {CAMPAIGN} c WHERE c.id = %(campaign)s AND {_OVER.format(before=_BEFORE)}"""

COUNT_PRUNABLE = f"""
SELECT count(*) FILTER (WHERE {_PRUNABLE}), count(*)
FROM {SEND} s WHERE s.campaign_id = %(campaign)s"""

# The next rows by id, whatever they are: a slice costs the same however many stay. Nobody waits
# in a circle: rows are locked in ascending order by everybody.
LOCK_SLICE = f"""
SELECT s.id FROM {SEND} s
WHERE s.campaign_id = %(campaign)s AND s.id > %(after)s
ORDER BY s.id LIMIT %(size)s FOR UPDATE OF s"""

# Second statement, with a snapshot younger than the locks: what was told of a row while we waited
# for it is seen. From here on nobody changes these rows, nor commits an event of them.
DOOMED = f"""
SELECT s.id FROM {SEND} s WHERE s.id = ANY(%(ids)s::bigint[]) AND {_PRUNABLE}"""

# Before the rows, by which their counters find the campaign (see ``models.counts``).
PRUNE_EVENTS_OF = f"""
WITH events AS (
    DELETE FROM {EVENT} e WHERE e.send_id = ANY(%(ids)s::bigint[]) RETURNING e.event_id
)
UPDATE {PROVIDER_EVENT} p SET recipient = '', text = '' WHERE p.id IN (
    SELECT o.id FROM {PROVIDER_EVENT} o JOIN events e ON e.event_id = o.event_id
    WHERE o.applied_at IS NOT NULL AND o.recipient <> '' FOR UPDATE OF o SKIP LOCKED)"""

# What goes and what is counted is one set. In order of the key, so that two processes add to the
# same numbers in the same order.
PRUNE_ROWS = f"""
WITH rows AS (
    DELETE FROM {SEND} s WHERE s.id = ANY(%(ids)s::bigint[]) RETURNING s.status, s.reason
), counted AS (
    INSERT INTO {ARCHIVED} AS a (campaign_id, status, reason, number, at)
    SELECT %(campaign)s, r.status, r.reason, count(*), clock_timestamp() FROM rows r
    GROUP BY r.status, r.reason ORDER BY r.status, r.reason
    ON CONFLICT (campaign_id, status, reason)
    DO UPDATE SET number = a.number + excluded.number, at = excluded.at
)
SELECT count(*) FROM rows"""
