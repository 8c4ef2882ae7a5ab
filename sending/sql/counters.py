"""The counters of the ledger: read, rolled up, compared with the rows and mended.

The triggers that write them are in migration 0005; ``what`` is ``models.Counted``.
"""

from __future__ import annotations

from .tables import ARCHIVED, CAMPAIGN, EVENT, LEDGER_CHANGE, LEDGER_COUNT, SEND

HOUR = "date_bin('1 hour', {}, timestamptz '1970-01-01 00:00:00+00')"

COUNTED = f"""(
    SELECT t.what, t.status, t.reason, t.hour, t.number FROM {LEDGER_COUNT} t
    WHERE t.campaign_id = %(campaign)s
    UNION ALL
    SELECT t.what, t.status, t.reason, t.hour, t.number FROM {LEDGER_CHANGE} t
    WHERE t.campaign_id = %(campaign)s) n"""

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

# What is taken away and what is added is one set, in one statement: a reader sees all of it before
# or all of it after. In order of the key, so that two who do it all the same wait in no circle.
COMPACT = f"""
WITH taken AS (
    DELETE FROM {LEDGER_CHANGE} t WHERE t.id = ANY (ARRAY(
        SELECT o.id FROM {LEDGER_CHANGE} o ORDER BY o.id LIMIT %(size)s FOR UPDATE SKIP LOCKED))
    RETURNING t.campaign_id, t.what, t.status, t.reason, t.hour, t.number
), added AS (
    INSERT INTO {LEDGER_COUNT} AS c (campaign_id, what, status, reason, hour, number)
    SELECT campaign_id, what, status, reason, hour, sum(number) FROM taken t
    WHERE EXISTS (SELECT 1 FROM {CAMPAIGN} c WHERE c.id = t.campaign_id)
    GROUP BY campaign_id, what, status, reason, hour HAVING sum(number) <> 0
    ORDER BY campaign_id, what, status, reason, hour
    ON CONFLICT (campaign_id, what, status, reason, hour)
    DO UPDATE SET number = c.number + excluded.number
)
SELECT count(*) FROM taken"""

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
