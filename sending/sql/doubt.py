"""What people and policies decide about rows in doubt."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, ERASED, EVENT, IN_DOUBT, IN_LOT, SEND

# The hand-over's token moves to the tokens in doubt, so that its acceptance still counts. A row
# relabelled because its worker's session was lost keeps its lease: until that is over the worker
# may be alive and send it, so not even a person sends it again before. What has failed is another
# message to a provider that deduplicates; what is in doubt keeps its key, and so may be harmless.
SEND_AGAIN = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id, s.status FROM {SEND} s
    WHERE s.id = {IN_LOT} AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND (s.status = 'in_doubt' OR (s.status = 'failed' AND %(failed)s)) AND NOT {ERASED}
      AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
      AND (NOT %(due_only)s OR s.settle_at <= clock_timestamp())
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET
    status = 'queued', next_attempt_at = NULL, lease_until = NULL, worker_id = NULL,
    settle_at = NULL, attempts = 0, replays = 0, reason = '',
    repeats = s.repeats + (s.status = 'failed')::int,
    frozen = CASE WHEN s.status = 'failed' THEN NULL ELSE s.frozen END,
    doubt_tokens = CASE WHEN s.status = 'in_doubt'
        THEN s.doubt_tokens || s.claim_token ELSE s.doubt_tokens END,
    claim_token = NULL
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

TREAT_AS_SENT = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.id = {IN_LOT} AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND s.status = 'in_doubt' AND (NOT %(due_only)s OR s.settle_at <= clock_timestamp())
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET status = 'sent', sent_at = s.handed_at, settle_at = NULL,
    replay_until = NULL, replays = 0, frozen = NULL, lease_until = NULL,
    reason = 'treated_as_sent'
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

# The same message once more under its key, which a deduplicating provider answers without a second
# delivery. The hand-over looks at the window and the transport again.
REPLAY = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id FROM {SEND} s LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
    WHERE s.id = {IN_LOT} AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND s.status = 'in_doubt' AND s.settle_at <= clock_timestamp()
      AND s.replay_until > clock_timestamp()
      AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
      AND (c.id IS NULL OR c.status = 'sending') AND NOT {ERASED}
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET
    status = 'retry', next_attempt_at = clock_timestamp(), replays = s.replays + 1,
    doubt_tokens = s.doubt_tokens || s.claim_token, claim_token = NULL,
    lease_until = NULL, worker_id = NULL, settle_at = NULL
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

# Nothing settles it by itself any more: for evidence, or a person.
HOLD = f"""
WITH chosen AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.id = {IN_LOT} AND s.campaign_id IS NOT DISTINCT FROM %(campaign)s
      AND s.status = 'in_doubt' AND s.settle_at <= clock_timestamp()
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET settle_at = NULL, replay_until = NULL
FROM chosen WHERE s.id = chosen.id
RETURNING s.id, s.account_id"""

# What is due to be settled, and how: replayed while that is harmless, else by the account's
# policy. Left out: a canceled campaign, which opens nothing, and replays of one that is paused;
# they must not fill the limit for ever. A policy sends again once: a relay that takes messages and
# loses its answers would else deliver to the same person every few minutes.
DOUBT_DUE = f"""
SELECT s.id, s.campaign_id, CASE
    WHEN s.replay_until > clock_timestamp() AND NOT {ERASED} THEN 'replay'
    WHEN {ERASED} AND a.in_doubt_policy = 'resend' THEN 'hold'
    WHEN a.in_doubt_policy = 'resend' AND EXISTS (
        SELECT 1 FROM {EVENT} e WHERE e.send_id = s.id AND e.kind = 'send_again'
          AND e.by_name = 'policy resend') THEN 'hold'
    ELSE a.in_doubt_policy END
FROM {SEND} s JOIN {ACCOUNT} a ON a.id = s.account_id
LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
WHERE {IN_DOUBT} AND s.settle_at <= clock_timestamp()
  AND c.status IS DISTINCT FROM 'canceled'
  AND (c.status IS DISTINCT FROM 'paused' OR s.replay_until IS NULL
       OR s.replay_until <= clock_timestamp())
ORDER BY s.id LIMIT 1000"""
