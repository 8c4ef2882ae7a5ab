"""What the pages of a campaign read beside its counters: a bounded number of rows each."""

from __future__ import annotations

from ..models.events import TROUBLE
from .tables import EVENT, IN_DOUBT, IN_FLIGHT, RETRY, SEND

# The rows handed over last, by the order in which they are claimed: the ids. They are just before
# those on their way (claims go ahead of them). From the end, because the index of what is in flight
# may be full of dead entries before it while an old snapshot is held; ``flying``: there are any.
HANDED_LAST = f"""
WITH flying AS (
    SELECT s.id, s.status FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND {IN_FLIGHT}
      AND %(flying)s::boolean
    ORDER BY s.id DESC LIMIT %(limit)s
), front AS (
    SELECT COALESCE(max(f.id) FILTER (WHERE f.status = 'sending'), max(f.id)) AS id FROM flying f
)
SELECT s.worker_id, EXTRACT(epoch FROM clock_timestamp() - s.handed_at)::float8
FROM {SEND} s
WHERE s.campaign_id = %(campaign)s
  AND s.id <= COALESCE((SELECT id FROM front), 9223372036854775807)
ORDER BY s.id DESC LIMIT %(limit)s"""

# The next retries, in the index's order: the seconds that each still waits.
NEXT_RETRIES = f"""
SELECT EXTRACT(epoch FROM s.next_attempt_at - clock_timestamp())::float8
FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND {RETRY}
ORDER BY s.next_attempt_at LIMIT %(limit)s"""

LAST_RETRY = f"""
SELECT s.next_attempt_at FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND {RETRY}
ORDER BY s.next_attempt_at DESC LIMIT 1"""

# What becomes of doubt by itself: replayed, settled by the account's policy, or held.
DOUBT = f"""
SELECT CASE WHEN r.settle_at IS NULL THEN 'held'
        WHEN r.replay_until > clock_timestamp() THEN 'replayed' ELSE 'policy' END AS how,
    r.reason, r.answer_code IS NOT NULL AS answered, count(*), min(r.handed_at)
FROM (SELECT s.settle_at, s.replay_until, s.reason, s.answer_code, s.handed_at FROM {SEND} s
    WHERE s.campaign_id = %(campaign)s AND {IN_DOUBT}
    ORDER BY s.id LIMIT %(limit)s) r
GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3"""

# Written out, not given: the partial index is found by it.
_TROUBLE = ", ".join(f"'{kind}'" for kind in TROUBLE)

# By the account's index of what went wrong, which is the only one that leads to a campaign's
# events: the account's latest, and of those the campaign's.
LATEST_EVENTS = f"""
SELECT e.kind, e.stage, e.code, e.enhanced, e.text, e.reason, e.known, e.at
FROM (SELECT * FROM {EVENT} WHERE account_id = %(account)s AND kind IN ({_TROUBLE})
    ORDER BY id DESC LIMIT %(limit)s) e
JOIN {SEND} s ON s.id = e.send_id
WHERE s.campaign_id = %(campaign)s
ORDER BY e.id DESC"""

# Rows drawn evenly over a campaign's ids, each by one look into an index: what a report says of
# recipient domains without reading ten million rows.
SAMPLE = f"""
WITH ends AS (
    SELECT (SELECT min(s.id) FROM {SEND} s WHERE s.campaign_id = %(campaign)s) AS first,
           (SELECT max(s.id) FROM {SEND} s WHERE s.campaign_id = %(campaign)s) AS last
), drawn AS (
    SELECT DISTINCT r.id, r.email, r.status FROM ends, generate_series(0, %(limit)s - 1) AS n,
    LATERAL (SELECT s.id, s.email, s.status FROM {SEND} s WHERE s.campaign_id = %(campaign)s
        AND s.id >= ends.first + ((ends.last - ends.first) * n / GREATEST(%(limit)s - 1, 1))
        ORDER BY s.id LIMIT 1) r
)
SELECT lower(split_part(d.email, '@', 2)), d.status, count(*)
FROM drawn d WHERE d.email IS NOT NULL GROUP BY 1, 2"""

# Every row of a campaign, in the order in which they were built.
WALK_SENDS = f"""
DECLARE sendonce_sends NO SCROLL CURSOR FOR
SELECT s.email, s.status, s.reason, s.answer_stage, s.answer_code, s.answer_enhanced,
    s.answer_text, s.attempts, s.handed_at, s.sent_at
FROM {SEND} s WHERE s.campaign_id = %(campaign)s ORDER BY s.id"""
NEXT_SENDS = "FETCH FORWARD 500 FROM sendonce_sends"
END_SENDS = "CLOSE sendonce_sends"

# A person who left by a link of the campaign, told once. The row is held, so that one that is
# pruned at this moment is left out instead of failing the wish.
UNSUBSCRIBED = f"""
INSERT INTO {EVENT} (send_id, account_id, kind, event_id, stage, code, enhanced, text, reason,
    known, attempt, by_name, at)
SELECT s.id, s.account_id, 'unsubscribed', 'unsubscribed:' || s.id, '', NULL, '', '',
    CASE WHEN EXISTS (SELECT 1 FROM {EVENT} e WHERE e.send_id = s.id AND e.kind = 'unsubscribed')
        THEN %(again)s ELSE %(how)s END,
    true, NULL, '', clock_timestamp()
FROM {SEND} s WHERE s.subscriber_id = %(subscriber)s AND s.campaign_id = %(campaign)s
FOR KEY SHARE OF s
ON CONFLICT (event_id) DO NOTHING"""
