"""What one process counts of the answers that its lanes are told."""

from __future__ import annotations

import pytest

from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.health import ERRORS_IN_A_ROW, Brake, Unflushed, is_error
from sending.queue import Claimed
from tests.claimed_rows import claimed_row

SENT = Verdict(Outcome.SENT, Reason.ACCEPTED)
POLICY = Verdict(Outcome.FAILED, Reason.POLICY)
LOST = Verdict(Outcome.IN_DOUBT, Reason.CONNECTION_LOST)
OK = Answer(Stage.DOT, 250, "", "queued")
BLOCKED = Answer(Stage.DOT, 550, "5.7.1", "5.7.1 blocked")
GONE = Answer(Stage.DOT, None, "", "connection lost")


def row(campaign: int | None = 1) -> Claimed:
    return claimed_row(
        campaign_id=campaign, subscriber_id=None, email="ann@example.org", alias="default"
    )


def counted(brake: Brake, campaign: int = 1) -> Unflushed | None:
    return brake._campaigns.get(campaign)


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        (SENT, False),
        (LOST, True),
        (Verdict(Outcome.IN_DOUBT, Reason.TIMEOUT), True),
        (Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE), True),
        (Verdict(Outcome.RETRY, Reason.CONNECTION_LOST), True),
        (Verdict(Outcome.RETRY, Reason.TIMEOUT), True),
        (Verdict(Outcome.RETRY, Reason.UNREADABLE), True),
        (Verdict(Outcome.RETRY, Reason.GREYLISTED), False),
        (Verdict(Outcome.RETRY, Reason.THROTTLED), False),
        (Verdict(Outcome.RETRY, Reason.TRANSIENT), False),
        (Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD), False),
        (POLICY, False),
        (Verdict(Outcome.FAILED, Reason.REFUSED_LOCALLY), False),
    ],
)
def test_which_answers_are_the_transports_failure(verdict: Verdict, error: bool) -> None:
    assert is_error(verdict) is error


def test_answers_are_counted_by_campaign_and_an_acceptance_ends_the_row() -> None:
    brake = Brake()
    for verdict in (POLICY, POLICY, SENT, POLICY, Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD)):
        brake.note("default", row(), verdict, BLOCKED)
    brake.note("default", row(2), SENT, OK)
    assert counted(brake) == Unflushed(1, 1, 3, 1, "(policy): 550 5.7.1 blocked")
    assert counted(brake, 2) == Unflushed(accepted=1)


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(Outcome.RETRY, Reason.GREYLISTED),
        Verdict(Outcome.FAILED, Reason.REFUSED_LOCALLY),
        Verdict(Outcome.FAILED, Reason.ADDRESS_REFUSED),
        Verdict(Outcome.RELAY_DOWN, Reason.CREDENTIALS),
        LOST,
    ],
)
def test_what_speaks_of_the_recipient_or_the_weather_is_not_counted(verdict: Verdict) -> None:
    brake = Brake()
    brake.note("default", row(), verdict, BLOCKED)
    assert counted(brake) is None


def test_a_transactional_message_is_no_campaigns() -> None:
    brake = Brake()
    for _ in range(50):
        brake.note("default", row(None), POLICY, BLOCKED)
    assert not brake._campaigns
    assert not brake.urgent


def test_refusals_in_a_row_are_urgent_and_single_ones_are_not() -> None:
    brake = Brake()
    for _ in range(30):
        brake.note("default", row(), POLICY, BLOCKED)
        brake.note("default", row(), SENT, OK)
    assert not brake.urgent
    brake.note("default", row(), POLICY, BLOCKED)
    brake.note("default", row(), POLICY, BLOCKED)
    assert brake.urgent


@pytest.mark.parametrize(
    ("earlier", "later", "sum_"),
    [
        (Unflushed(0, 0, 3, 3, "a"), Unflushed(0, 1, 2, 2, "b"), Unflushed(0, 1, 5, 5, "b")),
        (Unflushed(0, 0, 3, 3, "a"), Unflushed(1, 0, 2, 1, ""), Unflushed(1, 0, 5, 1, "a")),
        (Unflushed(5, 0, 0, 0, ""), Unflushed(0, 0, 2, 2, "b"), Unflushed(5, 0, 2, 2, "b")),
    ],
)
def test_counts_that_could_not_be_told_are_added_to_the_next(
    earlier: Unflushed, later: Unflushed, sum_: Unflushed
) -> None:
    earlier.add(later)
    assert earlier == sum_


