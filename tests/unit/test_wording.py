"""What staff and operators read: short words for stages, keys, rates and kinds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from sending.answers import Stage
from sending.doubt_advice import WORKER_LOST, reason_name
from sending.sql.pauses import ERRORS
from sending.tracking.rules import ARRIVED, HARD_BOUNCE, NOT_DELIVERED, ONCE, TAKEN, Result
from sending.wording import (
    ODD,
    TOLD,
    UNCLASSIFIED,
    WEBHOOK,
    answer_words,
    doubt_words,
    is_misconfigured,
    kind_words,
    limit_words,
    next_try,
    percent,
    rate_words,
    reason_words,
    refusal_words,
    remedy,
    share_words,
    stage_words,
    trouble,
)


@pytest.mark.parametrize(
    ("per_second", "hourly", "words"),
    [
        (5.0, False, "5 a second"),
        (2.5, False, "2.5 a second"),
        (1.0, False, "1 a second"),
        (20.0, False, "20 a second"),
        (1234.0, False, "1,234 a second"),
        (4.0837, False, "4.1 a second"),
        (0.5, False, "1,800 an hour"),
        (20_000 / 3600, False, "20,000 an hour"),
        (1 / 60, False, "60 an hour"),
        (1 / 3600, False, "1 an hour"),
        (2.5 / 3600, False, "2.5 an hour"),
        (1.0, True, "3,600 an hour"),
    ],
)
def test_a_rate_is_told_by_what_reads_best(per_second: float, hourly: bool, words: str) -> None:
    assert rate_words(per_second, hourly=hourly) == words


@pytest.mark.parametrize(
    ("key", "account", "words"),
    [
        ("transport:default", "", "transport default"),
        ("account:7", "City Theatre", "account City Theatre"),
        ("account:7", "", "account 7"),
        ("domain:google", "", "mailboxes at google"),
        ("domain:a.example.org", "", "mailboxes at a.example.org"),
        ("something else", "", "something else"),
    ],
)
def test_a_limit_says_what_it_is_of(key: str, account: str, words: str) -> None:
    assert limit_words(key, account) == words


@pytest.mark.parametrize(
    ("stage", "code", "whose", "what", "first"),
    [
        ("connect", None, None, "can't be reached", "Look at the relay, and at host"),
        ("tls", None, None, "offers no encryption that can be used", "Look at the relay, and at"),
        ("greeting", 554, None, "turns every session away", "Look at what it said"),
        ("ehlo", 550, None, "turns every session away", "Look at what it said"),
        ("auth", 535, None, "refuses the login", "Correct the login"),
        ("mail", 530, None, "refuses the login", "Correct the login"),
        ("http", 401, None, "refuses the login", "Correct the login"),
        ("http", 402, None, "refuses what it is asked", "Look at what it said"),
        ("mail", 553, None, "refuses the sender address", "Have the relay allow"),
        (
            "mail",
            553,
            "Shop",
            "refuses the sender address of Shop",
            "Correct the sender address of Shop",
        ),
        (ERRORS, None, None, "fails one message after another", "Look at what it said"),
        ("no such stage", None, None, "takes no mail", "Look at what it said"),
    ],
)
def test_a_pause_says_what_is_wrong_and_what_can_be_done(
    stage: str, code: int | None, whose: str | None, what: str, first: str
) -> None:
    assert trouble(stage, code, whose=whose) == what
    assert remedy(stage, code, whose=whose).startswith(first)


@pytest.mark.parametrize(
    ("seconds", "may_try", "words"),
    [
        (90, False, "the next try is at 21:00 UTC"),
        (90, True, "the next try is at 21:00 UTC, or at once by Try now"),
        (0, True, "the next try is due"),
        (-5, False, "the next try is due"),
    ],
)
def test_the_next_try_is_told_in_utc(seconds: int, may_try: bool, words: str) -> None:
    now = datetime(2026, 11, 30, 21, 58, 30, tzinfo=timezone(timedelta(hours=1)))
    assert next_try(now + timedelta(seconds=seconds), now, may_try=may_try) == words
    told = remedy("auth", 535, then=words)
    assert told == f"Correct the login in the settings and start the senders again; {words}."


@pytest.mark.parametrize(
    ("said", "is_wrong"),
    [
        ("no transport 'away' in SENDONCE['TRANSPORTS'] (default)", True),
        ("transport 'away': No module named 'nowhere'", True),
        ("transport 'away' names no BACKEND", True),
        (
            "You must set ANYMAIL = {'RESEND_API_KEY': ...} or ANYMAIL_RESEND_API_KEY or "
            "RESEND_API_KEY in your Django settings",
            True,
        ),
        ("MAILERS['x']: OPTIONS must define 'api_key'", True),
        ("Unable to locate credentials", True),
        ("You must specify a region.", True),
        ("Invalid URL 'nowhere': No scheme supplied. Perhaps you meant https://nowhere?", True),
        ("[Errno 111] Connection refused", False),
        ("[Errno -2] Name or service not known", False),
        ("timed out", False),
        ("", False),
    ],
)
def test_wrong_settings_are_not_taken_for_a_relay_that_is_away(said: str, is_wrong: bool) -> None:
    assert is_misconfigured("connect", said) == is_wrong
    assert not is_misconfigured("http", said)
    told, advice = trouble("connect", None, said=said), remedy("connect", None, said=said)
    assert told == ("is misconfigured" if is_wrong else "can't be reached")
    assert ("host, port" in advice) != is_wrong


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("timeout", None, "no answer came"),
        ("worker_lost", None, "no answer came"),
        ("", 500, "the answer does not say whether it was taken"),
        ("unreadable", None, "the answer does not say whether it was taken"),
    ],
)
def test_an_answer_that_says_nothing_is_one_that_came(
    reason: str, code: int | None, words: str
) -> None:
    assert doubt_words(reason, code) == words


@pytest.mark.parametrize("stage", [*Stage, ERRORS])
def test_every_stage_has_words(stage: str) -> None:
    assert trouble(stage, None)
    assert remedy(stage, None).endswith(".")


@pytest.mark.parametrize("stage", [*Stage, ERRORS, WEBHOOK])
def test_every_stage_has_a_place_in_plain_words(stage: str) -> None:
    assert len(stage_words(stage).split()) > 1
    assert stage == ERRORS or stage not in stage_words(stage).split()


@pytest.mark.parametrize(
    ("stage", "code", "enhanced", "text", "told"),
    [
        ("rcpt", 550, "5.1.1", "no such user",
         "at the recipient's address: \u201c550 5.1.1 no such user\u201d"),
        # Nobody said that: it is what happened in place of an answer.
        ("dot", None, "", "timed out: reading", "after the whole message: timed out: reading"),
        ("webhook", None, "", "over quota", "told later by the provider: \u201cover quota\u201d"),
        ("http", 429, "", "", "at the provider: \u201c429\u201d"),
        ("rcpt", None, "", "", "at the recipient's address"),
        ("", None, "", "timed out", "timed out"),
        ("some_new_stage", None, "", "", "some new stage"),
        ("", None, "", "", ""),
    ],
)  # fmt: skip
def test_an_answer_says_where_it_came_and_quotes_what_was_said(
    stage: str, code: int | None, enhanced: str, text: str, told: str
) -> None:
    assert answer_words(stage, code, enhanced, text) == told


def test_a_guess_is_told_as_one() -> None:
    assert reason_words("address_dead") == "address dead"
    assert reason_words("address_dead", known=False) == f"address dead, {UNCLASSIFIED}"
    assert reason_words("unclassified", known=False) == UNCLASSIFIED
    assert reason_words("", known=False) == UNCLASSIFIED
    assert reason_words("") == ""


def test_a_sender_that_stopped_has_one_name_everywhere() -> None:
    assert reason_words(WORKER_LOST) == kind_words(WORKER_LOST) == "sender stopped"
    assert reason_name(WORKER_LOST).lower() == "sender stopped"


def test_what_a_provider_told_is_not_taken_for_a_status_of_ours() -> None:
    assert kind_words("failed") == "failed"
    assert kind_words("failed", "webhook") == "given up by the provider"
    assert kind_words("sent") == "sent"
    assert kind_words("sent", "webhook") == "sent on by the provider"
    assert kind_words("in_doubt", "dot") == "in doubt"
    assert kind_words("some_new_kind", "webhook") == "some new kind"


def test_every_kind_that_providers_tell_and_every_odd_result_has_words() -> None:
    assert (TAKEN | ARRIVED | NOT_DELIVERED | {HARD_BOUNCE}) - ONCE <= set(TOLD)
    assert {str(r) for r in Result} - {"applied", "ignored"} <= set(ODD)


def test_counts_stand_beside_their_limits() -> None:
    assert share_words(21, 5.2, 5.0).replace("\u00a0", " ") == "21 (5.20 %, limit 5 %)"
    assert share_words(0, None, 0.1).replace("\u00a0", " ") == "0 (limit 0.1 %)"
    assert refusal_words(2, 9, 20) == "2 (limit 20, 9 in all)"
    assert refusal_words(0, 0, 20) == "0 (limit 20)"


@pytest.mark.parametrize(
    ("part", "whole", "share"), [(1, 4, 25.0), (0, 4, 0.0), (5, 4, 100.0), (0, 0, None)]
)
def test_a_share_of_nothing_is_none(part: int, whole: int, share: float | None) -> None:
    assert percent(part, whole) == share
