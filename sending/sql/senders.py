"""How fast mail leaves, by the rows that were handed over last."""

from __future__ import annotations

from .tables import SEND

# As ``watching.HANDED_LAST``, of some campaigns at once: the ids just before those on their way.
HANDED_LAST = f"""
SELECT x.campaign, r.worker_id, EXTRACT(epoch FROM clock_timestamp() - r.handed_at)::float8
FROM unnest(%(campaigns)s::bigint[]) AS x (campaign)
CROSS JOIN LATERAL (
    SELECT s.worker_id, s.handed_at FROM {SEND} s
    WHERE s.campaign_id = x.campaign AND s.id <= COALESCE((
        SELECT COALESCE(max(f.id) FILTER (WHERE f.status = 'sending'), max(f.id))
        FROM {SEND} f
        WHERE f.queue = 3 AND f.campaign_id = x.campaign
    ), 9223372036854775807)
    ORDER BY s.id DESC LIMIT %(limit)s) r"""
