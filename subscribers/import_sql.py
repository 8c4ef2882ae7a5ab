"""The statements of an import, in the order in which they run, in one transaction.

Staged rows become people (one per address), and people become subscribers and members, each
in one statement. Addresses are taken in ascending order, so that two imports, or an import and
anything else that goes by address, never wait in a circle.
"""

from __future__ import annotations

from .models import Membership, Segment, Subscriber, Suppression
from .suppression import RANK, upsert_sql

SEGMENT = Segment._meta.db_table
SUBSCRIBER = Subscriber._meta.db_table
MEMBERSHIP = Membership._meta.db_table
SUPPRESSION = Suppression._meta.db_table

_REASONS = f"ARRAY[{', '.join(repr(reason.value) for reason in RANK)}]"

# Each statement sees what was committed before it, whatever the host's default is: the check
# for the erased must see those of the moment before.
FRESH_SNAPSHOTS = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

# Temporary: no write-ahead log, nobody else sees it, gone with the transaction.
STAGING = """
DROP TABLE IF EXISTS pg_temp.sendonce_staged, pg_temp.sendonce_people, pg_temp.sendonce_changed;
CREATE TEMPORARY TABLE sendonce_staged (
    line bigint NOT NULL,
    email varchar(320) NOT NULL,
    email_lower varchar(320) GENERATED ALWAYS AS (lower(email COLLATE "C")) STORED,
    status varchar(20) NOT NULL,
    attributes jsonb NOT NULL,
    locale varchar(20) NOT NULL,
    timezone varchar(64) NOT NULL,
    consent_source varchar(200) NOT NULL,
    suppressed varchar(20) NOT NULL
) ON COMMIT DROP;
CREATE TEMPORARY TABLE sendonce_changed (
    id bigint NOT NULL, is_new boolean NOT NULL, status varchar(20) NOT NULL
) ON COMMIT DROP"""

COPY = """
COPY sendonce_staged (line, email, status, attributes, locale, timezone, consent_source, suppressed)
FROM STDIN"""

# One row per person: the last, save that the most cautious word of any of them holds.
PEOPLE = f"""
CREATE TEMPORARY TABLE sendonce_people ON COMMIT DROP AS
SELECT DISTINCT ON (email_lower COLLATE "C")
    line, email, email_lower, attributes, locale, timezone, consent_source,
    max(CASE status WHEN 'unsubscribed' THEN 2 WHEN 'pending' THEN 1 ELSE 0 END) OVER same
        AS caution,
    ({_REASONS})[max(array_position({_REASONS}, suppressed::text)) OVER same] AS suppressed
FROM sendonce_staged
WINDOW same AS (PARTITION BY email_lower COLLATE "C")
ORDER BY email_lower COLLATE "C", line DESC"""

ANALYZE_PEOPLE = "ANALYZE sendonce_people"

# The segment stays until the transaction ends; the first snapshot behind the lock on erasures.
HOLD_SEGMENT = f"SELECT 1 FROM {SEGMENT} WHERE id = %(segment)s FOR KEY SHARE"

ANY_ERASED = f"""
SELECT EXISTS (SELECT 1 FROM {SUPPRESSION}
    WHERE email_hash IS NOT NULL AND (account_id = %(account)s OR account_id IS NULL))"""

WALK_PEOPLE = "DECLARE sendonce_walk NO SCROLL CURSOR FOR SELECT line, email FROM sendonce_people"
NEXT_PEOPLE = "FETCH FORWARD {} FROM sendonce_walk"
END_WALK = "CLOSE sendonce_walk"

FIND_ERASED = f"""
SELECT email_hash FROM {SUPPRESSION}
WHERE account_id = %(account)s AND email_hash = ANY(%(hashes)s)
UNION SELECT email_hash FROM {SUPPRESSION}
WHERE account_id IS NULL AND email_hash = ANY(%(hashes)s)"""

DROP_PEOPLE = "DELETE FROM sendonce_people WHERE line = ANY(%(lines)s)"

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
    RETURNING s.id, s.xmax = 0 AS is_new, s.status
)
INSERT INTO sendonce_changed SELECT id, is_new, status FROM upserted"""

ANALYZE_CHANGED = "ANALYZE sendonce_changed"

# What the file says of addresses that must not get mail, in the words of another export. Who
# unsubscribed there has unsubscribed.
SUPPRESS = upsert_sql(
    """SELECT %(account)s::bigint, email,
        COALESCE(suppressed, 'unsubscribed')::varchar, %(evidence)s::text, NULL::timestamptz
    FROM sendonce_people WHERE suppressed IS NOT NULL OR caution = 2
    ORDER BY email_lower COLLATE "C\""""
)

_KNOWN = f"""sendonce_people p
    JOIN {SUBSCRIBER} s ON s.account_id = %(account)s AND s.email_lower = p.email_lower"""

# A membership that ended stays ended. Returns the members among those not changed otherwise.
JOIN = f"""
WITH joined AS (
    INSERT INTO {MEMBERSHIP} (segment_id, subscriber_id, joined_at)
    SELECT %(segment)s, s.id, now() FROM {_KNOWN}
    WHERE s.status <> 'unsubscribed'
    ORDER BY s.id
    ON CONFLICT (segment_id, subscriber_id) DO NOTHING
    RETURNING subscriber_id
)
SELECT count(*) FROM joined j
WHERE NOT EXISTS (SELECT 1 FROM sendonce_changed c WHERE c.id = j.subscriber_id)"""

COUNT = f"""
SELECT
    count(*) FILTER (WHERE c.is_new),
    count(*) FILTER (WHERE NOT c.is_new),
    count(*) FILTER (WHERE c.id IS NULL AND s.status = 'unsubscribed'),
    count(*) FILTER (WHERE c.is_new AND s.status = 'pending'),
    count(*) FILTER (WHERE EXISTS (
        SELECT 1 FROM {SUPPRESSION} x
        WHERE x.email_lower = p.email_lower AND x.account_id = %(account)s
            AND (x.expires IS NULL OR x.expires > clock_timestamp()))
      OR EXISTS (
        SELECT 1 FROM {SUPPRESSION} x
        WHERE x.email_lower = p.email_lower AND x.account_id IS NULL
            AND (x.expires IS NULL OR x.expires > clock_timestamp())))
FROM {_KNOWN}
LEFT JOIN sendonce_changed c ON c.id = s.id"""

LEFT = "SELECT id FROM sendonce_changed WHERE NOT is_new AND status = 'unsubscribed'"
