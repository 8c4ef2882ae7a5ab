"""Forgetting a person: what the ledger keeps is a keyed hash where the address was."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, CONTENT, DOUBTED, EVENT, PROVIDER_EVENT, SEND, SUBSCRIBER

# Which of the addresses that a person had before are somebody else's by now: what was sent there
# since is not the person's.
TAKEN = f"""
SELECT p.email_lower FROM {SUBSCRIBER} p
WHERE p.account_id = %(account)s AND p.email_lower = ANY(%(forms)s)
  AND p.id IS DISTINCT FROM %(subscriber)s::bigint"""

# An arm for each, so that each finds its index. The rows are locked as everybody locks them; no
# gate is needed, since nothing opens and nothing is handed over by it (as with the claim).
PERSONS_ROWS = f"""
SELECT s.id, s.email, s.job_id, s.content_id FROM {SEND} s
WHERE s.id IN (
    SELECT o.id FROM {SEND} o
    WHERE o.account_id = %(account)s AND o.email_lower = ANY(%(own)s)
    UNION ALL
    SELECT o.id FROM {SEND} o
    WHERE o.account_id = %(account)s AND o.email_lower = ANY(%(former)s) AND o.subscriber_id IS NULL
    UNION ALL
    SELECT o.id FROM {SEND} o
    WHERE o.subscriber_id = %(subscriber)s::bigint AND o.account_id = %(account)s)
ORDER BY s.id FOR NO KEY UPDATE OF s"""

# Whoever builds or queues a row of the person from now on waits for us at the commit, when the
# foreign key is checked, and fails then: the person is gone.
HOLD_PERSON = f"SELECT 1 FROM {SUBSCRIBER} WHERE id = %(subscriber)s FOR UPDATE"

# What is open is closed: as at a cancel, a claim of it finds its token gone. What is on the wire
# settles by its token as ever. Nothing of it is replayed or sent again: the message can't be made
# any more. Two rows of a campaign may be of one address, when the person was erased and came back:
# the later one gets a hash of its own, which nobody asks for.
FORGET_ROWS = f"""
WITH person AS (
    SELECT s.id, s.status IN ('queued', 'retry', 'claimed') AS is_open, a.in_doubt_policy,
        t.job_id, CASE WHEN EXISTS (
            SELECT 1 FROM {SEND} o WHERE o.campaign_id = s.campaign_id
              AND o.email_hash = t.digest AND o.id <> s.id)
            THEN t.own_digest ELSE t.digest END AS digest
    FROM unnest(%(ids)s::bigint[], %(digests)s::text[], %(own_digests)s::text[],
        %(job_ids)s::text[]) AS t(id, digest, own_digest, job_id)
    JOIN {SEND} s ON s.id = t.id
    JOIN {ACCOUNT} a ON a.id = s.account_id
)
UPDATE {SEND} s SET
    email = NULL,
    email_hash = CASE WHEN s.email IS NULL THEN s.email_hash ELSE person.digest END,
    job_id = person.job_id,
    subscriber_id = NULLIF(s.subscriber_id, %(subscriber)s::bigint),
    context = CASE WHEN s.context IS NOT NULL THEN '{{}}'::jsonb END,
    frozen = NULL, answer_text = '', replay_until = NULL,
    settle_at = CASE WHEN person.in_doubt_policy = 'assume_sent' THEN s.settle_at END,
    status = CASE
        WHEN person.is_open AND {DOUBTED} THEN 'in_doubt'
        WHEN person.is_open THEN 'suppressed'
        ELSE s.status END,
    claim_token = CASE
        WHEN person.is_open AND {DOUBTED} THEN s.doubt_tokens[cardinality(s.doubt_tokens)]
        WHEN NOT person.is_open THEN s.claim_token END,
    doubt_tokens = CASE WHEN person.is_open AND {DOUBTED} THEN trim_array(s.doubt_tokens, 1)
        ELSE s.doubt_tokens END,
    lease_until = CASE WHEN NOT person.is_open THEN s.lease_until END,
    worker_id = CASE WHEN NOT person.is_open THEN s.worker_id END,
    reason = CASE WHEN person.is_open THEN 'erased' ELSE s.reason END
FROM person WHERE s.id = person.id
RETURNING s.id, s.account_id, s.status, person.is_open"""

# An id from before they were hashed, as it would be read today (see ``tracking.reading``).
_HASHED_ID = """split_part(e.event_id, ':', 1) || ':' || encode(
        sha256(convert_to(e.event_id, 'UTF8') || '\\x00'::bytea), 'hex')"""
_NAMES = """EXISTS (SELECT 1 FROM unnest(%(forms)s::text[]) AS f(form)
        WHERE position(f.form IN lower({} COLLATE "C")) > 0)"""
_NEW_ID = f"CASE WHEN {_NAMES.format('e.event_id')} THEN {_HASHED_ID} ELSE e.event_id END"

# Before the ledger's own events change, by whose ids they are found. What was not applied yet is
# needed as it is: it is emptied with its application. Those that belong to another account's row
# are that account's. (A subquery of one value, as NOT EXISTS becomes a join that reads all events.)
FORGET_PROVIDER_EVENTS = f"""
UPDATE {PROVIDER_EVENT} e SET recipient = '', text = '', event_id = {_NEW_ID},
    job_id = CASE WHEN {_NAMES.format("e.job_id")} THEN '' ELSE e.job_id END
WHERE e.applied_at IS NOT NULL AND e.id IN (
    SELECT o.id FROM {PROVIDER_EVENT} o
    WHERE o.recipient <> '' AND lower(o.recipient COLLATE "C") = ANY(%(forms)s)
      AND COALESCE((SELECT d.account_id FROM {EVENT} d WHERE d.event_id = o.event_id),
        (SELECT c.account_id FROM {CAMPAIGN} c WHERE o.installation = %(tag)s AND c.id =
            substring(o.job_id FROM '^campaign:([0-9]{{1,18}}):[0-9]+$')::bigint),
        %(account)s) = %(account)s
    UNION ALL
    SELECT o.id FROM {EVENT} d JOIN {PROVIDER_EVENT} o ON o.event_id = d.event_id
    WHERE d.send_id = ANY(%(ids)s::bigint[]))"""

# What others have said names people in ways that no search finds; our own words do not, save where
# a message could not be made.
FORGET_EVENTS = f"""
UPDATE {EVENT} e SET event_id = {_NEW_ID}, text = CASE
    WHEN e.stage IN ('', 'local') AND e.reason <> 'refused_locally' THEN e.text ELSE '' END
WHERE e.send_id = ANY(%(ids)s::bigint[]) AND (
    {_NAMES.format("e.event_id")}
    OR (e.text <> '' AND NOT (e.stage IN ('', 'local') AND e.reason <> 'refused_locally')))"""

FORGET_CONTENTS = f"""
UPDATE {CONTENT} e SET subject = '', preheader = '', html = '', text = ''
WHERE e.id = ANY(%(contents)s::bigint[])
  AND (e.private OR {_NAMES.format("concat_ws(' ', e.subject, e.preheader, e.html, e.text)")})
  AND NOT EXISTS (SELECT 1 FROM {SEND} o WHERE o.content_id = e.id AND o.email IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM {CAMPAIGN} k WHERE k.content_id = e.id)"""
