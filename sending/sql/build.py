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
# ``person`` and ``member`` limit every arm to a chunk of ids; without it in each, the planner reads
# all memberships of a million for every chunk of a few thousand.
_ELIGIBLE = f"""
    FROM {SUBSCRIBER} p
    WHERE p.account_id = %(account)s AND p.status = 'confirmed'{{person}}
      AND p.id IN (SELECT m.subscriber_id FROM {MEMBERSHIP} m
        WHERE m.segment_id = ANY(%(include)s::bigint[]) AND m.left_at IS NULL{{member}})
      AND NOT EXISTS (SELECT 1 FROM {MEMBERSHIP} m
        WHERE m.segment_id = ANY(%(exclude)s::bigint[]) AND m.left_at IS NULL{{member}}
          AND m.subscriber_id = p.id)"""

# ... and what becomes a row of them.
_PERSON = f"""p.id, p.account_id, p.email, p.email_lower, CASE
        WHEN {_SUPPRESSED} THEN 'suppressed'
        WHEN {PERSON_PAUSED} THEN 'paused' ELSE '' END AS why"""

_ELIGIBLE_IN_CHUNK = f"\n    SELECT {_PERSON}" + _ELIGIBLE.format(
    person="\n      AND p.id > %(after)s AND p.id <= %(upto)s",
    member="\n        AND m.subscriber_id > %(after)s AND m.subscriber_id <= %(upto)s",
)
_IDS_AT_ALL = "SELECT p.id" + _ELIGIBLE.format(person="", member="")

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

# People are counted in the snapshot that inserts them, and not by their rows. Nearly always nobody
# of a chunk has one yet; to look for it first in four indexes would be a fifth of the work. A row
# that is there ends the statement, and the chunk is built with the next one.
CHUNK_INSERT = f"""
WITH eligible AS MATERIALIZED ({_ELIGIBLE_IN_CHUNK}
), inserted AS ({_INSERT_SENDS}
    ORDER BY e.id RETURNING id, account_id, status, reason
), noted AS ({_NOTE_WITHHELD}
), people AS (
    SELECT count(*) AS n FROM eligible
)
UPDATE {CAMPAIGN} SET audience = audience + (SELECT n FROM people)
WHERE id = %(campaign)s
RETURNING (SELECT count(*) FROM inserted), (SELECT n FROM people)"""

# The same where some have a row: counted are who got one by it, and who ought to have got one.
# Somebody whose address has a row already (two people swapped addresses while the build ran) is the
# same recipient, not another one. Rows of before are only looked up, one by one, for those few who
# got none: a subquery of one value is never made a join, which would read all rows of a campaign.
CHUNK_INSERT_BESIDE = f"""
WITH eligible AS MATERIALIZED ({_ELIGIBLE_IN_CHUNK}
), inserted AS ({_INSERT_SENDS}
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, subscriber_id, status, reason
), noted AS ({_NOTE_WITHHELD}
), people AS (
    SELECT count(*) AS n FROM eligible e
    WHERE e.id IN (SELECT subscriber_id FROM inserted) OR COALESCE(
        (SELECT s.id FROM {SEND} s
            WHERE s.campaign_id = %(campaign)s AND s.subscriber_id = e.id LIMIT 1),
        (SELECT s.id FROM {SEND} s
            WHERE s.campaign_id = %(campaign)s AND s.email_lower = e.email_lower LIMIT 1)) IS NULL
)
UPDATE {CAMPAIGN} SET audience = audience + (SELECT n FROM people)
WHERE id = %(campaign)s
RETURNING (SELECT count(*) FROM inserted), (SELECT n FROM people)"""

# The closing sweep: insert whoever a slow import committed behind the cursor and count, in the
# same snapshot, the people: those eligible now, and those who were when their row was made. One
# pass over ids alone; what else is needed of a person is read for the few who have no row.
SWEEP = f"""
WITH compared AS MATERIALIZED (
    SELECT count(*) AS people, array_agg(e.id) FILTER (WHERE s.id IS NULL) AS missing
    FROM ({_IDS_AT_ALL}) e
    FULL JOIN (SELECT s.id, s.subscriber_id FROM {SEND} s WHERE s.campaign_id = %(campaign)s) s
        ON s.subscriber_id = e.id
), missing AS MATERIALIZED (
    SELECT {_PERSON} FROM unnest((SELECT missing FROM compared)) AS t(id)
    JOIN {SUBSCRIBER} p ON p.id = t.id
), inserted AS ({_INSERT_SENDS.replace("FROM eligible e", "FROM missing e")}
    ORDER BY e.id ON CONFLICT DO NOTHING RETURNING id, account_id, status, reason
), noted AS ({_NOTE_WITHHELD}
), same AS (
    SELECT count(*) AS n FROM missing e WHERE (SELECT s.id FROM {SEND} s
        WHERE s.campaign_id = %(campaign)s AND s.email_lower = e.email_lower LIMIT 1) IS NOT NULL
)
UPDATE {CAMPAIGN} SET built_at = clock_timestamp(),
    audience = (SELECT people FROM compared) - (SELECT n FROM same)
WHERE id = %(campaign)s AND status = 'sending' AND built_at IS NULL
RETURNING (SELECT count(*) FROM inserted), audience"""
