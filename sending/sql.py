"""Every raw statement of the sending protocol, by name; ``DESIGN`` section 4 in SQL.

Raw, because each of these is one statement with one snapshot by intention: a claim that skips
locked rows fairly over campaigns, a check and a compare-and-set that must not see two moments.
Parameters are named; ids, tokens and the like travel as arrays, one element per row.

Rules that hold for all of them:

* gates first, then row locks in ascending id, then the change in a later statement;
* a row is only ever changed by its claim token and its expected status;
* time is ``clock_timestamp()``: ``now()`` stands still while a transaction waits for a lock.
"""

from __future__ import annotations

SEND = "sendonce_sending_send"
WORKER = "sendonce_sending_worker"
EVENT = "sendonce_sending_deliveryevent"
CAMPAIGN = "sendonce_campaigns_campaign"
INCLUDE = "sendonce_campaigns_campaign_segments"
EXCLUDE = "sendonce_campaigns_campaign_exclude_segments"
ACCOUNT = "sendonce_subscribers_account"
SUBSCRIBER = "sendonce_subscribers_subscriber"
MEMBERSHIP = "sendonce_subscribers_membership"
SUPPRESSION = "sendonce_subscribers_suppression"

# --- session ---------------------------------------------------------------------------------

# A hand-over must be on disk (and on the synchronous standby) before the wire sees a byte.
# SET LOCAL only: a session setting would leak to the next client of a pooler.
DURABLE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '10s'"
)
# An outcome that is lost in a crash is written again from the worker's journal.
RELAXED = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '10s'"
)

BUILDING = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'"

# --- build -----------------------------------------------------------------------------------

_SUPPRESSED = f"""EXISTS (
    SELECT 1 FROM {SUPPRESSION} x
    WHERE x.email_lower = p.email_lower
      AND (x.account_id = p.account_id OR x.account_id IS NULL)
      AND (x.expires IS NULL OR x.expires > clock_timestamp()))"""

# The people a campaign addresses: confirmed, in a segment of it, in none that it excludes.
# ``bounds`` limits every arm to a chunk of ids; without it in each, the planner reads all
# memberships of a million for every chunk of a few thousand.
_ELIGIBLE = f"""
    SELECT p.id, p.account_id, p.email, p.email_lower, {_SUPPRESSED} AS suppressed
    FROM {SUBSCRIBER} p
    WHERE p.account_id = %(account)s AND p.status = 'confirmed'{{person}}
      AND p.id IN (SELECT m.subscriber_id FROM {MEMBERSHIP} m
        WHERE m.segment_id = ANY(%(include)s::bigint[]) AND m.left_at IS NULL{{member}})
      AND NOT EXISTS (SELECT 1 FROM {MEMBERSHIP} m
        WHERE m.segment_id = ANY(%(exclude)s::bigint[]) AND m.left_at IS NULL{{member}}
          AND m.subscriber_id = p.id)"""

_ELIGIBLE_IN_CHUNK = _ELIGIBLE.format(
    person="\n      AND p.id > %(after)s AND p.id <= %(upto)s",
    member="\n        AND m.subscriber_id > %(after)s AND m.subscriber_id <= %(upto)s",
)
_ELIGIBLE_AT_ALL = _ELIGIBLE.format(person="", member="")

SEGMENTS = f"""
SELECT ARRAY(SELECT segment_id FROM {INCLUDE} WHERE campaign_id = %(campaign)s),
    ARRAY(SELECT segment_id FROM {EXCLUDE} WHERE campaign_id = %(campaign)s)"""

_INSERT_SENDS = f"""
    INSERT INTO {SEND} (account_id, campaign_id, subscriber_id, email, job_id, status, reason,
        attempts, doubt_tokens, provider_message_id, answer_stage, answer_enhanced, answer_text)
    SELECT e.account_id, %(campaign)s, e.id, e.email, 'campaign:' || %(campaign)s || ':' || e.id,
        CASE WHEN e.suppressed THEN 'suppressed' ELSE 'queued' END,
        CASE WHEN e.suppressed THEN 'suppressed' ELSE '' END,
        0, '{{}}', '', '', '', ''
    FROM eligible e"""

