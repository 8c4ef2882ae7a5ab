"""Whether a transport takes an account's mail now, for whoever is about to approve."""

from __future__ import annotations

from django.db.models import Q
from django.db.models.functions import Now

from campaigns.forecasts import TransportState
from subscribers.conf import conf

from .checks import leaves_the_machine
from .models import TransportPause
from .transports import UnknownTransport, transport
from .wording import next_try, remedy, trouble


def transport_state(account_id: int, alias: str) -> TransportState:
    """One query. A transport that only the senders know is unknown here."""
    try:
        transport(alias).backend_class  # noqa: B018 (imports it)
    except UnknownTransport:
        return TransportState(is_known=False)
    pause = (
        TransportPause.objects.filter(Q(account__isnull=True) | Q(account=account_id), alias=alias)
        .select_related("account")
        .annotate(db_now=Now())
        .order_by("account_id")
        .first()
    )
    problem = ""
    if pause is not None:
        whose = pause.account.name if pause.account is not None else None
        wrong = trouble(pause.stage, pause.code, whose=whose, said=pause.reason)
        said = f": {pause.reason.rstrip('.')}" if pause.reason else ""
        then = next_try(pause.probe_at, pause.db_now)
        advice = remedy(pause.stage, pause.code, whose=whose, said=pause.reason, then=then)
        problem = f"It {wrong}{said}. {advice}"
    stays = not leaves_the_machine(conf.TRANSPORTS.get(alias, {}))
    return TransportState(problem=problem, stays_here=stays)
