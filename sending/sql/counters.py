"""The counters of the ledger: read, rolled up, compared with the rows and mended.

The triggers that write them are in migration 0005; ``what`` is ``models.Counted``.
"""

from __future__ import annotations

from .tables import (
    ARCHIVED,
    CAMPAIGN,
    EVENT,
    LEDGER_CHANGE,
    LEDGER_CHANGES,
    LEDGER_COUNT,
    LEDGER_MARK,
    SEND,
)

HOUR = "date_bin('1 hour', {}, timestamptz '1970-01-01 00:00:00+00')"

COUNTED = f"""(
    SELECT t.what, t.status, t.reason, t.hour, t.number FROM {LEDGER_COUNT} t
    WHERE t.campaign_id = %(campaign)s
    UNION ALL
    SELECT t.what, t.status, t.reason, t.hour, t.number
    FROM {LEDGER_CHANGES.format("ARRAY[%(campaign)s::bigint]")} t) n"""

TOTALS = f"""
SELECT n.status, n.reason, sum(n.number)::bigint FROM {COUNTED} WHERE n.what = 0
GROUP BY n.status, n.reason HAVING sum(n.number) <> 0 ORDER BY n.status, n.reason"""

# With the campaign's own numbers, and so that one without rows is told from none.
BY_STATUS = f"""
SELECT c.audience, n.status, sum(n.number)::bigint
FROM {CAMPAIGN} c LEFT JOIN {COUNTED} ON n.what = 0
WHERE c.id = %(campaign)s GROUP BY c.audience, n.status"""

# The same with its reasons, for pages. One statement: also where a host has put the request into a
# transaction of its own, audience and rows are of one moment.
WITH_CAMPAIGN = f"""
SELECT c.audience, c.built_at IS NOT NULL, n.status, n.reason, sum(n.number)::bigint
FROM {CAMPAIGN} c LEFT JOIN {COUNTED} ON n.what = 0
WHERE c.id = %(campaign)s GROUP BY c.audience, c.built_at, n.status, n.reason"""

BY_HOUR = f"""
SELECT n.hour, n.status, n.reason, sum(n.number)::bigint FROM {COUNTED} WHERE n.what = 0
GROUP BY n.hour, n.status, n.reason HAVING sum(n.number) <> 0
ORDER BY n.hour, n.status, n.reason"""

EVENTS_BY_HOUR = f"""
SELECT n.hour, n.status, n.reason, sum(n.number)::bigint FROM {COUNTED} WHERE n.what <> 0
GROUP BY n.hour, n.status, n.reason HAVING sum(n.number) <> 0
ORDER BY n.hour, n.status, n.reason"""

# Whoever rolls up or mends; the others come again. ("SCNT", 1), as in the migration.
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(1396919892, 1)"
LOCK = "SELECT pg_advisory_xact_lock(1396919892, 1)"

# Of the transaction: the changes are found by their key whatever the statistics say.
BY_KEY = "SET LOCAL enable_seqscan = off"

# What is taken away and what is added is one set, in one statement: a reader sees all of it before
# or all of it after. In order of the key, so that two who do it all the same wait in no circle.
COMPACT = f"""
WITH taken AS (
    DELETE FROM {LEDGER_CHANGE} t WHERE t.id = ANY (ARRAY(
        SELECT o.id FROM {LEDGER_CHANGE} o WHERE o.id > (SELECT sendonce_ledger_mark())
        ORDER BY o.id LIMIT %(size)s FOR UPDATE SKIP LOCKED))
    RETURNING t.id, t.campaign_id, t.what, t.status, t.reason, t.hour, t.number
), added AS (
    INSERT INTO {LEDGER_COUNT} AS c (campaign_id, what, status, reason, hour, number)
    SELECT n.campaign_id, n.what, n.status, n.reason, n.hour, n.number FROM (
        SELECT t.campaign_id, t.what, t.status, t.reason, t.hour, sum(t.number) AS number
        FROM taken t GROUP BY t.campaign_id, t.what, t.status, t.reason, t.hour) n
    WHERE n.number <> 0 AND EXISTS (SELECT 1 FROM {CAMPAIGN} c WHERE c.id = n.campaign_id)
    ORDER BY n.campaign_id, n.what, n.status, n.reason, n.hour
    ON CONFLICT (campaign_id, what, status, reason, hour)
    DO UPDATE SET number = c.number + excluded.number
)
SELECT count(*), COALESCE(max(id), 0) FROM taken"""

