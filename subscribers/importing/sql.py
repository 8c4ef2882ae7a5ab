"""The statements of an import.

A file's good rows are staged; then they become people (one per address), and people become
subscribers and members, a chunk of them in a transaction. Addresses are taken in ascending
order, so that two imports, or an import and anything else that goes by address, never wait in a
circle. What a chunk needs beside is in temporary tables of its transaction.
"""

from __future__ import annotations

from ..models import (
    AttributeDefinition,
    ImportChunk,
    ImportJob,
    ImportReject,
    ImportRow,
    Membership,
    Segment,
    Signup,
    Subscriber,
    Suppression,
)
from ..suppression import RANK, upsert_sql

SEGMENT = Segment._meta.db_table
SUBSCRIBER = Subscriber._meta.db_table
MEMBERSHIP = Membership._meta.db_table
SUPPRESSION = Suppression._meta.db_table
SIGNUP = Signup._meta.db_table
JOB = ImportJob._meta.db_table
STAGED = ImportRow._meta.db_table
REJECT = ImportReject._meta.db_table
CHUNK = ImportChunk._meta.db_table
DEFINITION = AttributeDefinition._meta.db_table

_REASONS = f"ARRAY[{', '.join(repr(reason.value) for reason in RANK)}]"

# --- staging ---------------------------------------------------------------------------------

COPY = f"""
COPY {STAGED} (job_id, line, email, status, attributes, locale, timezone, consent_source,
    suppressed) FROM STDIN"""

COPY_REJECTS = f"COPY {REJECT} (job_id, line, reason, cells) FROM STDIN"

# The first row staged. An unlogged table is empty after a crash of the server, and on a standby
# that took over: then this one is gone with the others.
MARK = f"""
INSERT INTO {STAGED} (job_id, line, email, status, attributes, locale, timezone, consent_source,
    suppressed) VALUES (%s, 0, '', '', '{{}}', '', '', '', '') ON CONFLICT DO NOTHING"""
MARKED = f"SELECT EXISTS (SELECT 1 FROM {STAGED} WHERE job_id = %s AND line = 0)"

UNSTAGE = f"DELETE FROM {STAGED} WHERE job_id = %s"
# Those whom a chunk refused because they were erased stay: that chunk is not done again.
FORGET_REJECTS = f"DELETE FROM {REJECT} WHERE job_id = %s AND reason <> ALL(%s)"

# --- one chunk of people ---------------------------------------------------------------------

# Along the index and never by sorting what is left of the file: a chunk's cost must not depend
# on the size of the file, whatever the planner believes of a table that changes that fast.
ALONG_THE_INDEX = "SET LOCAL enable_sort = off"
AS_BEFORE = "SET LOCAL enable_sort TO DEFAULT"

UPTO = f"""
SELECT email_lower FROM {STAGED} WHERE job_id = %(job)s AND email_lower > %(after)s
ORDER BY email_lower OFFSET %(size)s - 1 LIMIT 1"""
LAST = f"""
SELECT email_lower FROM {STAGED} WHERE job_id = %(job)s AND email_lower > %(after)s
ORDER BY email_lower DESC LIMIT 1"""

TABLES = """
DROP TABLE IF EXISTS pg_temp.sendonce_people, pg_temp.sendonce_known;
CREATE TEMPORARY TABLE sendonce_people (
    line bigint NOT NULL,
    email varchar(320) NOT NULL,
    email_lower varchar(320) NOT NULL,
    attributes jsonb NOT NULL,
    locale varchar(20) NOT NULL,
    timezone varchar(64) NOT NULL,
    consent_source varchar(200) NOT NULL,
    caution smallint NOT NULL,
    suppressed varchar(20),
    times bigint NOT NULL
) ON COMMIT DROP;
CREATE TEMPORARY TABLE sendonce_known (
    id bigint NOT NULL,
    email_lower varchar(320) NOT NULL,
    outcome "char" NOT NULL,
    status varchar(20) NOT NULL
) ON COMMIT DROP"""

# One row per person: the last, save that the most cautious word of any of them holds.
PEOPLE = f"""
INSERT INTO sendonce_people
SELECT DISTINCT ON (email_lower)
    line, email, email_lower, attributes, locale, timezone, consent_source,
    max(CASE status WHEN 'unsubscribed' THEN 2 WHEN 'pending' THEN 1 ELSE 0 END) OVER same,
    ({_REASONS})[max(array_position({_REASONS}, suppressed::text)) OVER same],
    count(*) OVER same
FROM {STAGED}
WHERE job_id = %(job)s AND email_lower > %(after)s AND email_lower <= %(upto)s
WINDOW same AS (PARTITION BY email_lower)
ORDER BY email_lower, line DESC"""

