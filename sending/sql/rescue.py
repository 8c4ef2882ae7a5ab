"""Rows whose worker is gone."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, DOUBTED, IN_FLIGHT, SEND

_EXPIRED = f"{IN_FLIGHT} AND s.lease_until < clock_timestamp()"
_OF_DEAD = f"{IN_FLIGHT} AND s.worker_id = %(worker)s"

_RESCUE = f"""
WITH lost AS (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id IS NOT DISTINCT FROM %(campaign)s AND {{which}}
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE {SEND} s SET
    status = CASE
        WHEN s.status = 'sending' THEN 'in_doubt'
        WHEN c.status = 'canceled' AND {DOUBTED} THEN 'in_doubt'
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN s.next_attempt_at IS NULL THEN 'queued'
        ELSE 'retry' END,
    claim_token = CASE
        WHEN s.status = 'sending' THEN s.claim_token
        WHEN c.status = 'canceled' AND {DOUBTED}
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN s.status = 'claimed' AND c.status = 'canceled' AND {DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    settle_at = CASE
        WHEN s.status <> 'sending' OR c.status IS NOT DISTINCT FROM 'canceled' THEN NULL
        WHEN s.replay_until > clock_timestamp() THEN GREATEST(s.lease_until, clock_timestamp())
            + %(replay_wait)s * interval '1 second'
        WHEN a.in_doubt_policy <> 'hold' THEN GREATEST(s.lease_until, clock_timestamp())
            + %(doubt_wait)s * interval '1 second' END,
    reason = CASE
        WHEN s.status = 'sending' THEN 'worker_lost'
        WHEN c.status = 'canceled' THEN 'canceled'
        ELSE s.reason END,
    lease_until = CASE WHEN s.status = 'sending' THEN s.lease_until END,
    worker_id = CASE WHEN s.status = 'sending' THEN s.worker_id END
FROM lost
JOIN {SEND} same ON same.id = lost.id
JOIN {ACCOUNT} a ON a.id = same.account_id
LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = lost.id
RETURNING s.id, s.account_id, s.status, s.attempts, s.reason"""

EXPIRED_CAMPAIGNS = f"SELECT DISTINCT s.campaign_id FROM {SEND} s WHERE {_EXPIRED}"
RESCUE_EXPIRED = _RESCUE.format(which=_EXPIRED)
DEAD_CAMPAIGNS = f"SELECT DISTINCT s.campaign_id FROM {SEND} s WHERE {_OF_DEAD}"
RESCUE_DEAD = _RESCUE.format(which=_OF_DEAD)
