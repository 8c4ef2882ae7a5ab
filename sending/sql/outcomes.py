"""What came of it, and what never started."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, DOUBTED, ERASED, EVENT, IN_LOT, SEND

_CLOSED_BY_CANCEL = "c.status = 'canceled'"

# An acceptance of any hand-over of the row, current or in doubt, makes it sent and ends it.
ACCEPT = f"""
UPDATE {SEND} s SET status = 'sent', sent_at = clock_timestamp(), lease_until = NULL,
    settle_at = NULL, replay_until = NULL, replays = 0, frozen = NULL,
    provider_message_id = left(o.message_id, 300), answer_stage = o.stage,
    answer_code = o.code, answer_enhanced = o.enhanced,
    answer_text = CASE WHEN {ERASED} THEN '' ELSE o.text END, reason = ''
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(message_ids)s::text[], %(stages)s::text[],
    %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[])
    AS o(id, token, message_id, stage, code, enhanced, text)
WHERE s.id = {IN_LOT} AND s.id = o.id AND s.status <> 'sent'
  AND (s.claim_token = o.token OR o.token = ANY(s.doubt_tokens))
RETURNING s.id"""

# Any other outcome speaks of the current hand-over only, and only while its fate is open: a
# late "don't know" never overwrites knowledge. A retry in a canceled campaign stays closed. A
# repeat that could not even be made leaves the earlier hand-over in doubt as it was. A refusal
# of a repeat says nothing about an earlier hand-over in doubt: after a replay the row is in doubt
# as it was, and replayed again if the refusal was for now; but where a person or a policy asked
# for the repeat its answer counts. An acceptance of the earlier one still wins.
REFUSE = f"""
WITH told AS (
    SELECT s.id, s.status AS was, o.*, CASE
        WHEN s.status = 'claimed' AND {DOUBTED} THEN 'in_doubt'
        WHEN s.replays > 0 AND {DOUBTED} THEN 'in_doubt'
        WHEN o.outcome = 'retry' AND c.status = 'canceled' AND {DOUBTED} THEN 'in_doubt'
        WHEN o.outcome = 'retry' AND c.status = 'canceled' THEN 'canceled'
        WHEN o.outcome = 'retry' AND {ERASED} AND {DOUBTED} THEN 'in_doubt'
        WHEN o.outcome = 'retry' AND {ERASED} THEN 'suppressed'
        ELSE o.outcome END AS becomes,
        a.in_doubt_policy
    FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(outcomes)s::text[], %(delays)s::float[],
        %(stages)s::text[], %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[],
        %(reasons)s::text[])
        AS o(send_id, token, outcome, delay, stage, code, enhanced, text, reason)
    CROSS JOIN LATERAL (
        SELECT * FROM {SEND} r WHERE r.id = o.send_id AND r.claim_token = o.token OFFSET 0) s
    JOIN {ACCOUNT} a ON a.id = s.account_id
    LEFT JOIN {CAMPAIGN} c ON c.id = s.campaign_id
    WHERE s.status = 'sending'
       OR (s.status = 'in_doubt' AND o.outcome <> 'in_doubt')
       OR (s.status = 'claimed' AND o.outcome = 'failed' AND o.stage = 'local')
)
UPDATE {SEND} s SET
    status = t.becomes,
    next_attempt_at = CASE WHEN t.becomes = 'retry'
        THEN clock_timestamp() + t.delay * interval '1 second' ELSE s.next_attempt_at END,
    claim_token = CASE
        WHEN t.becomes = 'in_doubt' AND t.outcome <> 'in_doubt'
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)]
        WHEN t.becomes = 'in_doubt' THEN s.claim_token END,
    doubt_tokens = CASE WHEN t.becomes = 'in_doubt' AND t.outcome <> 'in_doubt'
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    settle_at = CASE
        WHEN t.becomes <> 'in_doubt' OR COALESCE({_CLOSED_BY_CANCEL}, false) THEN NULL
        WHEN t.delay > 0 AND s.replay_until > clock_timestamp()
            THEN clock_timestamp() + t.delay * interval '1 second'
        WHEN t.outcome = 'in_doubt' AND t.in_doubt_policy <> 'hold'
            THEN clock_timestamp() + %(doubt_wait)s * interval '1 second' END,
    replays = CASE WHEN {DOUBTED} THEN s.replays ELSE 0 END,
    lease_until = NULL, answer_stage = t.stage, answer_code = t.code,
    answer_enhanced = t.enhanced, answer_text = CASE WHEN {ERASED} THEN '' ELSE t.text END,
    reason = CASE WHEN t.becomes = 'suppressed' THEN 'erased' ELSE t.reason END