COUNT_PEOPLE = "SELECT count(*), COALESCE(sum(times), 0)::bigint FROM sendonce_people"

# The segment stays until the transaction ends; the first snapshot behind the lock on erasures.
HOLD_SEGMENT = f"SELECT 1 FROM {SEGMENT} WHERE id = %(segment)s FOR KEY SHARE"

ANY_ERASED = f"""
SELECT EXISTS (SELECT 1 FROM {SUPPRESSION}
        WHERE email_hash IS NOT NULL AND account_id = %(account)s)
    OR EXISTS (SELECT 1 FROM {SUPPRESSION} WHERE email_hash IS NOT NULL AND account_id IS NULL)"""

WALK_PEOPLE = "DECLARE sendonce_walk NO SCROLL CURSOR FOR SELECT line, email FROM sendonce_people"
NEXT_PEOPLE = "FETCH FORWARD {} FROM sendonce_walk"
END_WALK = "CLOSE sendonce_walk"

FIND_ERASED = f"""
SELECT email_hash FROM {SUPPRESSION}
WHERE account_id = %(account)s AND email_hash = ANY(%(hashes)s)
UNION SELECT email_hash FROM {SUPPRESSION}
WHERE account_id IS NULL AND email_hash = ANY(%(hashes)s)"""

# Addresses that somebody gave up for another one and that nobody has taken since: their person is
# on the list already, or has left it.
FIND_MOVED = f"""
SELECT p.line FROM sendonce_people p
WHERE EXISTS (SELECT 1 FROM {SIGNUP} w
        WHERE w.account_id = (SELECT %(account)s::bigint) AND w.former_lower = p.email_lower)
    AND NOT EXISTS (SELECT 1 FROM {SUBSCRIBER} s
        WHERE s.account_id = (SELECT %(account)s::bigint) AND s.email_lower = p.email_lower)"""

ANY_MOVED = f"""
SELECT EXISTS (SELECT 1 FROM {SIGNUP}
    WHERE account_id = %(account)s AND former_lower IS NOT NULL)"""

DROP_PEOPLE = "DELETE FROM sendonce_people WHERE line = ANY(%(lines)s)"

DECLARE = f"""
INSERT INTO {DEFINITION} (account_id, key, label, kind, choices, created)
SELECT %(account)s, key, label, 'text', '{{}}', now()
FROM unnest(%(keys)s::varchar[], %(labels)s::varchar[]) AS new (key, label)
ORDER BY key ON CONFLICT (account_id, key) DO NOTHING"""

_BECOMES = """CASE
        WHEN excluded.status = 'unsubscribed' THEN 'unsubscribed'
        WHEN %(update)s AND s.status = 'pending' THEN excluded.status
        ELSE s.status END"""
_CONFIRMS = "(%(update)s AND s.status = 'pending' AND excluded.status = 'confirmed')"


def _given(column: str) -> str:
    return f"""CASE WHEN %(update)s AND excluded.{column} <> ''
            THEN excluded.{column} ELSE s.{column} END"""


_ATTRIBUTES = "CASE WHEN %(update)s THEN s.attributes || excluded.attributes ELSE s.attributes END"

