"""What replies mean: real ones, as the senders' public pages and MTAs' sources give them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sending.outcomes import (
    Outcome,
    Reason,
    Stage,
    answer,
    classify,
    clean_text,
    parse_enhanced,
    retry_delay,
)

# stage, code, text without the code, outcome, reason. The enhanced code is read from the text.
REPLIES = [
    # the address is dead
    ("rcpt", 550, "5.1.1 The email account that you tried to reach does not exist. Please try "
     "double-checking the recipient's email address for typos", "bounced", "address_dead"),
    ("rcpt", 550, "5.1.1 <a@example.org>: Recipient address rejected: User unknown in local "
     "recipient table", "bounced", "address_dead"),
    ("rcpt", 550, "No Such User Here", "bounced", "address_dead"),
    ("rcpt", 550, "Unrouteable address", "bounced", "address_dead"),
    ("rcpt", 550, "Requested action not taken: mailbox unavailable", "bounced", "address_dead"),
    ("rcpt", 550, "", "bounced", "address_dead"),
    ("rcpt", 550, "5.1.2 bad destination system address", "bounced", "address_dead"),
    ("rcpt", 501, "5.1.3 Bad recipient address syntax", "bounced", "address_dead"),
    ("rcpt", 553, "5.1.3 The recipient address is not a valid RFC-5321 address",
     "bounced", "address_dead"),
    ("rcpt", 550, "5.1.6 recipient no longer on server", "bounced", "address_dead"),
    ("rcpt", 556, "5.1.10 Recipient address has null MX", "bounced", "address_dead"),
    ("rcpt", 556, "domain does not accept mail", "bounced", "address_dead"),
    ("rcpt", 550, "5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address "
     "lookup", "bounced", "address_dead"),
    ("rcpt", 550, "5.4.1 Recipient address rejected: Access denied. [AS(201806281)]",
     "bounced", "address_dead"),
    ("rcpt", 550, "5.5.0 Requested action not taken: mailbox unavailable (S2017062302)",
     "bounced", "address_dead"),
    ("rcpt", 552, "1 Requested mail action aborted, mailbox not found", "bounced", "address_dead"),
    ("dot", 554, "30 Sorry, your message to a@example.org cannot be delivered. This mailbox is "
     "disabled (554.30).", "bounced", "address_dead"),
    ("dot", 554, "delivery error: dd This user doesn't have a example.org account (a@example.org) "
     "[0] - mta1.example.org", "bounced", "address_dead"),
    ("rcpt", 550, "5.2.1 The email account that you tried to reach is disabled",
     "bounced", "address_dead"),
    ("rcpt", 550, "5.2.1 The email account that you tried to reach is inactive",
     "bounced", "address_dead"),
    ("rcpt", 552, "5.2.2 The recipient's inbox is out of storage and inactive. Please direct the "
     "recipient to https://support.example.org/mail/?p=OverQuotaPerm", "bounced", "address_dead"),
    ("rcpt", 553, "sorry, mailbox name not allowed", "bounced", "address_dead"),
    ("rcpt", 551, "User not local; please try <b@example.org>", "bounced", "address_dead"),
    ("rcpt", 554, "Transaction failed", "bounced", "address_dead"),
    ("rcpt", 599, "what is this", "bounced", "address_dead"),
    ("dot", 550, "5.1.1 unknown or illegal alias: a@example.org", "bounced", "address_dead"),
    ("data", 550, "Unknown user", "bounced", "address_dead"),
    # ... but not when it is the sender of whom it speaks
    ("rcpt", 550, "5.1.7 Bad sender's mailbox address syntax", "failed", "sender_refused"),
    ("rcpt", 501, "5.1.8 Access denied, bad outbound sender", "failed", "sender_refused"),
    ("rcpt", 550, "5.1.8 <s@example.org>: Sender address rejected: Domain not found",
     "failed", "sender_refused"),
    ("rcpt", 550, "Sender verify failed", "failed", "sender_refused"),
    # full, greylisted, later, slower
    ("rcpt", 452, "4.2.2 The recipient's inbox is out of storage space.", "retry", "mailbox_full"),
    ("rcpt", 552, "5.2.2 user is over quota", "retry", "mailbox_full"),
    ("rcpt", 552, "5.2.2 <a@example.org>: Recipient address rejected: mailbox full",
     "retry", "mailbox_full"),
    ("rcpt", 550, "Mailbox quota exceeded", "retry", "mailbox_full"),
    ("rcpt", 552, "Requested mail action aborted: exceeded storage allocation",
     "retry", "mailbox_full"),
    ("rcpt", 452, "insufficient storage", "retry", "mailbox_full"),
    ("rcpt", 452, "4.3.1 Insufficient system storage", "retry", "transient"),
    ("rcpt", 550, "5.2.1 The user you are trying to contact is receiving mail at a rate that "
     "prevents additional messages from being delivered.", "retry", "throttled"),
    ("rcpt", 450, "4.2.1 The user you are trying to contact is receiving mail too quickly.",
     "retry", "throttled"),
    ("rcpt", 450, "4.2.0 <a@example.org>: Recipient address rejected: Greylisted, see "
     "http://postgrey.example.org/", "retry", "greylisted"),
    ("rcpt", 451, "4.7.1 Greylisting in action, please come back later", "retry", "greylisted"),
    ("rcpt", 450, "4.1.1 <a@example.org>: unverified address", "retry", "transient"),
    ("rcpt", 450, "5.1.1 user unknown", "retry", "transient"),
    ("rcpt", 550, "4.4.1 lookup failed", "retry", "transient"),
    ("rcpt", 451, "Temporary local problem - please try later", "retry", "transient"),
    ("rcpt", 452, "4.5.3 Too many recipients", "retry", "transient"),
    ("rcpt", 552, "too many recipients", "retry", "transient"),
    ("mail", 421, "4.3.2 Service shutting down", "retry", "transient"),
    ("mail", 451, "4.4.3 Temporary server error", "retry", "transient"),
    ("dot", 454, "4.7.0 Temporary failure", "retry", "transient"),
    ("dot", 421, "4.7.28 Gmail has detected an unusual rate of unsolicited mail",
     "retry", "throttled"),
    ("dot", 421, "4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user "
     "complaints", "retry", "throttled"),
    ("rcpt", 421, "RP-001 (BAY) Unfortunately, some messages from 192.0.2.1 weren't sent",
     "retry", "throttled"),
    ("rcpt", 451, "4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to "
     "IP reputation. (S775)", "retry", "throttled"),
    # policy: it is us, nobody is suppressed
    ("dot", 550, "5.7.26 Your email has been blocked because the sender is unauthenticated",
     "failed", "policy"),
    ("dot", 421, "5.7.32 rate limited: From header not aligned", "failed", "policy"),
    ("dot", 550, "5.7.1 [192.0.2.1] Our system has detected that this message is likely "
     "unsolicited mail", "failed", "policy"),
    ("rcpt", 550, "5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact "
     "your Internet service provider since part of their network is on our block list (S3140).",
     "failed", "policy"),
    ("rcpt", 550, "5.7.1 Service unavailable, (S3150)", "failed", "policy"),
    ("dot", 550, "5.7.515 Access denied, sending domain example.org does not meet the required "
     "authentication level", "failed", "policy"),
    ("rcpt", 550, "SC-001 (COL) Unfortunately, messages weren't sent", "failed", "policy"),
    ("rcpt", 553, "5.7.1 [BL21] Connections will not be accepted from 192.0.2.1",
     "failed", "policy"),
    ("rcpt", 553, "Mail from 192.0.2.1 not allowed - [TSS09]", "failed", "policy"),
    ("dot", 554, "Message not allowed - [PH01] Email not accepted for policy reasons",
     "failed", "policy"),
    ("dot", 554, "5.7.9 Message not accepted for policy reasons", "failed", "policy"),
    ("dot", 550, "5.7.1 [CS01] Message rejected due to local policy", "failed", "policy"),
    ("dot", 554, "[HM08] Message rejected due to local policy", "failed", "policy"),
    ("rcpt", 554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using "
     "zen.example.org", "failed", "policy"),
    ("rcpt", 550, "rejected because 192.0.2.1 is in a black list at dnsbl.example.org",
     "failed", "policy"),
    ("rcpt", 550, "Administrative prohibition", "failed", "policy"),
    ("rcpt", 550, "relay not permitted", "failed", "policy"),
    ("rcpt", 554, "5.7.1 <a@example.org>: Relay access denied", "failed", "policy"),
    ("rcpt", 553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
     "failed", "policy"),
    ("rcpt", 550, "Reject due to policy restrictions", "failed", "policy"),
    ("rcpt", 550, "Access denied - Invalid HELO name (See RFC2821 4.1.1.1)", "failed", "policy"),
    ("rcpt", 550, "your account has been suspended", "failed", "policy"),
    ("rcpt", 550, "5.7.1 user unknown", "failed", "policy"),
    ("dot", 554, "5.7.1 rejected as spam", "failed", "policy"),
    # this recipient will not have it; the address lives
    ("rcpt", 550, "5.6.7 Address requires SMTPUTF8", "failed", "address_refused"),
    ("rcpt", 550, "5.7.1 RESOLVER.RST.AuthRequired; authentication required",
     "failed", "address_refused"),
    ("dot", 550, "5.7.1 TRANSPORT.RULES.RejectMessage; the message was rejected by organization "
     "policy", "failed", "address_refused"),
    ("rcpt", 550, "5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup",
     "failed", "address_refused"),
    # content, size, quota
    ("dot", 552, "5.3.4 Message size exceeds fixed limit", "failed", "content"),
    ("mail", 552, "5.3.4 Message size exceeds fixed limit", "failed", "content"),
    ("dot", 552, "Message size exceeds maximum permitted", "failed", "content"),
    ("dot", 550, "5.6.0 Lone CR or LF in headers", "failed", "content"),
    ("dot", 550, "Header syntax error", "failed", "content"),
    ("dot", 550, "5.4.5 Daily user sending limit exceeded", "failed", "quota"),
    ("rcpt", 550, "Daily user sending quota exceeded", "failed", "quota"),
    ("dot", 554, "Transaction failed", "failed", "unclassified"),
    ("data", 554, "no valid recipients", "failed", "unclassified"),
    # the relay or the credentials
    ("connect", None, "Connection refused", "relay_down", "relay"),
    ("greeting", None, "connection lost", "relay_down", "relay"),
    ("greeting", 554, "No SMTP service here", "relay_down", "relay"),
    ("greeting", 521, "host does not accept mail", "relay_down", "relay"),
    ("greeting", 421, "4.7.0 too many connections", "relay_down", "relay"),
    ("ehlo", 550, "bad name", "relay_down", "relay"),
    ("tls", None, "certificate verify failed", "relay_down", "relay"),
    ("auth", 535, "5.7.8 Authentication failed", "relay_down", "credentials"),
    ("auth", 454, "4.7.0 Temporary authentication failure", "relay_down", "relay"),
    ("auth", None, "connection lost", "relay_down", "relay"),
    ("mail", 530, "5.7.0 Authentication required", "relay_down", "credentials"),
    ("rcpt", 530, "5.7.0 Must issue a STARTTLS command first", "relay_down", "credentials"),
    ("mail", 550, "5.7.1 sender not allowed", "relay_down", "sender_refused"),
    ("mail", 553, "5.1.8 domain of sender address does not exist", "relay_down", "sender_refused"),
    ("mail", 550, "5.4.5 Daily user sending limit exceeded", "relay_down", "quota"),
    ("mail", 503, "5.5.1 nested MAIL", "relay_down", "relay"),
    ("rcpt", 503, "5.5.1 Error: need MAIL command", "relay_down", "relay"),
    # lost
    ("mail", None, "connection lost", "retry", "connection_lost"),
    ("rcpt", None, "timed out", "retry", "timeout"),
    ("data", None, "connection lost", "retry", "connection_lost"),
    ("body", None, "connection lost", "retry", "connection_lost"),
    ("body", 552, "5.3.4 too big", "failed", "content"),
    ("dot", None, "connection lost", "in_doubt", "connection_lost"),
    ("dot", None, "timed out", "in_doubt", "timeout"),
    ("dot", None, "unreadable reply: HTTP/1.1 400", "in_doubt", "unreadable"),
    ("dot", 354, "go ahead", "in_doubt", "unreadable"),
    ("data", 250, "ok", "retry", "unreadable"),
    # accepted
    ("dot", 250, "2.0.0 Ok: queued as 1A2B", "sent", "accepted"),
    ("dot", 252, "", "sent", "accepted"),
    ("quit", None, "connection lost", "sent", "accepted"),
    ("quit", 500, "what", "sent", "accepted"),
    # before the network
    ("local", None, "newline in header", "failed", "refused_locally"),
    ("local", None, "5.6.7 needs SMTPUTF8", "failed", "address_refused"),
    ("local", None, "5.3.4 larger than the relay takes", "failed", "content"),
    # providers' APIs
    ("http", 200, "", "sent", "accepted"),
    ("http", 202, "", "sent", "accepted"),
    ("http", 429, "rate limit", "retry", "throttled"),
    ("http", None, "Read timed out.", "in_doubt", "timeout"),
    ("http", None, "connection lost", "in_doubt", "connection_lost"),
    ("http", 500, "", "in_doubt", "unreadable"),
    ("http", 503, "", "in_doubt", "unreadable"),
    ("http", 302, "", "in_doubt", "unreadable"),
    ("http", 409, "concurrent_idempotent_requests", "in_doubt", "unreadable"),
    ("http", 401, "API key is invalid", "relay_down", "credentials"),
    ("http", 403, "domain is not verified", "failed", "policy"),
    ("http", 413, "", "failed", "content"),
    ("http", 422, "Invalid `to` field", "bounced", "address_dead"),
    ("http", 422, "Invalid `from` field", "failed", "sender_refused"),
    ("http", 422, "invalid address", "failed", "unclassified"),
    ("http", 422, "recipient rejected by the provider", "failed", "address_refused"),
    ("http", 400, "", "failed", "unclassified"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "code", "text", "outcome", "reason"), REPLIES)
def test_reply(stage: str, code: int | None, text: str, outcome: str, reason: str) -> None:
    verdict = classify(stage, code, parse_enhanced(text), text)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert classify(Stage(stage), code, None, text) == verdict, "read from the text when not given"
    assert verdict.suppress is (outcome == "bounced")


@pytest.mark.parametrize(
    ("stage", "code", "text", "brakes"),
    [
        ("dot", 550, "5.7.1 blocked", True),
        ("dot", 554, "Transaction failed", True),
        ("mail", 550, "5.4.5 limit", True),
        ("auth", 535, "5.7.8 no", True),
        ("connect", None, "refused", False),
        ("rcpt", 550, "5.1.1 unknown", False),
        ("rcpt", 550, "5.6.7 SMTPUTF8", False),
        ("rcpt", 451, "4.7.1 later", False),
        ("local", None, "bad address", False),
    ],
)
def test_only_what_speaks_of_us_brakes(
    stage: str, code: int | None, text: str, brakes: bool
) -> None:
    assert classify(stage, code, None, text).brakes is brakes


def test_unknown_replies_are_marked_as_such() -> None:
    assert not classify("dot", 554, "", "Zonk").known
    assert not classify("rcpt", 599, "", "Zonk").known
    assert classify("rcpt", 550, "", "").known


def test_nothing_after_the_dot_without_a_valid_code_is_ever_tried_again() -> None:
    for code, text in itertools.product((None, 0, 7, 199, 600, 999, -1, 10**9, "x"), ("", "ok")):
        assert classify("dot", code, "", text).outcome is Outcome.IN_DOUBT


def test_garbage_gets_a_verdict() -> None:
    stages: list[Any] = [*Stage, "", "bogus", None, 7]
    codes: list[Any] = [None, 0, 99, 250, 354, 421, 550, 999, "550", "x", float("nan")]
    statuses = [None, "", "5.1.1", "9.9.9", "5.1", "\0", "5.1.1.1"]
    texts = [None, "", "\x00\x01", "\udcff", b"\xff\xfe 550", "邮箱不存在", "a" * 100_000]
    for stage, code, enhanced, text in itertools.product(stages, codes, statuses, texts):
        verdict = classify(stage, code, enhanced, text)
        assert isinstance(verdict.outcome, Outcome)
        if stage == "dot" and code in (None, 0, 99, 354, 999, "x"):
            assert verdict.outcome is Outcome.IN_DOUBT


def test_an_unknown_stage_is_doubt() -> None:
    assert classify("wire", 550, "5.1.1", "no").outcome is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    ("text", "enhanced"),
    [
        ("5.1.1 no such user", "5.1.1"),
        ("4.7.650 slow", "4.7.650"),
        ("5.7.1: no", "5.7.1"),
        ("5.1.1", "5.1.1"),
        ("<5.1.1> no", "5.1.1"),
        ("not here (#5.1.1)", "5.1.1"),
        ("5.1.2.3 is listed", ""),
        ("host 5.1.1 said", ""),
        ("15.1.1", ""),
        ("3.1.1 odd", ""),
        ("version 5.1.1234", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_enhanced_code(text: str | None, enhanced: str) -> None:
    assert parse_enhanced(text) == enhanced


def test_text_is_fit_for_the_database() -> None:
    assert clean_text("a\x00b\r\n c\td\x1b[31m\udc80") == "a b c d [31m"
    assert clean_text(b"caf\xc3\xa9 \xff") == "café �"
    assert len(clean_text("x" * 100_000)) == 500
    assert clean_text(None) == ""
    made = answer(Stage.RCPT, 550, b"5.1.1 no\x00body\r\n")
    assert (made.enhanced, made.text) == ("5.1.1", "5.1.1 no body")


def test_waits_grow_and_end() -> None:
    waits = [retry_delay(spent, jitter=0.5) for spent in range(1, 6)]
    assert waits == [30, 120, 480, 1800, None]
    assert [retry_delay(spent, jitter=0.5, limit=8) for spent in (5, 6, 7, 8)] == [
        3600, 3600, 3600, None,
    ]  # fmt: skip


def test_jitter_spreads_by_a_fifth() -> None:
    assert retry_delay(1, jitter=0.0) == pytest.approx(24)
    assert retry_delay(1, jitter=0.999999) == pytest.approx(36, rel=1e-3)


def test_retry_after_wins_within_a_day() -> None:
    assert retry_delay(1, retry_after=7, jitter=0.5) == 7
    assert retry_delay(4, retry_after=10**9, jitter=0.5) == 86400
    assert retry_delay(5, retry_after=7, jitter=0.5) is None
    for nonsense in (0, -5, float("nan"), float("inf")):
        assert retry_delay(1, retry_after=nonsense, jitter=0.5) == 30


def test_reasons_are_all_reachable() -> None:
    seen = {reason for *_, reason in REPLIES}
    assert seen == {reason.value for reason in Reason}
