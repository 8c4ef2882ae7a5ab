"""Open rows become a worker's, and stay it."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, IN_LOT, QUEUED, RETRY, SEND, SUBSCRIBER

# A token is of this claim and this row: random digits of the claim, and the row's id. Random ones
# for each row would be a system call for each, or three where PostgreSQL came without OpenSSL.
#
# The rows are few and known by their ids: "= ANY (ARRAY ...)" and "OFFSET 0" keep the planner from
# reading whole tables for them, which it prefers for a few hundred rows of fifty thousand.
_CLAIM = f"""
, claimed AS (
    UPDATE {SEND} s SET status = 'claimed',
        claim_token = (%(digits)s::text || lpad(to_hex(s.id), 16, '0'))::uuid,
        worker_id = %(worker)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second'
    WHERE s.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING s.id, s.claim_token, s.account_id, s.campaign_id, s.subscriber_id, s.email,
        s.email_lower, s.job_id, s.content_id, s.context, s.frozen, s.replays, s.repeats,
        s.transport
)
SELECT c.id, c.claim_token, c.account_id, c.campaign_id, c.subscriber_id, c.email, c.email_lower,
    c.job_id, COALESCE(c.content_id, k.content_id), c.context, p.attributes,
    COALESCE(NULLIF(c.transport, ''), a.transport),
    c.frozen, c.replays, a.retry_waits, a.max_attempts, c.repeats
FROM claimed c
JOIN {ACCOUNT} a ON a.id = c.account_id
LEFT JOIN {CAMPAIGN} k ON k.id = c.campaign_id
LEFT JOIN LATERAL (
    SELECT r.attributes FROM {SUBSCRIBER} r WHERE r.id = c.subscriber_id OFFSET 0) p ON true
ORDER BY c.id"""

# A few rows of each campaign (LATERAL), so that a campaign of a million does not hide a small
# one; beyond a mark, so that dead index entries under a pinned xmin are not walked again.
# MATERIALIZED, or the planner may run the inner LIMIT twice and claim too much.
CLAIM_QUEUED = f"""
WITH open AS MATERIALIZED (
    SELECT t.campaign_id, t.mark
    FROM unnest(%(campaigns)s::bigint[], %(marks)s::bigint[]) WITH ORDINALITY
        AS t(campaign_id, mark, place)
    JOIN {CAMPAIGN} c ON c.id = t.campaign_id AND c.status = 'sending'
    ORDER BY t.place
), picked AS MATERIALIZED (
    SELECT r.id FROM open CROSS JOIN LATERAL (
        SELECT s.id FROM {SEND} s
        WHERE s.campaign_id = open.campaign_id AND {QUEUED} AND s.id > open.mark
        ORDER BY s.id LIMIT %(each)s FOR UPDATE OF s SKIP LOCKED) r
    LIMIT %(total)s
){_CLAIM}"""

CLAIM_RETRY = f"""
WITH open AS MATERIALIZED (
    SELECT c.id FROM {CAMPAIGN} c
    WHERE c.id = ANY(%(campaigns)s::bigint[]) AND c.status = 'sending'
), picked AS MATERIALIZED (
    SELECT r.id FROM open CROSS JOIN LATERAL (
        SELECT s.id FROM {SEND} s
        WHERE s.campaign_id = open.id AND {RETRY}
          AND s.next_attempt_at <= clock_timestamp()
        ORDER BY s.next_attempt_at LIMIT %(each)s FOR UPDATE OF s SKIP LOCKED) r
    LIMIT %(total)s
){_CLAIM}"""

# Transactional messages have no campaign; they come first.
CLAIM_TRANSACTIONAL = f"""
WITH picked AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id IS NULL
      AND ({QUEUED} OR ({RETRY} AND s.next_attempt_at <= clock_timestamp()))
      AND CASE WHEN s.transport = '' THEN s.account_id <> ALL(%(blocked)s::bigint[])
        ELSE s.transport <> ALL(%(closed)s::text[]) END
    ORDER BY s.id LIMIT %(total)s FOR UPDATE OF s SKIP LOCKED
){_CLAIM}"""

RENEW = f"""
WITH held AS (
    SELECT s.id FROM {SEND} s
    JOIN unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS t(id, token)
      ON s.id = t.id AND s.claim_token = t.token
    WHERE s.id = {IN_LOT} AND s.status IN ('claimed', 'sending')
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE {SEND} s SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
FROM held WHERE s.id = held.id RETURNING s.id"""