# The conflict clause reads the row as it is under its lock, not as the snapshot has it: who
# unsubscribed while the file was read is unsubscribed. Where the consent came from changes only
# with the consent.
UPSERT = f"""
WITH upserted AS (
    INSERT INTO {SUBSCRIBER} AS s (account_id, email, status, attributes, locale, timezone,
        consent_source, created, confirmed_at, unsubscribed_at)
    SELECT %(account)s, p.email, becomes.status, p.attributes, p.locale, p.timezone,
        COALESCE(NULLIF(p.consent_source, ''), %(consent_source)s), now(),
        CASE becomes.status WHEN 'confirmed' THEN now() END,
        CASE becomes.status WHEN 'unsubscribed' THEN now() END
    FROM sendonce_people p
    CROSS JOIN LATERAL (SELECT CASE
        WHEN p.caution = 2 THEN 'unsubscribed'
        WHEN p.caution = 0 AND %(confirmed)s THEN 'confirmed'
        ELSE 'pending' END AS status) becomes
    ORDER BY p.email_lower COLLATE "C"
    ON CONFLICT (account_id, email_lower) DO UPDATE SET
        status = {_BECOMES},
        attributes = {_ATTRIBUTES},
        locale = {_given("locale")},
        timezone = {_given("timezone")},
        consent_source = CASE WHEN {_CONFIRMS} THEN excluded.consent_source
            ELSE s.consent_source END,
        confirmed_at = CASE WHEN {_CONFIRMS} THEN excluded.confirmed_at ELSE s.confirmed_at END,
        unsubscribed_at = COALESCE(excluded.unsubscribed_at, s.unsubscribed_at)
    WHERE s.status <> 'unsubscribed' AND (
        s.status <> {_BECOMES}
        OR s.attributes <> {_ATTRIBUTES}
        OR s.locale <> {_given("locale")}
        OR s.timezone <> {_given("timezone")})
    RETURNING s.id, s.email_lower, s.xmax = 0 AS is_new, s.status
)
INSERT INTO sendonce_known
SELECT id, email_lower, CASE WHEN is_new THEN 'n' ELSE 'c' END, status FROM upserted"""

# Those whom the upsert left as they were; their rows are locked by it. One look at the index for
# each: the planner, which has no idea of the temporary tables, must not read all subscribers.
# The account in a subquery: as a constant that the statistics do not know yet (a young account), it
# is taken for one person, and every person of it is read for each of the file.
SAME = f"""
INSERT INTO sendonce_known
SELECT s.id, p.email_lower, 's', s.status
FROM sendonce_people p
CROSS JOIN LATERAL (
    SELECT x.id, x.status FROM {SUBSCRIBER} x
    WHERE x.account_id = (SELECT %(account)s::bigint)
        AND x.email_lower = p.email_lower OFFSET 0) s
WHERE NOT EXISTS (SELECT 1 FROM sendonce_known k WHERE k.email_lower = p.email_lower)"""

# What the file says of addresses that must not get mail, in the words of another export. Who
# unsubscribed there has unsubscribed. A file names no end: what is suppressed already, for this
# reason or a stronger one, keeps its own; else an export that comes back made all of it endless.
SUPPRESS = upsert_sql(
    f"""SELECT %(account)s::bigint, p.email,
        COALESCE(p.suppressed, 'unsubscribed')::varchar, %(evidence)s::text, NULL::timestamptz
    FROM sendonce_people p WHERE p.caution = 2 OR (p.suppressed IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {SUPPRESSION} x WHERE x.email_lower = p.email_lower
            AND (x.account_id = %(account)s OR x.account_id IS NULL)
            AND (x.expires IS NULL OR x.expires > clock_timestamp())
            AND array_position({_REASONS}, x.reason::text)
                >= array_position({_REASONS}, p.suppressed::text)))
    ORDER BY p.email_lower COLLATE "C\""""
)

# A membership that ended stays ended. Returns the new members among those not changed otherwise.
JOIN = f"""
WITH joined AS (
    INSERT INTO {MEMBERSHIP} (segment_id, subscriber_id, joined_at)
    SELECT %(segment)s, id, now() FROM sendonce_known
    WHERE status <> 'unsubscribed'
    ORDER BY id
    ON CONFLICT (segment_id, subscriber_id) DO NOTHING
    RETURNING subscriber_id
)
SELECT count(*) FROM joined j JOIN sendonce_known k ON k.id = j.subscriber_id
WHERE k.outcome = 's'"""

COUNT = f"""
SELECT
    count(*) FILTER (WHERE k.outcome = 'n'),
    count(*) FILTER (WHERE k.outcome = 'c'),
    count(*) FILTER (WHERE k.outcome = 's' AND k.status = 'unsubscribed'),
    count(*) FILTER (WHERE k.outcome = 'n' AND k.status = 'pending'),
    count(*) FILTER (WHERE EXISTS (
        SELECT 1 FROM {SUPPRESSION} x
        WHERE x.email_lower = k.email_lower AND x.account_id = %(account)s
            AND (x.expires IS NULL OR x.expires > clock_timestamp()))
      OR EXISTS (
        SELECT 1 FROM {SUPPRESSION} x
        WHERE x.email_lower = k.email_lower AND x.account_id IS NULL
            AND (x.expires IS NULL OR x.expires > clock_timestamp())))
FROM sendonce_known k"""

LEFT = "SELECT id FROM sendonce_known WHERE outcome = 'c' AND status = 'unsubscribed'"
