"""The last look before the network."""

from __future__ import annotations

from .tables import CAMPAIGN, DOUBTED, INCLUDE, MEMBERSHIP, SEND, SUBSCRIBER, SUPPRESSION

# First statement behind the gates: the row locks, in one order for everybody.
LOCK_ROWS = f"""
SELECT id FROM {SEND} WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE"""

# Second statement, with a snapshot younger than the locks: check and compare-and-set in one. An
# opt-out that committed before it begins is seen; with one statement for both it is not.
HAND_OVER = f"""
WITH lot AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(hashes)s::text[])
        AS t(id, token, hashes)
), checked AS (
    SELECT s.id, lot.token, CASE
        WHEN s.campaign_id IS NOT NULL AND c.status = 'canceled' THEN 'canceled'
        WHEN s.campaign_id IS NOT NULL AND c.status <> 'sending' THEN 'not_sending'
        WHEN s.campaign_id IS NULL AND s.expires <= clock_timestamp() THEN 'expired'
        WHEN s.email IS NULL THEN 'erased'
        WHEN EXISTS (
            SELECT 1 FROM {SUPPRESSION} x
            WHERE x.email_lower = s.email_lower
              AND (x.account_id = s.account_id OR x.account_id IS NULL)
              AND (x.expires IS NULL OR x.expires > clock_timestamp())
              AND (s.campaign_id IS NOT NULL OR x.reason <> 'unsubscribed')) THEN 'suppressed'
        WHEN EXISTS (
            SELECT 1 FROM {SUPPRESSION} x
            WHERE x.email_hash = ANY(string_to_array(lot.hashes, ','))
              AND (x.account_id = s.account_id OR x.account_id IS NULL)) THEN 'suppressed'
        WHEN s.campaign_id IS NULL THEN 'go'
        WHEN EXISTS (
            SELECT 1 FROM {SEND} o
            WHERE o.campaign_id = s.campaign_id AND o.email_hash IS NOT NULL
              AND o.email_hash = ANY(string_to_array(lot.hashes, ','))) THEN 'erased'
        WHEN p.id IS NULL THEN 'erased'
        WHEN p.status <> 'confirmed' THEN 'unsubscribed'
        WHEN NOT EXISTS (
            SELECT 1 FROM {MEMBERSHIP} m JOIN {INCLUDE} i ON i.segment_id = m.segment_id
            WHERE i.campaign_id = s.campaign_id AND m.subscriber_id = p.id
              AND m.left_at IS NULL) THEN 'left'
        ELSE 'go' END AS finding
    FROM lot
    JOIN {SEND} s ON s.id = lot.id AND s.claim_token = lot.token AND s.status = 'claimed'
    LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
    LEFT JOIN {SUBSCRIBER} p ON p.id = s.subscriber_id
)
UPDATE {SEND} s SET
    status = CASE
        WHEN k.finding = 'go' THEN 'sending'
        WHEN k.finding = 'not_sending' AND s.next_attempt_at IS NULL THEN 'queued'
        WHEN k.finding = 'not_sending' THEN 'retry'
        WHEN {DOUBTED} THEN 'in_doubt'
        WHEN k.finding = 'canceled' THEN 'canceled'
        WHEN k.finding = 'expired' THEN 'failed'
        ELSE 'suppressed' END,
    attempts = s.attempts + (k.finding = 'go')::int,
    handed_at = CASE WHEN k.finding = 'go' THEN clock_timestamp() ELSE s.handed_at END,
    lease_until = CASE WHEN k.finding = 'go'
        THEN clock_timestamp() + %(lease)s * interval '1 second' END,
    worker_id = CASE WHEN k.finding = 'go' THEN s.worker_id END,
    claim_token = CASE
        WHEN k.finding = 'go' THEN s.claim_token
        WHEN k.finding <> 'not_sending' AND {DOUBTED}
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN k.finding NOT IN ('go', 'not_sending') AND {DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    reason = CASE WHEN k.finding IN ('go', 'not_sending') THEN s.reason ELSE k.finding END
FROM checked k WHERE s.id = k.id
RETURNING k.token, k.finding, s.attempts, s.status"""
