"""What the brakes count of each campaign, all workers together, and what staff were told.

``base`` of a row holds, besides the counts at the last resume: ``refusal`` (what the last refusal
said), ``paused`` (true from a pause until the first look after it was resumed), ``trips`` (how
often a brake has paused it, with the reason of the last in ``trip`` and its time in
``tripped_at``), and what staff were told:
``told_trips``, ``told_sent``, ``told_rates``, ``told_doubt``.
"""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, HEALTH, IN_DOUBT, SEND

# One process's counts since it last told them, or what providers told by webhook. The campaign's
# row is held, so that one that is deleted at this moment is left out instead of failing
# everybody's counts at the commit; both locks are taken in the order of the campaigns. An
# acceptance begins the row of refusals anew.
ADD = f"""
INSERT INTO {HEALTH} AS h
    (campaign_id, accepted, bounced, refused, complained, in_a_row, base, updated)
SELECT c.id, u.accepted, u.bounced, u.refused, u.complained, u.in_a_row,
    CASE WHEN u.refusal = '' THEN '{{}}'::jsonb
        ELSE jsonb_build_object('refusal', u.refusal) END,
    clock_timestamp()
FROM unnest(%(campaigns)s::bigint[], %(accepted)s::bigint[], %(bounced)s::bigint[],
        %(refused)s::bigint[], %(complained)s::bigint[], %(in_a_row)s::int[],
        %(refusals)s::text[])
    AS u (campaign, accepted, bounced, refused, complained, in_a_row, refusal)
JOIN {CAMPAIGN} c ON c.id = u.campaign
ORDER BY c.id FOR KEY SHARE OF c
ON CONFLICT (campaign_id) DO UPDATE SET
    accepted = h.accepted + excluded.accepted,
    bounced = h.bounced + excluded.bounced,
    refused = h.refused + excluded.refused,
    complained = h.complained + excluded.complained,
    in_a_row = excluded.in_a_row + CASE WHEN excluded.accepted > 0 THEN 0 ELSE h.in_a_row END,
    base = h.base || excluded.base,
    updated = excluded.updated"""

# Paused by anybody: what is counted until somebody resumes it is what they know.
MARK_PAUSED = f"""
UPDATE {HEALTH} h SET base = h.base || '{{"paused": true}}'::jsonb
FROM (SELECT x.campaign_id FROM {HEALTH} x JOIN {CAMPAIGN} c ON c.id = x.campaign_id
    WHERE c.status = 'paused' AND NOT x.base ? 'paused'
    ORDER BY x.campaign_id FOR NO KEY UPDATE OF x) p
WHERE h.campaign_id = p.campaign_id"""

# Resumed: the rates are taken from here, and the row of refusals begins anew.
START_AGAIN = f"""
UPDATE {HEALTH} h SET in_a_row = 0, updated = clock_timestamp(),
    base = (h.base - 'paused' - 'refusal') || jsonb_build_object('accepted', h.accepted,
        'bounced', h.bounced, 'refused', h.refused, 'complained', h.complained)
FROM (SELECT x.campaign_id FROM {HEALTH} x JOIN {CAMPAIGN} c ON c.id = x.campaign_id
    WHERE c.status = 'sending' AND x.base ? 'paused'
      AND (%(campaigns)s::bigint[] IS NULL OR x.campaign_id = ANY(%(campaigns)s::bigint[]))
    ORDER BY x.campaign_id FOR NO KEY UPDATE OF x) p
WHERE h.campaign_id = p.campaign_id"""

_TOTALS = f"""
SELECT h.campaign_id, h.accepted, h.bounced, h.refused, h.complained, h.in_a_row, h.base,
    a.max_refusals, a.max_bounce_rate::float8, a.max_complaint_rate::float8
FROM {HEALTH} h JOIN {CAMPAIGN} c ON c.id = h.campaign_id JOIN {ACCOUNT} a ON a.id = c.account_id"""

# Of running campaigns, with their accounts' limits. One that is marked as paused was resumed a
# moment ago and begins anew first.
RUNNING = f"""{_TOTALS}
WHERE c.status = 'sending' AND NOT h.base ? 'paused' AND (h.bounced > 0 OR h.refused > 0
    OR h.complained > 0)
  AND (%(campaigns)s::bigint[] IS NULL OR h.campaign_id = ANY(%(campaigns)s::bigint[]))
ORDER BY h.campaign_id"""

