"""Token buckets that all workers share, slow-downs, and rows that wait for a permit."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, DOUBTED, IN_LOT, LIMIT, SEND, WORKER

# Whoever needs several takes them in the order of their keys. Read after the lock was had: the
# tokens that a competitor has just taken are gone. clock_timestamp() may be from before the wait
# for the lock where nothing was changed meanwhile, which only gives less.
LOCK_BUCKETS = f"""
SELECT key, rate, tokens, EXTRACT(EPOCH FROM clock_timestamp() - updated)::float8,
    clock_timestamp()
FROM {LIMIT} WHERE key = ANY(%(keys)s::text[]) ORDER BY key FOR NO KEY UPDATE"""

# Where nobody wanted any for a while there is no backlog any more.
TAKE_TOKENS = f"""
UPDATE {LIMIT} l SET tokens = t.tokens, updated = GREATEST(l.updated, %(at)s),
    spread_until = CASE WHEN l.updated > %(at)s - %(idle)s * interval '1 second'
        THEN l.spread_until END
FROM unnest(%(keys)s::text[], %(tokens)s::float8[]) AS t(key, tokens)
WHERE l.key = t.key"""

# Places for so many rows that are put off; the seconds until the last of them.
SPREAD = f"""
UPDATE {LIMIT} SET spread_until = LEAST(
    GREATEST(spread_until, clock_timestamp() + %(after)s * interval '1 second')
        + %(count)s / rate * interval '1 second',
    clock_timestamp() + %(longest)s * interval '1 second')
WHERE key = %(key)s
RETURNING EXTRACT(EPOCH FROM spread_until - clock_timestamp())::float8, rate"""

LIMITS = f"""
SELECT key, usual, rate, tokens, EXTRACT(EPOCH FROM clock_timestamp() - updated)::float8,
    slowed_at IS NOT NULL
FROM {LIMIT} ORDER BY key"""

ACCOUNTS = f"SELECT id, transport, max_per_hour FROM {ACCOUNT}"

# A slow-down outlives a change of the configuration; nothing else does.
CONFIGURE = f"""
INSERT INTO {LIMIT} AS l (key, usual, rate, tokens, updated, reason)
SELECT t.key, t.rate, t.rate, 1, clock_timestamp(), ''
FROM unnest(%(keys)s::text[], %(rates)s::float8[]) AS t(key, rate) ORDER BY t.key
ON CONFLICT (key) DO UPDATE SET usual = excluded.usual, ceiling = NULL,
    rate = CASE WHEN l.slowed_at IS NULL THEN excluded.rate ELSE LEAST(l.rate, excluded.rate) END"""

_NOT_CONFIGURED = f"""
SELECT id FROM {LIMIT} WHERE usual IS NOT NULL AND key <> ALL(%(keys)s::text[])
ORDER BY key FOR NO KEY UPDATE"""

REMOVE = f"DELETE FROM {LIMIT} WHERE slowed_at IS NULL AND id IN ({_NOT_CONFIGURED})"

ONLY_SLOW = f"""
UPDATE {LIMIT} SET ceiling = usual, usual = NULL
WHERE slowed_at IS NOT NULL AND id IN ({_NOT_CONFIGURED})"""

# One decrease per while, whatever the number of workers and lanes that hear of it: whoever moves
# slowed_at makes it. "Nothing before" only ever moves forward.
SLOW_DOWN = f"""
INSERT INTO {LIMIT} AS l (key, rate, ceiling, tokens, updated, slowed_at, reason)
VALUES (%(key)s, %(rate)s, %(ceiling)s, 0, clock_timestamp() + %(closed)s * interval '1 second',
    clock_timestamp(), %(reason)s)
ON CONFLICT (key) DO UPDATE SET
    rate = CASE
        WHEN l.slowed_at > clock_timestamp() - %(patience)s * interval '1 second' THEN l.rate
        ELSE GREATEST(LEAST(l.rate, %(slowest)s), l.rate * %(decrease)s) END,
    slowed_at = CASE
        WHEN l.slowed_at > clock_timestamp() - %(patience)s * interval '1 second'
        THEN l.slowed_at ELSE clock_timestamp() END,
    updated = CASE WHEN %(closed)s > 0
        THEN GREATEST(l.updated, clock_timestamp() + %(closed)s * interval '1 second')
        ELSE l.updated END,
    reason = excluded.reason
RETURNING l.rate"""

_CALM = f"""
SELECT id FROM {LIMIT}
WHERE slowed_at IS NOT NULL AND updated <= clock_timestamp()
  AND GREATEST(slowed_at, raised_at) < clock_timestamp() - %(recovery)s * interval '1 second'
ORDER BY key FOR NO KEY UPDATE SKIP LOCKED"""

FORGET_SLOW_DOWN = f"""
DELETE FROM {LIMIT} WHERE usual IS NULL
  AND (ceiling IS NULL OR rate * %(increase)s >= ceiling) AND id IN ({_CALM})
RETURNING key, rate"""

RAISE = f"""
UPDATE {LIMIT} SET
    rate = LEAST(rate * %(increase)s, COALESCE(usual, ceiling)),
    raised_at = CASE WHEN rate * %(increase)s >= usual THEN NULL ELSE clock_timestamp() END,
    reason = CASE WHEN rate * %(increase)s >= usual THEN '' ELSE reason END,
    slowed_at = CASE WHEN rate * %(increase)s >= usual THEN NULL ELSE slowed_at END
WHERE id IN ({_CALM})
RETURNING key, rate"""

PEERS = f"""
SELECT id, EXTRACT(EPOCH FROM clock_timestamp() - started)::float8, sessions FROM {WORKER}
WHERE ended IS NULL AND seen > clock_timestamp() - %(alive)s * interval '1 second' ORDER BY id"""

TELL_SESSIONS = f"UPDATE {WORKER} SET sessions = %(sessions)s::jsonb WHERE id = %(worker)s"

# As a give-back from ``claimed``, but for later; no attempt was spent.
DEFER = f"""
UPDATE {SEND} s SET
    status = CASE
        WHEN c.status = 'canceled' AND {DOUBTED} THEN 'in_doubt'
        WHEN c.status = 'canceled' THEN 'canceled'
        ELSE 'retry' END,
    next_attempt_at = CASE WHEN c.status = 'canceled' THEN s.next_attempt_at
        ELSE clock_timestamp() + o.delay * interval '1 second' END,
    claim_token = CASE WHEN c.status = 'canceled' AND {DOUBTED}
        THEN s.doubt_tokens[cardinality(s.doubt_tokens)] END,
    doubt_tokens = CASE WHEN c.status = 'canceled' AND {DOUBTED}
        THEN trim_array(s.doubt_tokens, 1) ELSE s.doubt_tokens END,
    lease_until = NULL, worker_id = NULL,
    reason = CASE WHEN c.status = 'canceled' THEN 'canceled' ELSE 'rate_limited' END
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(delays)s::float8[]) AS o(id, token, delay)
JOIN {SEND} same ON same.id = o.id AND same.id = {IN_LOT}
LEFT JOIN {CAMPAIGN} c ON c.id = same.campaign_id
WHERE s.id = o.id AND s.claim_token = o.token AND s.status = 'claimed'
RETURNING s.id, s.account_id, s.status"""
