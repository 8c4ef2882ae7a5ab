"""What is in doubt, for the people who decide about it: by the partial index of doubt alone."""

from __future__ import annotations

from .tables import ACCOUNT, CAMPAIGN, IN_DOUBT, SEND

# The campaigns in the index, latest first, each found by one probe: a list of them all would read
# as many entries as there are rows in doubt.
CAMPAIGNS_IN_DOUBT = f"""
WITH RECURSIVE found (id) AS (
    (SELECT s.campaign_id FROM {SEND} s
     WHERE {IN_DOUBT} AND s.campaign_id < COALESCE(%(before)s::bigint,
        9223372036854775807)
     ORDER BY s.campaign_id DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT s.campaign_id FROM {SEND} s
            WHERE {IN_DOUBT} AND s.campaign_id < f.id
            ORDER BY s.campaign_id DESC LIMIT 1)
    FROM found f WHERE f.id IS NOT NULL
)
SELECT c.id FROM found f JOIN {CAMPAIGN} c ON c.id = f.id
WHERE %(accounts)s::bigint[] IS NULL OR c.account_id = ANY(%(accounts)s::bigint[])
ORDER BY c.id DESC LIMIT %(most)s"""

_LOOK = f"""
    SELECT s.campaign_id, s.reason, s.via, COALESCE(NULLIF(s.transport, ''), a.transport) AS alias,
        a.in_doubt_policy AS policy, s.answer_code AS code,
        COALESCE(s.replay_until > clock_timestamp(), false) AS in_window,
        s.handed_at, s.settle_at, s.replay_until
    FROM {SEND} s JOIN {ACCOUNT} a ON a.id = s.account_id
    WHERE {IN_DOUBT} AND {{which}}
    ORDER BY s.id LIMIT %(most)s"""

# Rows of which the same is to be said are one line. What is held stands apart from what is settled
# by itself.
_GROUPS = """
SELECT r.campaign_id, r.reason, r.via, r.alias, r.policy, max(r.code), r.in_window, count(*),
    min(r.handed_at), max(r.handed_at), min(r.settle_at), max(r.replay_until)
FROM {rows}
GROUP BY r.campaign_id, r.reason, r.via, r.alias, r.policy, r.code >= 500, r.in_window,
    r.settle_at IS NULL
ORDER BY count(*) DESC, r.reason"""

GROUPS_OF_CAMPAIGNS = _GROUPS.format(
    rows=f"""unnest(%(ids)s::bigint[]) AS x (campaign)
CROSS JOIN LATERAL ({_LOOK.format(which="s.campaign_id = x.campaign")}) r"""
)

GROUPS_OF_SINGLES = _GROUPS.format(
    rows="("
    + _LOOK.format(
        which="""s.campaign_id IS NULL
      AND (%(accounts)s::bigint[] IS NULL OR s.account_id = ANY(%(accounts)s::bigint[]))"""
    )
    + ") r"
)