# People who are suppressed already have their row, and the event that says why.
_NOTE_SUPPRESSED = f"""
    INSERT INTO {EVENT} (send_id, account_id, kind, stage, enhanced, text, reason, by_name, at)
    SELECT i.id, i.account_id, 'suppressed', 'local', '', 'the address is suppressed',
        'suppressed', '', clock_timestamp()
    FROM inserted i WHERE i.status = 'suppressed'"""

# Where the next chunk ends: NULL when no subscriber lies beyond the cursor, which alone is the
# end. A chunk that inserted nothing is not.
CHUNK_END = f"""
SELECT max(id) FROM (
    SELECT p.id FROM {SUBSCRIBER} p
    WHERE p.account_id = %(account)s AND p.id > %(after)s
    ORDER BY p.id LIMIT %(size)s) AS next"""

# First statement of a chunk: whoever moves the cursor owns the chunk.
CHUNK_CURSOR = f"""
UPDATE {CAMPAIGN} SET audience_cursor = %(upto)s
WHERE id = %(campaign)s AND status = 'sending' AND built_at IS NULL
  AND audience_cursor = %(after)s"""

# People are counted in the snapshot that inserts them. Somebody whose address already has a row
# (two people swapped addresses while the build ran) is the same recipient, not another one.
# LATERAL with LIMIT: two index probes a person. A plain join of a table that grew since its
# last ANALYZE reads all rows of the campaign for every chunk.
CHUNK_INSERT = f"""
WITH eligible AS MATERIALIZED ({_ELIGIBLE_IN_CHUNK}
), inserted AS ({_INSERT_SENDS}
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, status
), noted AS ({_NOTE_SUPPRESSED}
), people AS (
    SELECT count(*) AS n FROM eligible e
    LEFT JOIN LATERAL (SELECT s.id FROM {SEND} s
        WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = e.id LIMIT 1) own ON true
    LEFT JOIN LATERAL (SELECT s.id FROM {SEND} s
        WHERE s.campaign_id = %(campaign)s AND s.email_lower = e.email_lower LIMIT 1) same ON true
    WHERE own.id IS NULL AND same.id IS NULL
)
UPDATE {CAMPAIGN} SET audience = audience + (SELECT n FROM people)
WHERE id = %(campaign)s
RETURNING (SELECT count(*) FROM inserted), (SELECT n FROM people)"""

# The closing sweep: insert whoever a slow import committed behind the cursor and count, in the
# same snapshot, the people: those eligible now, and those who were when their row was made.
SWEEP = f"""
WITH eligible AS MATERIALIZED ({_ELIGIBLE_AT_ALL}
), rows AS MATERIALIZED (
    SELECT subscriber_id, email_lower FROM {SEND} WHERE campaign_id = %(campaign)s
), missing AS MATERIALIZED (
    SELECT e.* FROM eligible e
    LEFT JOIN rows own ON own.subscriber_id = e.id
    WHERE own.subscriber_id IS NULL
), inserted AS ({_INSERT_SENDS.replace("FROM eligible e", "FROM missing e")}
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, status
), noted AS ({_NOTE_SUPPRESSED}
), newcomers AS (
    SELECT count(*) AS n FROM missing e
    LEFT JOIN rows same ON same.email_lower = e.email_lower WHERE same.email_lower IS NULL
), known AS (
    SELECT count(*) AS n FROM eligible e JOIN rows own ON own.subscriber_id = e.id
), gone AS (
    SELECT count(*) AS n FROM rows r LEFT JOIN eligible e ON e.id = r.subscriber_id
    WHERE e.id IS NULL
)
UPDATE {CAMPAIGN} SET built_at = clock_timestamp(),
    audience = (SELECT n FROM newcomers) + (SELECT n FROM known) + (SELECT n FROM gone)
WHERE id = %(campaign)s AND status = 'sending' AND built_at IS NULL
RETURNING (SELECT count(*) FROM inserted), audience"""

# --- claim -----------------------------------------------------------------------------------

