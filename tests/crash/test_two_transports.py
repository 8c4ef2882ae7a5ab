"""A relay that hangs, or an address that it chokes on, does not stop everybody else's mail."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from sending.ledger import balance
from sending.models import Send, TransportPause
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.crash.relay import OK, Relay


def test_a_silent_relay_leaves_lanes_to_the_other(
    sink: Callable[..., Sink], senders: Senders, settings: Any
) -> None:
    relay = sink()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        transports = _transports(settings, silent=silent.getsockname()[1], works=relay.port)
        stuck = make_campaign(addresses(200), slug="stuck", transport="silent")
        process = senders.start("--lanes", "4", SENDONCE_TRANSPORTS=transports)
        wait_until(
            lambda: balance(stuck.pk).counts["claimed"] > 0, "lanes at the silent relay's door"
        )
        fine = make_campaign(addresses(200, prefix="q"), slug="fine", transport="works")
        wait_until(lambda: balance(fine.pk).counts["sent"] == 200, "the other account's mail")
        assert balance(stuck.pk).counts["queued"] + balance(stuck.pk).counts["claimed"] == 200
        process.kill()
        process.wait()
    check(fine, relay.accepted(), doubt_at_most=0, people=200)


def test_two_relays_that_never_answer_leave_lanes_to_the_third(
    sink: Callable[..., Sink], senders: Senders, settings: Any
) -> None:
    works = sink()
    with Relay(at_dot=lambda _: None) as one, Relay(at_dot=lambda _: None) as two:
        transports = _transports(settings, one=one.port, two=two.port, works=works.port)
        stuck = [
            make_campaign(addresses(300, prefix=alias), slug=alias, transport=alias)
            for alias in ("one", "two")
        ]
        process = senders.start("--lanes", "8", SENDONCE_TRANSPORTS=transports)
        for campaign in stuck:
            wait_until(
                campaign.sends.filter(status=Send.Status.SENDING).exists, "lanes that are stuck"
            )
        fine = make_campaign(addresses(300), slug="fine", transport="works")
        wait_until(lambda: balance(fine.pk).counts["sent"] == 300, "the third account's mail", 30)
        process.kill()
        process.wait()
    check(fine, works.accepted(), doubt_at_most=0, people=300)


@pytest.mark.parametrize("poison", ["p-0@example.org", "p-35@example.org"])
def test_an_address_that_the_relay_chokes_on_is_alone_with_it(
    poison: str, senders: Senders
) -> None:
    """The very first one may cost a probe of the relay; it still does not stop the others."""

    def at_rcpt(recipient: str) -> str:
        return "503 5.5.1 bad sequence of commands" if recipient == poison else OK

    with Relay(at_rcpt=at_rcpt) as relay:
        campaign = make_campaign(addresses(60))
        process = senders.start(
            "--drain", "--lanes", "1", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}"
        )
        assert process.wait(60) == 0, senders.log.read_text()
        counts = balance(campaign.pk).counts
        assert (counts["sent"], counts["retry"]) == (59, 1)
        row = campaign.sends.get(email=poison)
        assert (row.status, row.attempts) == (Send.Status.RETRY, 1)
        assert relay.named.count(poison) <= 2
        assert len(set(relay.accepted)) == len(relay.accepted) == 59
        assert not TransportPause.objects.exists()


def test_a_refused_sender_address_pauses_its_own_account_only(senders: Senders) -> None:
    def at_mail(sender: str) -> str:
        return "550 5.7.1 not your address" if sender == "wrong@example.org" else OK

    with Relay(at_mail=at_mail) as relay:
        wrong = make_campaign(addresses(20, "wrong"), slug="wrong", from_email="wrong@example.org")
        fine = make_campaign(addresses(40), slug="fine")
        senders.start("--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
        wait_until(lambda: balance(fine.pk).counts["sent"] == 40, "the other account's mail")
        wait_until(TransportPause.objects.exists, "the pause")
        pause = TransportPause.objects.get()
        assert (pause.account_id, pause.stage, pause.code) == (wrong.account_id, "mail", 550)
        senders.stop_all()
    assert set(wrong.sends.values_list("attempts", flat=True)) <= {0, 1}
    assert balance(wrong.pk).counts["failed"] == balance(wrong.pk).counts["bounced"] == 0
    assert len(set(relay.accepted)) == len(relay.accepted) == 40


def _transports(settings: Any, **ports: int) -> str:
    """An SMTP relay on this machine for each alias: as the senders' variable, and in this process,
    whose preflight wants to know where the mail goes."""
    backend = "sending.smtp.EmailBackend"
    entries = {
        alias: {"BACKEND": backend, "OPTIONS": {"host": "127.0.0.1", "port": port}}
        for alias, port in ports.items()
    }
    settings.SENDONCE = {**settings.SENDONCE, "TRANSPORTS": entries}
    return json.dumps(entries)
