"""The parameters of a transaction and the addresses in it."""

from __future__ import annotations

import pytest

from sending.outcomes import Outcome, Stage
from sending.smtp import SMTPRefusedLocally
from sending.smtp_envelope import mailbox, wire_body

from .scripted_smtp import Peer, scripted
from .smtp_relay import DATA, backend, deliver, failure, outcome


def test_parameters_follow_what_the_server_offers() -> None:
    heard: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello(b"SIZE 1000", b"8BITMIME", b"SMTPUTF8")
        for _ in range(3):
            peer.take()
        heard.extend(line for line in peer.heard if line[:4] in (b"MAIL", b"RCPT"))
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        deliver(relay)
        deliver(relay, data="A: b\r\n\r\nñ\r\n".encode())
        deliver(relay, to="ñandú@bücher.example")
        relay.close()
    assert heard == [
        b"MAIL FROM:<s@example.org> SIZE=24",
        b"RCPT TO:<a@example.org>",
        b"MAIL FROM:<s@example.org> BODY=8BITMIME SIZE=12",
        b"RCPT TO:<a@example.org>",
        b"MAIL FROM:<s@example.org> SMTPUTF8 BODY=8BITMIME SIZE=24",
        "RCPT TO:<ñandú@bücher.example>".encode(),
    ]


def test_what_the_relay_can_not_take_is_refused_here_and_the_session_goes_on() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"SIZE 100")
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        said = failure(relay, to="ñ@example.org")
        assert (said.stage, said.code, said.enhanced) == (Stage.LOCAL, None, "5.6.7")
        said = failure(relay, data=b"A: b\r\n\r\n" + b"x" * 200)
        assert (said.stage, said.code, said.enhanced) == (Stage.LOCAL, None, "5.3.4")
        assert outcome(said) is Outcome.FAILED
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("address", "bare"),
    [
        ("a@example.org", "a@example.org"),
        ("A.b+c@Example.ORG", "A.b+c@Example.ORG"),
        ("Ann Example <ann@example.org>", "ann@example.org"),
        ('"Ann, B." <ann@example.org>', "ann@example.org"),
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("Ünal <ü@bücher.example>", "ü@bücher.example"),
        ('"a b"@example.org', '"a b"@example.org'),
        ("a@localhost", "a@localhost"),
        ("a@[127.0.0.1]", "a@[127.0.0.1]"),
        ("<>", ""),
    ],
)
def test_envelope_address(address: str, bare: str) -> None:
    assert mailbox(address) == bare


BAD_ADDRESSES = [
    "",
    " ",
    "a",
    "@",
    "a@",
    "@example.org",
    "a@example.org\r\nRCPT TO:<b@example.org>",
    "a@example.org\n",
    "a@exam\x00ple.org",
    "a b@example.org",
    "a@example.org, b@example.org",
    "a@example.org> SIZE=1 <x@example.org",
    "<a@example.org",
    "a@exa mple.org",
    "ñ x@example.org",
    "ñ>@example.org",
    "a@" + "x" * 300 + ".org",
    "a" * 250 + "@example.org",
    "a..b@example.org",
    ".a@example.org",
    "a@-example.org\u2028",
    "\udcff@example.org",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_a_bad_address_never_reaches_the_network(address: str) -> None:
    relay = backend(1)  # nobody listens there
    said = failure(relay, to=address)
    assert (said.stage, said.code) == (Stage.LOCAL, None)
    assert outcome(said) is Outcome.FAILED
    with pytest.raises(SMTPRefusedLocally):
        relay.deliver(address, "a@example.org", DATA)


def test_nothing_to_send_is_refused_here() -> None:
    assert failure(backend(1), data=b"").stage is Stage.LOCAL
    with pytest.raises(ValueError, match="no recipient"):
        backend(1).deliver("s@example.org", "<>", DATA)
    with pytest.raises(ValueError, match="empty"):
        wire_body(b"")
