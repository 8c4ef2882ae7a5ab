"""From people to rows."""

from __future__ import annotations

from ..withheld import WITHHELD
from .tables import (
    CAMPAIGN,
    EVENT,
    EXCLUDE,
    INCLUDE,
    MEMBERSHIP,
    PERSON_PAUSED,
    SEND,
    SUBSCRIBER,
    SUPPRESSION,
)

_SUPPRESSED = f"""EXISTS (
    SELECT 1 FROM {SUPPRESSION} x
    WHERE x.email_lower = p.email_lower
      AND (x.account_id = p.account_id OR x.account_id IS NULL)
      AND (x.expires IS NULL OR x.expires > clock_timestamp()))"""

# The people a campaign addresses: confirmed, in a segment of it, in none that it excludes. ``why``
# they get nothing all the same, if so. Who ends a pause after this stays as it was found: a row
# says what became of one campaign, and is not opened again by a change of mind.
# ``bounds`` limits every arm to a chunk of ids; without it in each, the planner reads all
# memberships of a million for every chunk of a few thousand.
_ELIGIBLE = f"""
    SELECT p.id, p.account_id, p.email, p.email_lower, CASE
        WHEN {_SUPPRESSED} THEN 'suppressed' WHEN {PERSON_PAUSED} THEN 'paused' ELSE '' END AS why
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
        CASE WHEN e.why <> '' THEN 'suppressed' ELSE 'queued' END, e.why, 0, '{{}}', '', '', '', ''
    FROM eligible e"""

# People who are suppressed or pause already have their row, and the event that says why.
_WORDS = ", ".join(f"('{reason}', '{WITHHELD[reason]}')" for reason in ("suppressed", "paused"))
_NOTE_WITHHELD = f"""
    INSERT INTO {EVENT} (send_id, account_id, kind, stage, enhanced, text, reason, by_name, at)
    SELECT i.id, i.account_id, 'suppressed', 'local', '', w.text, i.reason, '', clock_timestamp()
    FROM inserted i JOIN (VALUES {_WORDS}) AS w (reason, text) ON w.reason = i.reason
    WHERE i.status = 'suppressed'"""

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
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, status, reason
), noted AS ({_NOTE_WITHHELD}
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
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, status, reason
), noted AS ({_NOTE_WITHHELD}
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
