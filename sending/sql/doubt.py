"""What people and policies decide about rows in doubt."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, SEND

# The hand-over's token moves to the tokens in doubt, so that its acceptance still counts. A row
# relabelled because its worker's session was lost keeps its lease: until that is over the worker
# may be alive and send it, so not even a person sends it again before.
SEND_AGAIN = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id, s.status FROM {SEND} s
    WHERE s.id = ANY(%(ids)s::bigint[]) AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND (s.status = 'in_doubt' OR (s.status = 'failed' AND %(failed)s))
      AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
      AND (NOT %(due_only)s OR s.settle_at <= clock_timestamp())
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET
    status = 'queued', next_attempt_at = NULL, lease_until = NULL, worker_id = NULL,
    settle_at = NULL, attempts = 0, reason = '',
    doubt_tokens = CASE WHEN s.status = 'in_doubt'
        THEN s.doubt_tokens || s.claim_token ELSE s.doubt_tokens END,
    claim_token = NULL
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

TREAT_AS_SENT = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.id = ANY(%(ids)s::bigint[]) AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND s.status = 'in_doubt' AND (NOT %(due_only)s OR s.settle_at <= clock_timestamp())
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET status = 'sent', sent_at = s.handed_at, settle_at = NULL,
    lease_until = NULL, reason = 'treated_as_sent'
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

# A canceled campaign opens nothing: what it could not queue must not fill the limit for ever.
DOUBT_DUE = f"""
SELECT s.id, s.campaign_id, a.in_doubt_policy
FROM {SEND} s JOIN {ACCOUNT} a ON a.id = s.account_id
LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
WHERE s.status = 'in_doubt' AND s.settle_at <= clock_timestamp() AND a.in_doubt_policy <> 'hold'
  AND c.status IS DISTINCT FROM 'canceled'
ORDER BY s.id LIMIT 1000"""