_CLAIM = f"""
, claimed AS (
    UPDATE {SEND} s SET status = 'claimed', claim_token = gen_random_uuid(),
        worker_id = %(worker)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second'
    FROM picked WHERE s.id = picked.id
    RETURNING s.id, s.claim_token, s.account_id, s.campaign_id, s.subscriber_id, s.email,
        s.email_lower, s.job_id, s.content_id, s.context, s.attempts
)
SELECT c.id, c.claim_token, c.account_id, c.campaign_id, c.subscriber_id, c.email, c.email_lower,
    c.job_id, COALESCE(c.content_id, k.content_id), c.context, p.attributes
FROM claimed c
LEFT JOIN {CAMPAIGN} k ON k.id = c.campaign_id
LEFT JOIN {SUBSCRIBER} p ON p.id = c.subscriber_id
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
        WHERE s.campaign_id = open.campaign_id AND s.status = 'queued' AND s.id > open.mark
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
        WHERE s.campaign_id = open.id AND s.status = 'retry'
          AND s.next_attempt_at <= clock_timestamp()
        ORDER BY s.next_attempt_at LIMIT %(each)s FOR UPDATE OF s SKIP LOCKED) r
    LIMIT %(total)s
){_CLAIM}"""

# Transactional messages have no campaign; they come first.
CLAIM_TRANSACTIONAL = f"""
WITH picked AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id IS NULL
      AND (s.status = 'queued' OR (s.status = 'retry' AND s.next_attempt_at <= clock_timestamp()))
      AND s.account_id <> ALL(%(blocked)s::bigint[])
    ORDER BY s.id LIMIT %(total)s FOR UPDATE OF s SKIP LOCKED
){_CLAIM}"""

RENEW = f"""
WITH held AS (
    SELECT s.id FROM {SEND} s
    JOIN unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS t(id, token)
      ON s.id = t.id AND s.claim_token = t.token
    WHERE s.status IN ('claimed', 'sending')
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE {SEND} s SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
FROM held WHERE s.id = held.id RETURNING s.id"""

# --- hand over -------------------------------------------------------------------------------

# First statement behind the gates: the row locks, in one order for everybody.
LOCK_ROWS = f"""
SELECT id FROM {SEND} WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE"""

# What becomes of a row that would open, be closed or be canceled while an earlier hand-over of
# it is still in doubt: back in doubt. "Canceled" or "suppressed" would say that nothing left.
_DOUBTED = "cardinality(s.doubt_tokens) > 0"

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
        WHEN {_DOUBTED} THEN 'in_doubt'
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
        WHEN k.finding <> 'not_sending' AND {_DOUBTED}
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN k.finding NOT IN ('go', 'not_sending') AND {_DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    reason = CASE WHEN k.finding IN ('go', 'not_sending') THEN s.reason ELSE k.finding END
FROM checked k WHERE s.id = k.id
RETURNING k.token, k.finding, s.attempts, s.status"""

# --- outcomes --------------------------------------------------------------------------------

_CLOSED_BY_CANCEL = "c.status = 'canceled'"

# An acceptance of any hand-over of the row, current or in doubt, makes it sent and ends it.
ACCEPT = f"""
UPDATE {SEND} s SET status = 'sent', sent_at = clock_timestamp(), lease_until = NULL,
    settle_at = NULL, provider_message_id = left(o.message_id, 300), answer_stage = o.stage,
    answer_code = o.code, answer_enhanced = o.enhanced, answer_text = o.text, reason = ''
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(message_ids)s::text[], %(stages)s::text[],
    %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[])
    AS o(id, token, message_id, stage, code, enhanced, text)
WHERE s.id = o.id AND s.status <> 'sent'
  AND (s.claim_token = o.token OR o.token = ANY(s.doubt_tokens))
