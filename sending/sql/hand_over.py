"""The last look before the network."""

from __future__ import annotations

from subscribers.joining.mail import KIND

from .tables import (
    ACCOUNT,
    CAMPAIGN,
    DOUBTED,
    IN_LOT,
    INCLUDE,
    MEMBERSHIP,
    PERSON_MOVED,
    PERSON_PAUSED,
    SEND,
    SUBSCRIBER,
    SUPPRESSION,
)

# The mail by which a person who was erased, and signs up anew, can say that it is they.
ASKS_BACK = f"(s.campaign_id IS NULL AND split_part(s.job_id, ':', 3) = '{KIND}')"

# First statement behind the gates: the row locks, in one order for everybody.
LOCK_ROWS = f"""
SELECT id FROM {SEND} WHERE id = {IN_LOT} ORDER BY id FOR NO KEY UPDATE"""

# Second statement, with a snapshot younger than the locks: check and compare-and-set in one. An
# opt-out that committed before it begins is seen; with one statement for both it is not. handed_at
# is that beginning: what is on record as committed before it has been heeded.
#
# A replay (replays > 0) repeats a hand-over in doubt under the same key. It is harmless only over
# the same transport and credentials, with the same message, inside the provider's window: else it
# is held. The window is counted from the first hand-over that is in doubt.
#
# OFFSET 0 keeps the planner to the primary key, also in a plan that is made for any lot: by another
# index it would read all that is in flight for each row.
HAND_OVER = f"""
WITH lot AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(hashes)s::text[],
        %(frozen)s::text[]) AS t(id, token, hashes, frozen)
), checked AS (
    SELECT s.id, lot.token, lot.frozen, a.in_doubt_policy, CASE
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
              AND (x.account_id = s.account_id OR x.account_id IS NULL)
              AND NOT (x.account_id = s.account_id AND {ASKS_BACK}
                AND x.former_reason IN ('', 'unsubscribed', 'hard_bounce'))) THEN 'suppressed'
        WHEN s.replays > 0 AND {DOUBTED} AND (s.via <> %(via)s OR s.frozen IS NULL
            OR s.replay_until IS NULL OR s.replay_until <= clock_timestamp()) THEN 'held'
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
        WHEN {PERSON_PAUSED} THEN 'paused'
        WHEN {PERSON_MOVED} THEN 'moved'
        ELSE 'go' END AS finding
    FROM lot
    CROSS JOIN LATERAL (SELECT * FROM {SEND} r WHERE r.id = lot.id OFFSET 0) s
    JOIN {ACCOUNT} a ON a.id = s.account_id
    LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
    LEFT JOIN {SUBSCRIBER} p ON p.id = s.subscriber_id
    WHERE s.claim_token = lot.token AND s.status = 'claimed'
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
    handed_at = CASE WHEN k.finding = 'go' THEN statement_timestamp() ELSE s.handed_at END,
    lease_until = CASE WHEN k.finding = 'go'
        THEN clock_timestamp() + %(lease)s * interval '1 second' END,
    worker_id = CASE WHEN k.finding = 'go' THEN s.worker_id END,
    claim_token = CASE
        WHEN k.finding = 'go' THEN s.claim_token
        WHEN k.finding <> 'not_sending' AND {DOUBTED}
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN k.finding NOT IN ('go', 'not_sending') AND {DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    via = CASE WHEN k.finding = 'go' THEN %(via)s ELSE s.via END,
    frozen = CASE WHEN k.finding = 'go' THEN COALESCE(s.frozen, k.frozen::jsonb)
        ELSE s.frozen END,
    replay_until = CASE
        WHEN k.finding = 'held' THEN NULL
        WHEN k.finding <> 'go' THEN s.replay_until
        WHEN %(window)s <= 0 THEN NULL
        WHEN {DOUBTED} AND s.via = %(via)s
            THEN LEAST(s.replay_until, clock_timestamp() + %(window)s * interval '1 second')
        ELSE clock_timestamp() + %(window)s * interval '1 second' END,
    settle_at = CASE WHEN k.finding = 'held' AND {DOUBTED} AND k.in_doubt_policy <> 'hold'
        THEN clock_timestamp() END,
    reason = CASE WHEN k.finding IN ('go', 'not_sending') THEN s.reason ELSE k.finding END
FROM checked k WHERE s.id = k.id
RETURNING k.token, k.finding, s.attempts, s.status"""
