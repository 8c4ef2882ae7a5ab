"""What replies mean: hundreds of real ones, by the house that gives them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sending.answers import Outcome, Reason, Stage, parse_enhanced
from sending.outcomes import classify

from .replies import API_REPLIES, KNOWN, REPLIES, UNREAD, Row

Told = tuple[str, int | None, str, str, str, str]


def by_house(rows: Iterable[Row]) -> list[tuple[str, list[Told]]]:
    houses: dict[str, list[Told]] = {}
    for house, *told in rows:
        houses.setdefault(house, []).append(tuple(told))  # type: ignore[arg-type]
    return sorted(houses.items())


@pytest.mark.parametrize(("house", "told"), by_house([*REPLIES, *API_REPLIES]))
def test_replies(house: str, told: list[Told]) -> None:
    wrong = []
    for stage, code, enhanced, text, outcome, reason in told:
        verdict = classify(stage, code, enhanced, text)
        if (verdict.outcome, verdict.reason) != (outcome, reason):
            got = f"{verdict.outcome}/{verdict.reason}"
            wrong.append(f"{got} and not {outcome}/{reason}: {stage} {code} {text}")
    assert not wrong, "\n".join([house, *wrong])


def test_the_codes_are_read_from_the_text_when_not_given() -> None:
    for _, stage, code, enhanced, text, outcome, reason in REPLIES:
        assert parse_enhanced(text) == enhanced
        verdict = classify(Stage(stage), str(code) if code else None, None, text.encode())
        assert (verdict.outcome, verdict.reason) == (outcome, reason), text


def test_there_are_enough_of_them() -> None:
    over_smtp = {row[1:5] for row in REPLIES}
    assert len(over_smtp) >= 450
    assert len({house for house, *_ in KNOWN}) >= 30
    assert len({house for house, *_ in API_REPLIES}) >= 12
    assert {row[6] for row in REPLIES} == {reason.value for reason in Reason}
    assert {row[5] for row in REPLIES} == {outcome.value for outcome in Outcome}


def test_whoever_is_suppressed_is_dead_and_the_reverse() -> None:
    for _, stage, code, enhanced, text, outcome, _ in [*REPLIES, *API_REPLIES]:
        assert classify(stage, code, enhanced, text).suppress is (outcome == "bounced"), text


def test_what_no_rule_knows_is_marked_as_such_and_nothing_else() -> None:
    for rows, known in ((KNOWN, True), (UNREAD, False)):
        for _, stage, code, enhanced, text, *_ in rows:
            assert classify(stage, code, enhanced, text).known is known, (stage, code, text)
    for _, stage, code, enhanced, text, _, reason in API_REPLIES:
        assert classify(stage, code, enhanced, text).known is (reason != "unclassified"), text


@pytest.mark.parametrize(
    ("stage", "code", "text", "brakes"),
    [
        ("dot", 550, "5.7.1 blocked", True),
        ("rcpt", 550, "5.1.1 blocked using zen.spamhaus.org", True),
        ("dot", 554, "Transaction failed", True),
        ("mail", 550, "5.4.5 limit", True),
        ("mail", 550, "5.7.1 your IP is on our block list", True),
        ("auth", 535, "5.7.8 no", True),
        ("http", 402, "", True),
        ("http", 403, "account suspended", True),
        ("connect", None, "refused", False),
        ("rcpt", 550, "5.1.1 unknown", False),
        ("rcpt", 550, "5.6.7 SMTPUTF8", False),
        ("rcpt", 550, "blocked by the recipient", False),
        ("rcpt", 451, "4.7.1 later", False),
        ("local", None, "bad address", False),
    ],
)
def test_only_what_speaks_of_us_brakes(
    stage: str, code: int | None, text: str, brakes: bool
) -> None:
    assert classify(stage, code, None, text).brakes is brakes


def test_a_blocked_host_holds_up_everybody_and_a_refused_sender_only_its_account() -> None:
    """Lanes pause one account's use of a transport for ``sender_refused``, else all of it."""
    host = "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org"
    assert classify("mail", 554, None, host).reason is Reason.POLICY
    sender = "5.7.1 <s@example.org>: Sender address rejected: not owned by user s"
    assert classify("mail", 553, None, sender).reason is Reason.SENDER_REFUSED