RETURNING s.id"""

# Any other outcome speaks of the current hand-over only, and only while its fate is open: a
# late "don't know" never overwrites knowledge. A retry in a canceled campaign stays closed. A
# repeat that could not even be made leaves the earlier hand-over in doubt as it was. A
# refusal of a repeat says nothing about an earlier hand-over in doubt, but a person or a policy
# asked for the repeat, so its answer counts; an acceptance of the earlier one still wins.
REFUSE = f"""
WITH told AS (
    SELECT s.id, s.status AS was, o.*, CASE
        WHEN s.status = 'claimed' AND {_DOUBTED} THEN 'in_doubt'
        WHEN o.outcome = 'retry' AND c.status = 'canceled' AND {_DOUBTED} THEN 'in_doubt'
        WHEN o.outcome = 'retry' AND c.status = 'canceled' THEN 'canceled'
        ELSE o.outcome END AS becomes,
        a.in_doubt_policy
    FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(outcomes)s::text[], %(delays)s::float[],
        %(stages)s::text[], %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[],
        %(reasons)s::text[])
        AS o(send_id, token, outcome, delay, stage, code, enhanced, text, reason)
    JOIN {SEND} s ON s.id = o.send_id AND s.claim_token = o.token
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
    settle_at = CASE WHEN t.becomes = 'in_doubt' AND t.outcome = 'in_doubt'
        AND t.in_doubt_policy <> 'hold'
        AND (c.status IS NULL OR NOT {_CLOSED_BY_CANCEL})
        THEN clock_timestamp() + %(doubt_wait)s * interval '1 second' END,
    lease_until = NULL, answer_stage = t.stage, answer_code = t.code,
    answer_enhanced = t.enhanced, answer_text = t.text, reason = t.reason
FROM told t JOIN {SEND} same ON same.id = t.id LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = t.id
RETURNING s.id, t.becomes, s.account_id, s.email, s.attempts, t.token, t.was"""

EVENT_INSERT = f"""
INSERT INTO {EVENT} (send_id, account_id, kind, stage, code, enhanced, text, reason, attempt,
    by_name, at)
SELECT o.id, o.account_id, o.kind, o.stage, o.code, o.enhanced, o.text, o.reason, o.attempt,
    o.by_name, clock_timestamp()
