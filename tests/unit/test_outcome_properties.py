"""What must hold of every answer there is, known or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sending.answers import Outcome, Reason, Stage, Verdict, parse_enhanced
from sending.outcomes import classify
from sending.replies.rules import ENHANCED, HOUSES, first
from sending.replies.words import plain

from .replies import API_REPLIES, REPLIES

#: What real replies are made of, so that invented ones come close to them.
WORDS = sorted({word for row in (*REPLIES, *API_REPLIES) for word in row[4].split()})
TEXTS = [row[4] for row in REPLIES]
DEAD_TEXTS = [(row[1], row[2], row[4]) for row in REPLIES if row[5] == "bounced"]

#: What speaks of our machine, our name or our history.
ABOUT_US = [
    "blocked using zen.spamhaus.org",
    "your IP 192.0.2.1 is blocked",
    "the IP address 192.0.2.1 is listed",
    "Client host [192.0.2.1] rejected",
    "your host is on our block list",
    "blacklisted",
    "poor reputation",
    "SPF check failed",
    "rejected per DMARC policy",
    "no PTR record",
    "no reverse DNS",
    "rejected as spam",
    "likely unsolicited mail",
    "see https://senderscore.org/",
    "too many invalid recipients",
    "virus found",
    "IP地址被列入黑名单",
    "IP-адрес в чёрном списке",
    "Ihre IP-Adresse ist gesperrt",
    "votre adresse IP est bloquée",
    "su dirección IP está bloqueada",
]

stages = st.sampled_from([*Stage])
codes = st.one_of(st.none(), st.integers(200, 599), st.sampled_from([450, 452, 550, 552, 554]))
statuses = st.one_of(
    st.just(""),
    st.sampled_from(sorted(ENHANCED)),
    st.builds("{}.{}.{}".format, st.sampled_from("245"), st.integers(0, 9), st.integers(0, 60)),
)
texts = st.one_of(
    st.sampled_from(TEXTS),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.text(max_size=80),
)
anything: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.text(max_size=50),
    st.binary(max_size=50),
    st.integers(),
    st.floats(),
    st.just(-(10**30)),
    st.just("9" * 5000),
    st.just("用户不存在 邮箱已满".encode("gb18030")),
    st.just(b"550-first\r\n550 second\x00\xff"),
    st.just("a" * 100_000),
    st.just(b"\xb0\xa1" * 50_000),
    st.just("@" * 100_000),
    st.just("\udcff\x00\u2028"),
)


#: Enough to meet every rule of the tables; more of them look longer.
usual = settings(derandomize=True, max_examples=40, deadline=None)


@usual
@given(st.one_of(stages, anything), anything, anything, anything)
def test_garbage_gets_a_verdict(stage: Any, code: Any, enhanced: Any, text: Any) -> None:
    verdict = classify(stage, code, enhanced, text)
    assert isinstance(verdict.outcome, Outcome)
    assert verdict.suppress == (verdict.outcome is Outcome.BOUNCED)


@usual
@given(stages, codes, statuses, texts)
def test_only_what_was_said_of_a_recipient_bounces(
    stage: Stage, code: int | None, enhanced: str, text: str
) -> None:
    verdict = classify(stage, code, enhanced, text)
    assert verdict.suppress == (verdict.outcome is Outcome.BOUNCED)
    if verdict.outcome is Outcome.BOUNCED:
        assert stage in (Stage.RCPT, Stage.DATA, Stage.BODY, Stage.DOT, Stage.HTTP)
        assert code is not None
        assert code >= 400


@usual
@given(
    st.sampled_from([Stage.DATA, Stage.BODY, Stage.DOT, Stage.HTTP]),
    codes.filter(lambda code: code != 556),
    statuses.filter(lambda status: not (status in ENHANCED and ENHANCED[status].suppress)),
    st.one_of(st.just(""), st.text(alphabet="0123456789 .,:;()[]<>-_xyzq", max_size=60)),
)
def test_after_rcpt_nobody_bounces_without_a_word_about_the_address(
    stage: Stage, code: int | None, enhanced: str, text: str
) -> None:
    if not (parse_enhanced(text) and not enhanced):
        assert classify(stage, code, enhanced, text).outcome is not Outcome.BOUNCED


@usual
@given(stages.filter(lambda s: s is not Stage.HTTP), codes, st.integers(0, 999), texts)
def test_a_refusal_for_policy_suppresses_nobody(
    stage: Stage, code: int | None, detail: int, text: str
) -> None:
    """Unless a house is known to mean a dead address by its 5.7.x."""
    enhanced = f"5.7.{detail}"
    if classify(stage, code, enhanced, text).suppress:
        assert code is not None
        words = plain(text, enhanced)
        fits = first(HOUSES, stage, code, enhanced, words)
        assert fits is not None
        assert fits.suppress


@usual
@given(
    st.one_of(stages, st.just(Stage.RCPT)),
    st.integers(400, 599),
    statuses,
    st.one_of(st.sampled_from(DEAD_TEXTS).map(lambda dead: dead[2]), texts),
    st.sampled_from(ABOUT_US),
    st.booleans(),
)
def test_nobody_is_suppressed_for_our_name(
    stage: Stage, code: int, enhanced: str, text: str, about_us: str, first: bool
) -> None:
    if stage is Stage.HTTP or len(text) > 300:
        return
    said = f"{about_us}. {text}" if first else f"{text} {about_us}"
    assert not classify(stage, code, enhanced, said).suppress


@pytest.mark.parametrize("about_us", ABOUT_US)
def test_no_real_reply_of_a_dead_address_suppresses_with_words_about_us(about_us: str) -> None:
    for stage, code, text in DEAD_TEXTS:
        assert not classify(stage, code, None, f"{text} {about_us}").suppress, (text, about_us)


@usual
@given(
    st.sampled_from([Stage.DOT, Stage.HTTP]),
    st.one_of(
        st.none(), st.integers(max_value=199), st.integers(min_value=600), st.text(alphabet="abc-")
    ),
    statuses,
    texts,
)
def test_without_a_valid_code_there_is_only_doubt(
    stage: Stage, code: Any, enhanced: str, text: str
) -> None:
    assert classify(stage, code, enhanced, text).outcome is Outcome.IN_DOUBT


@usual
@given(stages.filter(lambda s: s is not Stage.HTTP), st.integers(400, 499), statuses, texts)
def test_a_refusal_for_now_suppresses_nobody(
    stage: Stage, code: int, enhanced: str, text: str
) -> None:
    assert not classify(stage, code, enhanced, text).suppress


@usual
@given(stages, codes, st.integers(0, 9), st.integers(0, 999), texts)
def test_nor_does_an_enhanced_code_that_says_later(
    stage: Stage, code: int | None, subject: int, detail: int, text: str
) -> None:
    if stage is not Stage.HTTP:
        assert not classify(stage, code, f"4.{subject}.{detail}", text).suppress


@usual
@given(st.sampled_from([Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.BODY]), codes, statuses, texts)
def test_before_the_dot_nothing_is_in_doubt(
    stage: Stage, code: int | None, enhanced: str, text: str
) -> None:
    assert classify(stage, code, enhanced, text).outcome not in (Outcome.IN_DOUBT, Outcome.SENT)


@usual
@given(
    st.sampled_from([Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH]),
    codes,
    statuses,
    texts,
)
def test_before_mail_nothing_was_attempted(
    stage: Stage, code: int | None, enhanced: str, text: str
) -> None:
    assert classify(stage, code, enhanced, text).outcome is Outcome.RELAY_DOWN


@usual
@given(st.sampled_from([408, 409, 420, 425, 429]), texts)
def test_an_api_that_asks_for_patience_refuses_nothing(code: int, text: str) -> None:
    expected = Outcome.IN_DOUBT if code == 409 else Outcome.RETRY
    assert classify(Stage.HTTP, code, "", text).outcome is expected


def test_an_unknown_stage_is_doubt() -> None:
    verdict = classify("wire", 550, "5.1.1", "no")
    assert verdict == Verdict(Outcome.IN_DOUBT, Reason.UNCLASSIFIED)
    assert not verdict.known
