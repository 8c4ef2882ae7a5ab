"""What the front page asks of several campaigns at once: each in one statement, none of them reads
a campaign's rows but a bounded number."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, IN_DOUBT, LEDGER_CHANGES, LEDGER_COUNT, SEND, WORKER

# By the counters; see counters.TOTALS.
TOTALS = f"""
SELECT n.campaign_id, n.status, sum(n.number)::bigint FROM (
    SELECT t.campaign_id, t.status, t.number FROM {LEDGER_COUNT} t
    WHERE t.campaign_id = ANY(%(ids)s::bigint[]) AND t.what = 0
    UNION ALL
    SELECT t.campaign_id, t.status, t.number FROM {LEDGER_CHANGES.format("%(ids)s::bigint[]")} t
    WHERE t.what = 0) n
GROUP BY n.campaign_id, n.status HAVING sum(n.number) <> 0"""

# See alive.served.
SERVED = f"""
SELECT clock_timestamp(), ARRAY(SELECT DISTINCT w.only_campaign FROM {WORKER} w
    WHERE w.ended IS NULL AND w.seen >= clock_timestamp() - %(within)s)"""

# Rows that are held for evidence or a person, by campaign, latest first; see
# doubt_desk.CAMPAIGNS_IN_DOUBT. NULL: the messages of no campaign. What others wait for, or what
# settles itself, is left out before anything is limited: it must not hide what is held.
_HELD = f"""
    SELECT count(*) AS n FROM (SELECT 1 FROM {SEND} s
        WHERE {IN_DOUBT} AND {{which}} AND s.settle_at IS NULL LIMIT %(most)s) held"""
HELD = f"""
WITH RECURSIVE found (id) AS (
    (SELECT s.campaign_id FROM {SEND} s WHERE {IN_DOUBT} AND s.campaign_id IS NOT NULL
     ORDER BY s.campaign_id DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT s.campaign_id FROM {SEND} s
            WHERE {IN_DOUBT} AND s.campaign_id < f.id
            ORDER BY s.campaign_id DESC LIMIT 1)
    FROM found f WHERE f.id IS NOT NULL
), seen AS (
    SELECT c.id, c.name, c.account_id FROM found f JOIN {CAMPAIGN} c ON c.id = f.id
    WHERE (%(accounts)s::bigint[] IS NULL OR c.account_id = ANY(%(accounts)s::bigint[]))
      AND EXISTS (SELECT 1 FROM {SEND} s
        WHERE {IN_DOUBT} AND s.campaign_id = c.id AND s.settle_at IS NULL)
    ORDER BY c.id DESC LIMIT %(campaigns)s
)
SELECT * FROM (
    SELECT c.id, c.name, h.n, a.name AS account FROM seen c
    JOIN {ACCOUNT} a ON a.id = c.account_id
    CROSS JOIN LATERAL ({_HELD.format(which="s.campaign_id = c.id")}) h
    UNION ALL
    SELECT NULL, '', h.n, '' FROM ({
    _HELD.format(
        which="s.campaign_id IS NULL AND (%(accounts)s::bigint[] IS NULL"
        " OR s.account_id = ANY(%(accounts)s::bigint[]))",
    )
}) h) t
WHERE t.n > 0 ORDER BY t.id DESC NULLS LAST"""