# Transactions that may hold an id, by the lock that inserting takes: not those of other databases,
# and not this one.
_WRITERS = f"""
    FROM pg_locks l WHERE l.locktype = 'relation' AND l.relation = '{LEDGER_CHANGE}'::regclass
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.mode = 'RowExclusiveLock' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()"""

# The mark as it is believed, what is noted for the next, and whether all who wrote then have ended
# (pid NULL: prepared).
MARK = f"""
SELECT sendonce_ledger_mark(), m.rolled_up, m.noted, m.noted <= m.rolled_up OR NOT EXISTS (
    SELECT 1 {_WRITERS} AND (l.pid IS NULL OR l.virtualtransaction = ANY(m.writers)))
FROM {LEDGER_MARK} m WHERE m.id = 1"""

# From what MARK found, which was another statement's: its look at the locks came before this one's
# at the rows. Also where somebody else has just moved it.
MOVE_MARK = f"""
INSERT INTO {LEDGER_MARK} AS m (id, rolled_up, noted, writers)
SELECT 1, %(rolled_up)s, %(noted)s, ARRAY(SELECT l.virtualtransaction {_WRITERS})
WHERE NOT EXISTS (SELECT 1 FROM {LEDGER_CHANGE} c
    WHERE c.id > %(below)s AND c.id <= %(rolled_up)s)
ON CONFLICT (id) DO UPDATE
SET rolled_up = excluded.rolled_up, noted = excluded.noted, writers = excluded.writers
WHERE m.rolled_up = %(was_rolled_up)s AND m.noted = %(was_noted)s"""

# Changes behind the mark, which nobody has seen: a sequence was set back, and came by the mark
# before anybody looked.
UNMARK = f"""
DELETE FROM {LEDGER_MARK} m
WHERE EXISTS (SELECT 1 FROM {LEDGER_CHANGE} c WHERE c.id <= m.rolled_up)"""

# Events and their counters, in one snapshot.
EVENT_DRIFT = f"""
SELECT t.status, t.reason, sum(t.there)::bigint, sum(t.counted)::bigint FROM (
    SELECT e.kind AS status, e.reason, count(*) AS there, 0 AS counted
    FROM {EVENT} e JOIN {SEND} s ON s.id = e.send_id
    WHERE s.campaign_id = %(campaign)s GROUP BY e.kind, e.reason
    UNION ALL
    SELECT n.status, n.reason, 0, n.number FROM {COUNTED} WHERE n.what = 1) t
GROUP BY t.status, t.reason HAVING sum(t.there) <> sum(t.counted) ORDER BY t.status, t.reason"""

# What rows and counters differ by in one snapshot they differ by in every later one, whoever works
# meanwhile: each transaction changes both alike. So the difference is added, and nobody waits.
# What is missing of a status came to it nobody knows when: it counts for this hour.
REBUILD = f"""
WITH missing AS (
    SELECT t.what, t.status, t.reason, t.hour, sum(t.number) AS number FROM (
        SELECT 0 AS what, s.status, s.reason, NULL::timestamptz AS hour, count(*) AS number
        FROM {SEND} s WHERE s.campaign_id = %(campaign)s GROUP BY s.status, s.reason
        UNION ALL
        SELECT 0, a.status, a.reason, NULL, a.number FROM {ARCHIVED} a
        WHERE a.campaign_id = %(campaign)s
        UNION ALL
        SELECT 1, e.kind, e.reason, {HOUR.format("e.at")}, count(*)
        FROM {EVENT} e JOIN {SEND} s ON s.id = e.send_id
        WHERE s.campaign_id = %(campaign)s GROUP BY e.kind, e.reason, {HOUR.format("e.at")}
        UNION ALL
        SELECT n.what, n.status, n.reason, CASE WHEN n.what = 1 THEN n.hour END, -n.number
        FROM {COUNTED} WHERE n.what <> 2) t
    GROUP BY t.what, t.status, t.reason, t.hour HAVING sum(t.number) <> 0
), added AS (
    INSERT INTO {LEDGER_CHANGE} (campaign_id, what, status, reason, hour, number)
    SELECT %(campaign)s, m.what, m.status, m.reason,
        COALESCE(m.hour, {HOUR.format("clock_timestamp()")}), m.number
    FROM missing m
)
SELECT m.what, m.status, m.reason, sum(m.number)::bigint FROM missing m
GROUP BY m.what, m.status, m.reason ORDER BY m.what, m.status, m.reason"""