# In the transaction of the pause. Nothing comes back when somebody has resumed it since the counts
# were judged: they are old evidence.
TRIP = f"""
INSERT INTO {HEALTH} AS h
    (campaign_id, accepted, bounced, refused, complained, in_a_row, base, updated)
VALUES (%(campaign)s, 0, 0, 0, 0, 0,
    jsonb_build_object('paused', true, 'trips', 1, 'trip', %(reason)s::text,
        'tripped_at', clock_timestamp()), clock_timestamp())
ON CONFLICT (campaign_id) DO UPDATE SET in_a_row = 0, updated = clock_timestamp(),
    base = h.base || jsonb_build_object('paused', true, 'trip', %(reason)s::text,
        'tripped_at', clock_timestamp(), 'trips', COALESCE((h.base ->> 'trips')::int, 0) + 1)
WHERE NOT h.base ? 'paused'
RETURNING h.campaign_id"""

# --- what staff are still to be told ---------------------------------------------------------

DUE_TRIPS = f"""
SELECT h.campaign_id FROM {HEALTH} h
WHERE (h.base ->> 'trips')::int > COALESCE((h.base ->> 'told_trips')::int, 0)
ORDER BY h.campaign_id"""

# Looked for among the day's, so that a worker that died between the finish and the notice, or a
# sender that is started once an hour, loses none.
DUE_SENT = f"""
SELECT c.id FROM {CAMPAIGN} c LEFT JOIN {HEALTH} h ON h.campaign_id = c.id
WHERE c.status = 'sent' AND c.finished_at > clock_timestamp() - interval '1 day'
  AND NOT COALESCE(h.base ? 'told_sent', false)
ORDER BY c.id"""

# Bounces and complaints that providers tell go on coming when all is sent.
SENT_LATELY = f"""{_TOTALS}
WHERE c.status = 'sent' AND c.finished_at > clock_timestamp() - interval '7 days'
  AND NOT h.base ? 'told_rates'
  AND (h.complained >= %(complaints)s OR h.bounced >= %(bounces)s)
ORDER BY h.campaign_id"""

# Rows in doubt that nothing will settle but evidence or a person, of which some are new since
# staff were last told; those still within the answer's time-out may yet resolve themselves.
DUE_DOUBT = f"""
WITH held AS (
    SELECT s.campaign_id, max(s.handed_at) AS latest FROM {SEND} s
    WHERE {IN_DOUBT} AND s.campaign_id IS NOT NULL AND s.settle_at IS NULL
      AND s.handed_at < clock_timestamp() - %(wait)s * interval '1 second'
    GROUP BY s.campaign_id
)
SELECT held.campaign_id FROM held LEFT JOIN {HEALTH} h ON h.campaign_id = held.campaign_id
WHERE COALESCE((h.base ->> 'told_doubt')::timestamptz < LEAST(
    held.latest + %(wait)s * interval '1 second', clock_timestamp() - interval '1 day'), true)
ORDER BY held.campaign_id"""

COUNT_DOUBT = f"""
SELECT count(*) FROM {SEND} s
WHERE {IN_DOUBT} AND s.campaign_id = %(campaign)s AND s.settle_at IS NULL"""

ENSURE = f"""
INSERT INTO {HEALTH} (campaign_id, accepted, bounced, refused, complained, in_a_row, base, updated)
SELECT c.id, 0, 0, 0, 0, 0, '{{}}'::jsonb, clock_timestamp() FROM {CAMPAIGN} c
WHERE c.id = %(campaign)s FOR KEY SHARE OF c
ON CONFLICT (campaign_id) DO NOTHING"""

LOCK = f"SELECT h.base FROM {HEALTH} h WHERE h.campaign_id = %(campaign)s FOR NO KEY UPDATE"

# ``told`` is an object of ``told_...`` keys.
TOLD = f"UPDATE {HEALTH} SET base = base || %(told)s::jsonb WHERE campaign_id = %(campaign)s"
