"""How many rows the list of sends has of each campaign, or of each account's single messages."""

from __future__ import annotations

from .tables import ARCHIVED, LEDGER_CHANGES, LEDGER_COUNT

# From one campaign (or account) to the one before it, as long as the rows found are too few:
# recursion, because a plain join would count all of them first.
RUNS = """
WITH RECURSIVE {first}runs (id, number, total) AS (
    SELECT 9223372036854775807, 0::bigint, 0::bigint
    UNION ALL
    SELECT c.id, k.number, r.total + k.number FROM runs r
    CROSS JOIN LATERAL (
        SELECT c.id FROM {table} c WHERE c.id < r.id{where} ORDER BY c.id DESC LIMIT 1) c
    CROSS JOIN LATERAL ({number}) k
    WHERE r.total < %s
)
SELECT id, number FROM runs WHERE number > 0 ORDER BY id DESC"""

COUNTED = "SELECT count(*) AS number FROM ({rows}) found"

# No index is about sent rows, and a campaign that begins has few of them among many: by the
# counters, less what was pruned.
SENT = f"""
    SELECT LEAST(GREATEST(COALESCE(sum(t.number), 0), 0), %s)::bigint AS number FROM (
        SELECT n.number FROM {LEDGER_COUNT} n
        WHERE n.campaign_id = c.id AND n.what = 0 AND n.status = 'sent'
        UNION ALL
        SELECT l.number FROM lately l WHERE l.campaign_id = c.id
        UNION ALL
        SELECT -a.number FROM {ARCHIVED} a WHERE a.campaign_id = c.id AND a.status = 'sent') t"""


# Of all that is not rolled up, which no index has by campaign, once and not for each of them.
LATELY = f"""lately AS MATERIALIZED (
    SELECT n.campaign_id, sum(n.number) AS number FROM {LEDGER_CHANGES.format("NULL")} n
    WHERE n.what = 0 AND n.status = 'sent' GROUP BY n.campaign_id
), """