def test_errors_in_a_row_pause_the_transport_here_at_once() -> None:
    brake = Brake()
    for _ in range(ERRORS_IN_A_ROW - 1):
        brake.note("bulk", row(), LOST, GONE)
        brake.note("other", row(), LOST, GONE)
        brake.note("other", row(), SENT, OK)
    before = (brake.urgent, brake.pauses.blocks("bulk", 1))
    brake.note("bulk", row(None), LOST, GONE)
    after = (brake.urgent, brake.pauses.blocks("bulk", 1))
    assert (before, after) == ((False, False), (True, True))
    assert not brake.pauses.blocks("other", 1)
    assert (
        brake._broken["bulk"][0] == "10 errors in a row, after the whole message: connection lost"
    )


def test_what_is_neither_error_nor_acceptance_leaves_the_row_of_errors() -> None:
    brake = Brake()
    for _ in range(ERRORS_IN_A_ROW):
        brake.note("bulk", row(), LOST, GONE)
        brake.note("bulk", row(), Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD), BLOCKED)
    assert brake.pauses.blocks("bulk", 1)


def test_an_error_over_a_transport_that_is_paused_ends_the_lot() -> None:
    brake = Brake()
    brake.pauses.note("bulk", None, "errors")
    brake.note("bulk", row(), LOST, GONE)
    assert brake.urgent


def test_a_flush_of_nothing_needs_no_database() -> None:
    brake = Brake()
    brake.urgent = True
    assert brake.flush() == []
    assert not brake.urgent


def _to(address: str) -> Claimed:
    made = row()
    made.email = made.email_lower = address
    return made


def test_one_big_provider_that_blocks_is_seen_among_acceptances_by_others() -> None:
    brake = Brake()
    for number in range(19):
        brake.note("default", _to(f"p{number}@googlemail.com"), POLICY, BLOCKED)
        brake.note("default", _to(f"p{number}@example.org"), SENT, OK)
    assert brake._blocked == {}
    brake.note("default", _to("p@gmail.com"), POLICY, BLOCKED)
    ((campaign, reason),) = brake._blocked.items()
    assert campaign == 1
    assert reason.startswith("20 refusals in a row by mailboxes at google (policy): 550 5.7.1")
    assert brake.urgent


def test_an_acceptance_by_the_provider_begins_its_row_anew() -> None:
    brake = Brake()
    for number in range(60):
        verdict, said = (SENT, OK) if number % 15 == 14 else (POLICY, BLOCKED)
        brake.note("default", _to("p@gmail.com"), verdict, said)
    assert brake._blocked == {}


def test_a_company_that_refuses_its_own_people_says_nothing_about_us() -> None:
    brake = Brake()
    for _ in range(60):
        brake.note("default", _to("p@company.example"), POLICY, BLOCKED)
        brake.note("default", _to("p@example.org"), SENT, OK)
    assert brake._blocked == {}


@pytest.mark.parametrize(
    ("verdict", "answer", "error"),
    [
        (Verdict(Outcome.RETRY, Reason.QUOTA), Answer(Stage.HTTP, 429), True),
        (Verdict(Outcome.RETRY, Reason.TRANSIENT), Answer(Stage.MAIL, 452, "4.3.1"), True),
        (Verdict(Outcome.RETRY, Reason.TRANSIENT), Answer(Stage.DOT, 451, "4.3.0"), True),
        (Verdict(Outcome.RETRY, Reason.TRANSIENT), Answer(Stage.RCPT, 451, "4.3.0"), True),
        (Verdict(Outcome.RETRY, Reason.TRANSIENT), Answer(Stage.RCPT, 450, "4.2.0"), False),
    ],
)
def test_a_relay_that_is_out_of_order_is_the_relays_trouble(
    verdict: Verdict, answer: Answer, error: bool
) -> None:
    assert is_error(verdict, answer) is error