FROM unnest(%(ids)s::bigint[], %(accounts)s::bigint[], %(kinds)s::text[], %(stages)s::text[],
    %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[], %(reasons)s::text[],
    %(attempts)s::smallint[], %(by_names)s::text[])
    AS o(id, account_id, kind, stage, code, enhanced, text, reason, attempt, by_name)"""

# Never started, known for certain: back to where it came from, the attempt refunded.
GIVE_BACK = f"""
UPDATE {SEND} s SET
    status = CASE
        WHEN c.status = 'canceled' AND {_DOUBTED} THEN 'in_doubt'
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN s.next_attempt_at IS NULL THEN 'queued'
        ELSE 'retry' END,
    claim_token = CASE WHEN c.status = 'canceled' AND {_DOUBTED}
        THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN c.status = 'canceled' AND {_DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    attempts = GREATEST(s.attempts - (s.status <> 'claimed')::int, 0),
    handed_at = CASE WHEN {_DOUBTED} THEN s.handed_at END,
    lease_until = NULL, worker_id = NULL, settle_at = NULL,
    reason = CASE
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN s.status = 'in_doubt' THEN ''
        ELSE s.reason END
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS o(id, token)
JOIN {SEND} same ON same.id = o.id
LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = o.id AND s.claim_token = o.token AND s.status IN ('claimed', 'sending', 'in_doubt')
RETURNING s.id, s.account_id, s.campaign_id, s.status, same.status"""

# --- rescue ----------------------------------------------------------------------------------

_EXPIRED = "s.status IN ('claimed', 'sending') AND s.lease_until < clock_timestamp()"
_OF_DEAD = "s.status IN ('claimed', 'sending') AND s.worker_id = %(worker)s"

_RESCUE = f"""
WITH lost AS (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id IS NOT DISTINCT FROM %(campaign)s AND {{which}}
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE {SEND} s SET
    status = CASE
        WHEN s.status = 'sending' THEN 'in_doubt'
        WHEN c.status = 'canceled' AND {_DOUBTED} THEN 'in_doubt'
        WHEN c.status = 'canceled' THEN 'canceled'
        WHEN s.next_attempt_at IS NULL THEN 'queued'
        ELSE 'retry' END,
    claim_token = CASE
        WHEN s.status = 'sending' THEN s.claim_token
        WHEN c.status = 'canceled' AND {_DOUBTED}
            THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN s.status = 'claimed' AND c.status = 'canceled' AND {_DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    settle_at = CASE
        WHEN s.status = 'sending' AND a.in_doubt_policy <> 'hold'
            AND c.status IS DISTINCT FROM 'canceled'
        THEN GREATEST(s.lease_until, clock_timestamp()) + %(doubt_wait)s * interval '1 second' END,
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

# --- cancel and withdraw ---------------------------------------------------------------------

# In slices, so that a million rows do not make one transaction of a minute.
CANCEL_ROWS = f"""
WITH doomed AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id = %(campaign)s AND s.status IN ('queued', 'retry', 'claimed')
    ORDER BY s.id LIMIT %(size)s FOR NO KEY UPDATE OF s
), closed AS (
    UPDATE {SEND} s SET
        status = CASE WHEN {_DOUBTED} THEN 'in_doubt' ELSE 'canceled' END,
        claim_token = CASE WHEN {_DOUBTED} THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
        doubt_tokens = CASE WHEN {_DOUBTED} THEN trim_array(s.doubt_tokens, 1)
            ELSE s.doubt_tokens END,
        lease_until = NULL, worker_id = NULL, reason = 'canceled'
    FROM doomed WHERE s.id = doomed.id AND s.status IN ('queued', 'retry', 'claimed')
    RETURNING s.id, s.account_id, s.status
), noted AS (
    INSERT INTO {EVENT} (send_id, account_id, kind, stage, enhanced, text, reason, by_name, at)
    SELECT id, account_id, status, 'local', '', %(text)s, 'canceled', '', clock_timestamp()
    FROM closed
)
SELECT count(*) FROM closed"""

# A cancel that died half-way. Claimed rows need no look: hand-over or rescue closes them.
CANCELED_WITH_OPEN_ROWS = f"""
SELECT c.id FROM {CAMPAIGN} c
WHERE c.status = 'canceled' AND (
    EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND s.status = 'queued')
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND s.status = 'retry'))"""

LEAVERS_CAMPAIGNS = f"""
SELECT DISTINCT s.campaign_id FROM {SEND} s JOIN {CAMPAIGN} c ON c.id = s.campaign_id
WHERE s.subscriber_id = ANY(%(subscribers)s::bigint[]) AND s.status IN ('queued', 'retry')
  AND c.status IN ('sending', 'paused')"""

WITHDRAW_LEAVERS = f"""
WITH leaving AS MATERIALIZED (
    SELECT s.id FROM {SEND} s
    WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = ANY(%(subscribers)s::bigint[])
      AND s.status IN ('queued', 'retry') AND NOT EXISTS (
        SELECT 1 FROM {MEMBERSHIP} m JOIN {INCLUDE} i ON i.segment_id = m.segment_id
        JOIN {SUBSCRIBER} p ON p.id = m.subscriber_id
        WHERE i.campaign_id = s.campaign_id AND m.subscriber_id = s.subscriber_id
          AND m.left_at IS NULL AND p.status = 'confirmed')
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE {SEND} s SET
    status = CASE WHEN {_DOUBTED} THEN 'in_doubt' ELSE 'suppressed' END,
    claim_token = CASE WHEN {_DOUBTED} THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN {_DOUBTED} THEN trim_array(s.doubt_tokens, 1)
        ELSE s.doubt_tokens END,
    reason = CASE WHEN EXISTS (
        SELECT 1 FROM {SUBSCRIBER} p WHERE p.id = s.subscriber_id AND p.status = 'confirmed')
        THEN 'left' ELSE 'unsubscribed' END
FROM leaving WHERE s.id = leaving.id
RETURNING s.id, s.account_id, s.status, s.reason"""

# --- doubt -----------------------------------------------------------------------------------

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

# --- transports that are paused --------------------------------------------------------------

PAUSE_TABLE = "sendonce_sending_transportpause"

# Two arbiters: an account's pause and the transport's own (account null) are unique apart.
PAUSE_ACCOUNT = f"""
INSERT INTO {PAUSE_TABLE} AS t (alias, account_id, stage, code, reason, since, failures, probe_at)
VALUES (%(alias)s, %(account)s, %(stage)s, %(code)s, %(reason)s, clock_timestamp(), 1,
    clock_timestamp() + %(first)s * interval '1 second')
ON CONFLICT (alias, account_id) DO UPDATE SET stage = excluded.stage, code = excluded.code,
    reason = excluded.reason, failures = t.failures + 1,
    probe_at = clock_timestamp() + LEAST(%(longest)s, %(first)s * 2 ^ LEAST(t.failures, 10))
        * interval '1 second'
RETURNING failures"""

PAUSE_ALIAS = PAUSE_ACCOUNT.replace(
    "ON CONFLICT (alias, account_id)", "ON CONFLICT (alias) WHERE account_id IS NULL"
)

LIFT = f"""
DELETE FROM {PAUSE_TABLE}
WHERE alias = %(alias)s AND account_id IS NOT DISTINCT FROM %(account)s"""

# Whoever moves probe_at makes the try; the others go on waiting.
TAKE_PROBES = f"""
UPDATE {PAUSE_TABLE} SET probe_at = clock_timestamp()
    + LEAST(%(longest)s, %(first)s * 2 ^ LEAST(failures, 10)) * interval '1 second'
WHERE id IN (SELECT id FROM {PAUSE_TABLE} WHERE probe_at <= clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED)
RETURNING alias, account_id"""

PAUSED = f"SELECT alias, account_id, reason FROM {PAUSE_TABLE} ORDER BY id"

# --- ledger ----------------------------------------------------------------------------------

COUNTS = f"""
SELECT c.audience, c.built_at IS NOT NULL, s.status, count(s.id)
FROM {CAMPAIGN} c LEFT JOIN {SEND} s ON s.campaign_id = c.id
WHERE c.id = %(campaign)s GROUP BY c.audience, c.built_at, s.status"""

# Open: somebody may still get it without a person deciding so. Each arm has its partial index.
OPEN_ROWS = f"""
SELECT EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND s.status = 'queued')
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s AND s.status = 'retry')
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.campaign_id = %(campaign)s
        AND s.status IN ('claimed', 'sending'))
    OR EXISTS (SELECT 1 FROM {SEND} s JOIN {ACCOUNT} a ON a.id = s.account_id
        WHERE s.campaign_id = %(campaign)s AND s.status = 'in_doubt'
          AND s.settle_at IS NOT NULL AND a.in_doubt_policy <> 'hold')"""

# For --drain: is there something to do now, or within the patience (seconds)? A paused
# campaign's queue is not work; what is in flight anywhere is.
HAS_WORK = f"""
WITH scope AS (
    SELECT c.id, c.status, c.built_at, c.scheduled_for FROM {CAMPAIGN} c
    WHERE c.status IN ('approved', 'sending')
      AND (%(campaign)s::bigint IS NULL OR c.id = %(campaign)s::bigint)
)
SELECT EXISTS (SELECT 1 FROM scope WHERE status = 'approved'
        AND scheduled_for <= clock_timestamp())
    OR EXISTS (SELECT 1 FROM scope WHERE status = 'sending' AND built_at IS NULL)
    OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.status IN ('claimed', 'sending')
        AND (%(campaign)s::bigint IS NULL OR s.campaign_id = %(campaign)s::bigint))
    OR EXISTS (SELECT 1 FROM scope c WHERE c.status = 'sending' AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND s.status = 'queued'))
    OR EXISTS (SELECT 1 FROM scope c WHERE c.status = 'sending' AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id = c.id AND s.status = 'retry'
          AND s.next_attempt_at <= clock_timestamp() + %(patience)s * interval '1 second'))
    OR (%(campaign)s::bigint IS NULL AND EXISTS (
        SELECT 1 FROM {SEND} s WHERE s.campaign_id IS NULL AND (s.status = 'queued'
          OR (s.status = 'retry'
            AND s.next_attempt_at <= clock_timestamp() + %(patience)s * interval '1 second'))))"""