FROM told t JOIN {SEND} same ON same.id = t.id LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = t.id
RETURNING s.id, t.becomes, s.account_id, s.email, s.attempts, t.token, t.was"""

# Which of these outcomes does the ledger not show? After a durable commit, those are the ones
# that a crash of the server (of one backend is enough) has lost.
NOT_WRITTEN = f"""
SELECT o.place FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(outcomes)s::text[])
    WITH ORDINALITY AS o(id, token, outcome, place)
JOIN {SEND} s ON s.id = o.id AND s.id = {IN_LOT}
WHERE (s.claim_token = o.token AND (s.status = 'sending'
        OR (s.status = 'in_doubt' AND o.outcome <> 'in_doubt')))
   OR (o.outcome = 'sent' AND s.status <> 'sent'
        AND (s.claim_token = o.token OR o.token = ANY(s.doubt_tokens)))
ORDER BY o.place"""

EVENT_INSERT = f"""
INSERT INTO {EVENT} (send_id, account_id, kind, event_id, stage, code, enhanced, text, reason,
    known, attempt, by_name, at)
SELECT o.id, o.account_id, o.kind, o.event_id, o.stage, o.code, o.enhanced, o.text, o.reason,
    o.known, o.attempt, o.by_name, COALESCE(o.at, clock_timestamp())
FROM unnest(%(ids)s::bigint[], %(accounts)s::bigint[], %(kinds)s::text[], %(stages)s::text[],
    %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[], %(reasons)s::text[],
    %(knowns)s::boolean[], %(attempts)s::smallint[], %(by_names)s::text[],
    %(event_ids)s::text[], %(ats)s::timestamptz[])
    AS o(id, account_id, kind, stage, code, enhanced, text, reason, known, attempt, by_name,
        event_id, at)
ON CONFLICT (event_id) DO NOTHING"""

# Whose mailbox was full in so many campaigns in a row, the one just ended included: nobody reads
# it any more.
FULL_AGAIN = f"""
SELECT t.account, t.email FROM unnest(%(accounts)s::bigint[], %(emails)s::text[])
    AS t(account, email)
WHERE %(campaigns)s = (SELECT count(*) FROM (
    SELECT s.status, s.reason FROM {SEND} s
    WHERE s.account_id = t.account AND s.email_lower = lower(t.email COLLATE "C")
      AND s.campaign_id IS NOT NULL AND s.status IN ('sent', 'failed', 'bounced')
    ORDER BY s.id DESC LIMIT %(campaigns)s) r
    WHERE r.status = 'failed' AND r.reason = 'mailbox_full')"""

# Never started, known for certain: back to where it came from, the attempt refunded.
GIVE_BACK = f"""
UPDATE {SEND} s SET
    status = CASE
        WHEN c.status = 'canceled' AND {DOUBTED} THEN 'in_doubt'
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN {ERASED} AND {DOUBTED} THEN 'in_doubt'
        WHEN {ERASED} THEN 'suppressed'
        WHEN s.next_attempt_at IS NULL THEN 'queued'
        ELSE 'retry' END,
    claim_token = CASE WHEN (c.status = 'canceled' OR {ERASED}) AND {DOUBTED}
        THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN (c.status = 'canceled' OR {ERASED}) AND {DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    attempts = GREATEST(s.attempts - (s.status <> 'claimed')::int, 0),
    handed_at = CASE WHEN {DOUBTED} THEN s.handed_at END,
    replays = CASE WHEN {DOUBTED} THEN s.replays ELSE 0 END,
    lease_until = NULL, worker_id = NULL, settle_at = NULL,
    reason = CASE
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN {ERASED} THEN 'erased'
        WHEN s.status = 'in_doubt' THEN ''
        ELSE s.reason END
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS o(id, token)
JOIN {SEND} same ON same.id = o.id AND same.id = {IN_LOT}
LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = o.id AND s.claim_token = o.token AND s.status = ANY(%(statuses)s::text[])
RETURNING s.id, s.account_id, s.campaign_id, s.status, same.status, s.reason, o.token"""
