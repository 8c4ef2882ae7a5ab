"""What providers tell by webhook: stored by one statement, applied by another process."""

from __future__ import annotations

from .tables import COUNT, EVENT, IN_LOT, PROVIDER_EVENT, SEND

# In order of the id, so that two requests that bring the same events wait for each other and not
# in a circle. What is told twice within a request is one row, too.
STORE_EVENTS = f"""
INSERT INTO {PROVIDER_EVENT} (event_id, esp, kind, job_id, installation, message_id, recipient,
    at, text, received, result)
SELECT o.event_id, o.esp, o.kind, o.job_id, o.installation, o.message_id, o.recipient, o.at,
    o.text, clock_timestamp(), ''
FROM unnest(%(event_ids)s::text[], %(esps)s::text[], %(kinds)s::text[], %(job_ids)s::text[],
    %(installations)s::text[], %(message_ids)s::text[], %(recipients)s::text[],
    %(ats)s::timestamptz[], %(texts)s::text[])
    AS o(event_id, esp, kind, job_id, installation, message_id, recipient, at, text)
ORDER BY o.event_id
ON CONFLICT (event_id) DO NOTHING"""

COUNT_UP = f"""
INSERT INTO {COUNT} AS c (esp, what, day, count)
SELECT o.esp, o.what, (clock_timestamp() AT TIME ZONE 'UTC')::date, o.number
FROM unnest(%(esps)s::text[], %(whats)s::text[], %(numbers)s::bigint[]) AS o(esp, what, number)
ORDER BY o.esp, o.what
ON CONFLICT (esp, what, day) DO UPDATE SET count = c.count + excluded.count"""

# Events of providers that give no metadata back can only be found by the message's id, which is
# written with the outcome: they wait a while for it.
TAKE_EVENTS = f"""
SELECT e.id, e.event_id, e.esp, e.kind, e.job_id, e.installation, e.message_id, e.recipient,
    e.at, e.text
FROM {PROVIDER_EVENT} e
WHERE e.applied_at IS NULL
  AND (e.job_id <> '' OR e.message_id = '' OR e.esp <> ALL(%(patient)s::text[])
       OR e.received < clock_timestamp() - %(patience)s * interval '1 second'
       OR EXISTS (SELECT 1 FROM {SEND} s WHERE s.provider_message_id = e.message_id
                  AND s.provider_message_id <> ''))
ORDER BY e.id LIMIT %(limit)s FOR UPDATE OF e SKIP LOCKED"""

# Behind the gates and the row locks, so with a snapshot younger than both.
TRACKED_ROWS = f"""
SELECT s.id, s.account_id, s.campaign_id, s.subscriber_id, s.email, s.email_hash, s.status,
    s.handed_at, cardinality(s.doubt_tokens) > 0, s.reason, s.via,
    (SELECT array_agg(DISTINCT e.kind) FROM {EVENT} e
     WHERE e.send_id = s.id AND e.stage = 'webhook')
FROM {SEND} s WHERE s.id = {IN_LOT}"""

# Messages whose recipient is known to have unsubscribed by one of their links.
LEFT_BEFORE = f"""
SELECT DISTINCT e.send_id FROM {EVENT} e
WHERE e.send_id = ANY(%(ids)s::bigint[]) AND e.kind = 'unsubscribed'"""

KNOWN_EVENTS = f"SELECT event_id FROM {EVENT} WHERE event_id = ANY(%(event_ids)s::text[])"

# A bounce or a rejection after the hand-over is the provider's last word: an acceptance that the
# worker writes later, by token, was given before it, and must not make the row sent again.
TRACK_ROWS = f"""
UPDATE {SEND} s SET
    status = o.status,
    sent_at = CASE WHEN o.status = 'sent'
        THEN COALESCE(s.sent_at, GREATEST(s.handed_at, LEAST(o.at, clock_timestamp())))
        ELSE s.sent_at END,
    claim_token = CASE WHEN o.status = 'sent' THEN s.claim_token END,
    doubt_tokens = CASE WHEN o.status = 'sent' THEN s.doubt_tokens ELSE '{{}}' END,
    lease_until = NULL, settle_at = NULL, replay_until = NULL, replays = 0,
    frozen = CASE WHEN o.status = 'failed' THEN s.frozen END,
    provider_message_id = CASE WHEN s.provider_message_id = '' THEN o.message_id
        ELSE s.provider_message_id END,
    answer_stage = 'webhook', answer_code = o.code, answer_enhanced = o.enhanced,
    answer_text = o.text, reason = o.reason
FROM unnest(%(ids)s::bigint[], %(was)s::text[], %(statuses)s::text[], %(ats)s::timestamptz[],
    %(message_ids)s::text[], %(codes)s::smallint[], %(enhanced)s::text[], %(texts)s::text[],
    %(reasons)s::text[])
    AS o(id, was, status, at, message_id, code, enhanced, text, reason)
WHERE s.id = {IN_LOT} AND s.id = o.id AND s.status = o.was"""

# It was taken to be sent by a person or a policy; now it is known.
CONFIRM_SENT = f"""
UPDATE {SEND} SET reason = ''
WHERE id = {IN_LOT} AND status = 'sent' AND reason = 'treated_as_sent'"""

# Of an erased person no address stays behind.
MARK_APPLIED = f"""
UPDATE {PROVIDER_EVENT} e SET applied_at = clock_timestamp(), result = o.result,
    recipient = CASE WHEN o.erased THEN '' ELSE e.recipient END,
    text = CASE WHEN o.erased THEN '' ELSE e.text END,
    job_id = CASE WHEN o.erased AND position('@' IN e.job_id) > 0 THEN '' ELSE e.job_id END
FROM unnest(%(ids)s::bigint[], %(results)s::text[], %(erased)s::boolean[])
    AS o(id, result, erased)
WHERE e.id = {IN_LOT} AND e.id = o.id"""

# The oldest rows are looked at, however many there are: ids ascend with time.
PRUNE_EVENTS = f"""
DELETE FROM {PROVIDER_EVENT} WHERE id = ANY (ARRAY(
    SELECT o.id FROM (
        SELECT e.id, e.applied_at FROM {PROVIDER_EVENT} e ORDER BY e.id LIMIT %(step)s) o
    WHERE o.applied_at < clock_timestamp() - %(days)s * interval '1 day'))"""
