"""People are erased while real senders write to them; the sink and the whole database are asked."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import datetime

from sending.ledger import balance
from sending.models import ProviderEvent, Send
from sending.tracking import inbox
from subscribers.database_clock import database_time
from subscribers.models import Subscriber
from subscribers.rights.acts import erase_person
from tests.crash.conftest import Senders, Sink, addresses, make_campaign
from tests.db.forgotten import places_of
from tests.db.tracked import event_of

PEOPLE = 240
#: Where only those live who are erased before the end.
GONE = "erased.example.org"


def test_who_is_erased_gets_nothing_more_and_leaves_nothing_behind(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.01")
    # Some are refused, some for now, some get no answer.
    gone = [
        f"{kind}{n}@{GONE}"
        for n in range(PEOPLE // 8 + 1)
        for kind in ("p-", "refuse-", "greylist-", "drop-")
    ][: PEOPLE // 2]
    stay = addresses(PEOPLE // 2, prefix="stay")
    mixed = [address for pair in zip(stay, gone, strict=True) for address in pair]
    # The brakes are not what is tested here.
    campaign = make_campaign(mixed, max_bounce_rate=100)
    options = ("--lanes", "3", "--lot", "4")
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}", "SENDONCE_BUILD_CHUNK": "40"}
    jobs = {
        person.email: f"campaign:{campaign.pk}:{person.pk}" for person in Subscriber.objects.all()
    }
    process = senders.start(*options, **mail)
    committed: dict[str, datetime] = {}
    # From both ends, so that they meet rows of every state.
    order = [address for pair in zip(gone, reversed(gone), strict=True) for address in pair]
    for number, address in enumerate(dict.fromkeys(order)):
        if number == 20:
            relay.wait_for(15)
        if number == 60:
            process.kill()  # with rows on the wire
            process.wait()
            process = senders.start(*options, **mail)
        _told_by_the_provider(jobs[address])
        erase_person(campaign.account, address, reason="asked for")
        committed[address] = database_time()
    senders.drain(*options, "--patience", "60", **mail)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, senders.log.read_text()
    inbox.apply_waiting()

    found = balance(campaign.pk)
    assert found.holds, found
    assert PEOPLE - 20 <= found.audience <= PEOPLE, "some were erased before there was a row"
    rows = {send.job_id: send for send in Send.objects.filter(campaign=campaign)}
    late = [
        address
        for address, at in committed.items()
        if (handed := getattr(rows.get(jobs[address]), "handed_at", None)) is not None
        and handed > at
    ]
    assert late == [], "handed over after the erasure was committed"
    got = [entry["recipient"] for entry in relay.accepted()]
    assert len(got) == len(set(got)), "somebody got it twice"
    assert places_of(GONE) == [], "something of an erased person is kept"
    assert Send.objects.filter(campaign=campaign, reason="erased").exists()
    states = {rows[jobs[address]].status for address in stay}
    assert states <= {"sent", "in_doubt"}, states
    assert not Send.objects.filter(email__isnull=True, status__in=("queued", "retry")).exists()


def _told_by_the_provider(job_id: str) -> None:
    """Something about the person comes in by webhook, whatever became of the message."""
    send = Send.objects.filter(job_id=job_id).first()
    if send is not None and send.email is not None:
        said: ProviderEvent = event_of(send, "deferred", text=f"451 later, {send.email}")
        inbox.store([said])
