"""What is wrong with one row stops that row only."""

from __future__ import annotations

from collections.abc import Callable

from sending.models import DeliveryEvent, Send
from subscribers.models import Subscriber
from tests.crash.conftest import Senders, Sink, addresses, make_campaign
from tests.crash.oracle import check


def test_a_message_that_cannot_be_made_or_is_refused_leaves_the_others_alone(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    odd = [
        "refuse-1@example.org",  # 550 5.1.1 at RCPT
        "policy-1@example.org",  # 550 5.7.1 after the dot
        "content-1@example.org",  # 554 5.6.0 after the dot
        "full-1@example.org",  # 452 4.2.2
        "defer-1@example.org",  # 451 after the dot
        "dropbody-1@example.org",  # dropped before the final dot
        "drop-1@example.org",  # accepted, dropped without a reply
        "garbage-1@example.org",  # accepted, answered with garbage
        "broken address@example.org",
        "huge@example.org",
        "newline@example.org",
        "quoted@example.org",
    ]
    good = addresses(60)
    campaign = make_campaign([*good[:30], *odd, *good[30:]])
    people = {s.email: s for s in Subscriber.objects.all()}
    _give(people["huge@example.org"], name="x" * 3_000_000)
    _give(people["newline@example.org"], name="Eve\r\nBcc: victim@example.org\r\n\r\nbody")
    _give(people["quoted@example.org"], name='"Ünï" <b>, 😀 مرحبا')
    senders.drain("--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    check(campaign, relay.accepted(), doubt_at_most=2, people=len(good) + len(odd))

    rows = {s.email: s for s in Send.objects.filter(campaign=campaign)}
    assert {rows[a].status for a in good} == {"sent"}
    expected = {
        "refuse-1@example.org": ("bounced", "rcpt"),
        "policy-1@example.org": ("failed", "dot"),
        "content-1@example.org": ("failed", "dot"),
        "full-1@example.org": ("retry", "rcpt"),
        "defer-1@example.org": ("retry", "dot"),
        "dropbody-1@example.org": ("retry", "body"),
        "drop-1@example.org": ("in_doubt", "dot"),
        "garbage-1@example.org": ("in_doubt", "dot"),
        "broken address@example.org": ("failed", "local"),
        "huge@example.org": ("failed", "local"),
        "newline@example.org": ("sent", "dot"),
        "quoted@example.org": ("sent", "dot"),
    }
    assert {a: (rows[a].status, rows[a].answer_stage) for a in odd} == expected
    suppressed = set(campaign.account.suppressions.values_list("email", flat=True))
    assert suppressed == {"refuse-1@example.org"}, "policy and content suppress nobody"
    told = set(DeliveryEvent.objects.values_list("send__email", flat=True))
    assert told == {a for a, (status, _) in expected.items() if status != "sent"}
    assert "victim@example.org" not in {e["recipient"] for e in relay.accepted()}


def _give(person: Subscriber, **attributes: str) -> None:
    Subscriber.objects.filter(pk=person.pk).update(attributes=attributes)
