"""Transports that take no mail now."""

from __future__ import annotations

from .tables import PAUSE

#: The stage of a pause for errors in a row, beside those of ``answers.Stage``.
ERRORS = "errors"

# Two arbiters: an account's pause and the transport's own (account null) are unique apart.
# A repeat is another lane in the same outage and says nothing new but its words: the wait grows
# with the probes (TAKE_PROBES), or forty lanes that fail at once would make it the longest.
# A pause for errors in a row stays one until a message has gone through, whatever else happens to
# a probe of it: with any other stage a session that opens would lift it.
# Whose insert made the row sees that no transaction has locked it (xmax).
PAUSE_ACCOUNT = f"""
INSERT INTO {PAUSE} AS t (alias, account_id, stage, code, reason, since, failures, probe_at)
VALUES (%(alias)s, %(account)s, %(stage)s, %(code)s, %(reason)s, clock_timestamp(), 1,
    clock_timestamp() + %(first)s * interval '1 second')
ON CONFLICT (alias, account_id) DO UPDATE SET
    stage = CASE WHEN t.stage = '{ERRORS}' THEN t.stage ELSE excluded.stage END,
    code = excluded.code, reason = excluded.reason
RETURNING t.failures, t.xmax = 0"""

PAUSE_ALIAS = PAUSE_ACCOUNT.replace(
    "ON CONFLICT (alias, account_id)", "ON CONFLICT (alias) WHERE account_id IS NULL"
)

LIFT = f"""
DELETE FROM {PAUSE}
WHERE alias = %(alias)s AND account_id IS NOT DISTINCT FROM %(account)s"""

# By a person who has mended it, perhaps: one try now, and not all lanes at once. With a password
# that is still wrong these would have the login locked; after errors in a row, each a message in
# doubt.
TRY_NOW = f"""
UPDATE {PAUSE} SET probe_at = LEAST(probe_at, clock_timestamp())
WHERE alias = %(alias)s AND account_id IS NOT DISTINCT FROM %(account)s"""

# Whoever moves probe_at makes the try; the others go on waiting. The try counts as a failure
# until it works, because then the row is gone.
TAKE_PROBES = f"""
UPDATE {PAUSE} SET failures = failures + 1, probe_at = clock_timestamp()
    + LEAST(CASE WHEN stage = '{ERRORS}' THEN %(longest_of_errors)s ELSE %(longest)s END,
        %(first)s * 2 ^ LEAST(failures, 10)) * interval '1 second'
WHERE id IN (SELECT id FROM {PAUSE} WHERE probe_at <= clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED)
RETURNING alias, account_id"""

# A probe that nobody had a message for was none: the next message makes it, whoever has one.
RETURN_PROBES = f"""
UPDATE {PAUSE} SET failures = failures - 1, probe_at = clock_timestamp()
WHERE account_id IS NULL AND alias = ANY(%(aliases)s::text[]) AND failures > 1"""

PAUSED = f"SELECT alias, account_id, stage, reason FROM {PAUSE} ORDER BY id"

# Staff are told of what lasts; of a refused login at once.
LASTING = f"""
SELECT alias, account_id, stage, code, reason, since FROM {PAUSE}
WHERE since <= clock_timestamp() - %(lasts)s * interval '1 second'
   OR code = ANY(%(login)s::int[]) OR (stage = 'auth' AND code >= 500)
ORDER BY id"""
