"""Events as anymail's own views read them from the providers' requests, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.http import QueryDict
from django.test import RequestFactory, override_settings
from django.utils.module_loading import import_string
from hypothesis import given, settings
from hypothesis import strategies as st

from sending.models import ProviderEvent
from sending.tracking.bounce_kinds import reply_in
from sending.tracking.reading import UNREADABLE, read, unreadable
from sending.tracking.webhooks import VIEWS
from tests.provider_payloads import ANYMAIL, AT, NAMES, ours, post, raw

signals = pytest.importorskip("anymail.signals")
pytestmark = [
    pytest.mark.filterwarnings("ignore:django-anymail has dropped official support for SendGrid"),
    pytest.mark.filterwarnings("ignore:Your Anymail webhooks are insecure"),
]

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _keys() -> Iterator[None]:
    keys = {**ANYMAIL, "POSTAL_WEBHOOK_KEY": "unused here"}
    with override_settings(ANYMAIL=keys):
        yield


def events_of(esp: str, events: list[Any]) -> list[Any]:
    """What anymail's view of the provider makes of a request."""
    kind: Any = import_string(f"anymail.webhooks.{VIEWS[esp]}")
    if esp == "amazon_ses":  # made without boto3, which only its other duties need
        view = kind.__new__(kind)
        sns = {"MessageId": "sns-1", "Timestamp": "2026-03-01T12:00:00.000Z"}
        return [e for event in events for e in view.esp_to_anymail_events(event, sns)]
    said = post(esp, events)
    request = RequestFactory().post(
        said.path, said.body, content_type=said.content_type, headers=said.headers
    )
    return list(kind().parse_events(request))


def told(esp: str, what: str, **more: Any) -> ProviderEvent:
    (event,) = events_of(esp, [raw(esp, what, **more)])
    return read(event, NAMES[esp], received=NOW).row


@pytest.mark.parametrize(
    ("esp", "what", "word"),
    [
        (esp, what, ours(esp, what))
        for esp in NAMES
        for what in ("taken", "delivered", "hard_bounce", "complained")
        if ours(esp, what)
    ],
)
def test_every_provider_says_which_message_it_speaks_of(esp: str, what: str, word: str) -> None:
    more = {"reply": "550 5.1.1 no such user"} if (esp, what) == ("postal", "hard_bounce") else {}
    row = told(esp, word, to="Ann@example.org", message="m-7", **more)
    expected = {"taken": ("queued", "sent")}.get(what, (what,))
    assert row.kind in expected
    assert (row.esp, row.recipient) == (NAMES[esp], "Ann@example.org")
    assert row.event_id.startswith(f"{NAMES[esp]}:")
    assert row.at.timestamp() == pytest.approx(AT, abs=1)
    if esp in ("mailersend", "postal"):  # they give nothing back but their own id
        assert (row.job_id, row.message_id) == ("", "m-7")
    else:
        assert (row.job_id, row.installation) == ("campaign:1:1", "0123456789abcdef")


def _ses(**bounce: Any) -> dict[str, Any]:
    recipients = [{"emailAddress": "ann@example.org", "diagnosticCode": bounce.pop("reply", None)}]
    return {"bounce": {"bouncedRecipients": recipients, **bounce}}


def _resend(**bounce: Any) -> dict[str, Any]:
    message = "Resend has suppressed sending to this address to protect your reputation."
    return {"data": {"to": ["ann@example.org"], "bounce": {"message": message, **bounce}}}


BLOCKED = "550 5.7.1 Service unavailable; client host [192.0.2.1] blocked using Spamhaus"
FULL = "552 5.2.2 The email account is over quota"
DEAD = "550 5.1.1 user unknown"

BOUNCES: list[tuple[str, str, dict[str, Any], str]] = [
    ("amazon_ses", "Bounce", _ses(bounceType="Permanent", bounceSubType="NoEmail"), "hard"),
    (
        "amazon_ses",
        "Bounce",
        _ses(bounceType="Permanent", bounceSubType="General", reply=f"smtp; {BLOCKED}"),
        "soft",
    ),
    ("amazon_ses", "Bounce", _ses(bounceType="Transient", bounceSubType="General"), "soft"),
    (
        "amazon_ses",
        "Bounce",
        _ses(bounceType="Transient", bounceSubType="General", reply=f"smtp; {DEAD}"),
        "soft",
    ),
    ("amazon_ses", "Bounce", _ses(bounceType="Undetermined", bounceSubType="Undetermined"), "soft"),
    (
        "amazon_ses",
        "Bounce",
        _ses(bounceType="Permanent", bounceSubType="OnAccountSuppressionList"),
        "rejected",
    ),
    ("amazon_ses", "Bounce", _ses(bounceType="Permanent", bounceSubType="Suppressed"), "rejected"),
    ("brevo", "hard_bounce", {}, "hard"),
    ("brevo", "hard_bounce", {"reply": DEAD}, "hard"),
    ("brevo", "hard_bounce", {"reply": BLOCKED}, "soft"),
    ("brevo", "hard_bounce", {"reply": FULL}, "soft"),
    ("brevo", "soft_bounce", {"reply": DEAD}, "soft"),
    ("brevo", "invalid_email", {}, "hard"),
    ("brevo", "blocked", {}, "rejected"),
    ("mailersend", "hard_bounced", {}, "hard"),
    ("mailersend", "hard_bounced", {"reply": BLOCKED}, "soft"),
    ("mailersend", "soft_bounced", {"reply": DEAD}, "soft"),
    ("mailgun", "failed", {}, "hard"),
    ("mailgun", "failed", {"reply": "5.7.1 message refused by policy"}, "soft"),
    ("mailgun", "failed", {"data": {"severity": "temporary", "reason": "generic"}}, "deferred"),
    (
        "mailgun",
        "failed",
        {"data": {"severity": "permanent", "reason": "generic"}, "reply": DEAD},
        "hard",
    ),
    (
        "mailgun",
        "failed",
        {"data": {"severity": "permanent", "reason": "generic"}, "reply": "refused"},
        "soft",
    ),
    ("mailgun", "failed", {"data": {"severity": "permanent", "reason": "old"}}, "soft"),
    (
        "mailgun",
        "failed",
        {"data": {"severity": "permanent", "reason": "suppress-bounce"}},
        "rejected",
    ),
    ("mailjet", "bounce", {}, "hard"),
    ("mailjet", "bounce", {"hard_bounce": False}, "soft"),
    ("mailjet", "bounce", {"error": "quota exceeded"}, "soft"),
    ("mailjet", "bounce", {"error_related_to": "spam", "error": "sender blocked"}, "soft"),
    ("mailjet", "bounce", {"hard_bounce": False, "error": "greylisted"}, "deferred"),
    ("mailjet", "blocked", {"error": "preblocked"}, "rejected"),
    ("mailjet", "blocked", {"error": "duplicate in campaign"}, "deduplicated"),
    ("mailtrap", "bounce", {}, "hard"),
    ("mailtrap", "bounce", {"bounce_category": "spam", "response": "5.7.1 spam"}, "soft"),
    ("mailtrap", "bounce", {"bounce_category": None, "response": "5.1.1 unknown user"}, "hard"),
    ("mailtrap", "bounce", {"bounce_category": None, "response": "refused"}, "soft"),
    ("mailtrap", "soft bounce", {}, "deferred"),
    ("mandrill", "hard_bounce", {}, "hard"),
    ("mandrill", "hard_bounce", {"reply": f"smtp;{BLOCKED}"}, "soft"),
    ("mandrill", "soft_bounce", {"reply": f"smtp;{FULL}"}, "soft"),
    ("mandrill", "reject", {}, "rejected"),
    ("postal", "HardFail", {"reply": DEAD}, "hard"),
    ("postal", "HardFail", {"reply": BLOCKED}, "failed"),
    ("postal", "HardFail", {"reply": "550 refused"}, "failed"),
    ("postal", "SoftFail", {"reply": "450 4.2.0 greylisted"}, "deferred"),
    (
        "postal",
        "x",
        {"payload": {"original_message": {"id": 7, "to": "ann@example.org"}, "bounce": {"id": 8}}},
        "soft",
    ),
    ("postmark", "Bounce", {}, "hard"),
    ("postmark", "Bounce", {"reply": f"smtp;{BLOCKED}"}, "soft"),
    ("postmark", "Bounce", {"Type": "SoftBounce"}, "soft"),
    ("postmark", "Bounce", {"Type": "VirusNotification"}, "soft"),
    ("postmark", "Bounce", {"Type": "SomethingNew"}, "soft"),
    ("postmark", "Bounce", {"Type": "Transient"}, "deferred"),
    ("postmark", "Bounce", {"Type": "DMARCPolicy"}, "rejected"),
    ("postmark", "SubscriptionChange", {"SuppressionReason": "HardBounce"}, "hard"),
    ("postmark", "SubscriptionChange", {"SuppressionReason": "ManualSuppression"}, "unsubscribed"),
    ("postmark", "SubscriptionChange", {"SuppressSending": False}, "subscribed"),
    ("resend", "bounced", {}, "hard"),
    ("resend", "bounced", {"reply": f"smtp; {BLOCKED}"}, "soft"),
    ("resend", "bounced", _resend(type="Transient", subType="MailboxFull"), "soft"),
    ("resend", "bounced", _resend(type="Permanent", subType="Suppressed"), "rejected"),
    ("resend", "bounced", _resend(), "soft"),
    ("sendgrid", "bounce", {}, "hard"),
    ("sendgrid", "bounce", {"type": "blocked"}, "soft"),
    ("sendgrid", "bounce", {"type": "blocked", "reply": DEAD}, "soft"),
    ("sendgrid", "bounce", {"reply": BLOCKED, "status": "5.7.1"}, "soft"),
    ("sendgrid", "bounce", {"bounce_classification": "Invalid Address"}, "hard"),
    (
        "sendgrid",
        "bounce",
        {"bounce_classification": "Reputation", "reply": "550 no", "status": "5.0.0"},
        "soft",
    ),
    ("sendgrid", "dropped", {}, "rejected"),
    *[
        ("sparkpost", "bounce", {"bounce_class": str(number), "raw_reason": ""}, kind)
        for number, kind in [
            (1, "soft"),
            (10, "hard"),
            *((n, "soft") for n in (20, 21, 22, 23, 24, 25, 40, 50, 51, 52, 53, 54, 70)),
            (30, "hard"),
            (60, "autoresponded"),
            (90, "unsubscribed"),
        ]
    ],
    ("sparkpost", "out_of_band", {}, "hard"),
    ("sparkpost", "bounce", {"reply": BLOCKED}, "soft"),
    ("sparkpost", "policy_rejection", {}, "rejected"),
    ("unisender_go", "hard_bounced", {}, "hard"),
    *[
        ("unisender_go", "hard_bounced", {"delivery_info": {"delivery_status": status}}, kind)
        for status, kind in [
            ("err_user_inactive", "hard"),
            ("err_domain_inactive", "hard"),
            ("err_mailbox_full", "soft"),
            ("err_spam_rejected", "soft"),
            ("err_blacklisted", "soft"),
            ("err_too_large", "soft"),
            ("err_delivery_failed", "soft"),
            ("err_unsubscribed", "rejected"),
        ]
    ],
    ("unisender_go", "soft_bounced", {}, "deferred"),
]
SHORT = {"hard": "hard_bounce", "soft": "soft_bounce"}


@pytest.mark.parametrize(("esp", "what", "more", "kind"), BOUNCES)
def test_hard_and_soft_are_told_apart(esp: str, what: str, more: dict[str, Any], kind: str) -> None:
    assert told(esp, what, **more).kind == SHORT.get(kind, kind)


def test_an_unknown_provider_is_not_believed_without_a_reply() -> None:
    def kind(reply: str | None) -> str:
        event = signals.AnymailTrackingEvent(event_type="bounced", mta_response=reply, esp_event={})
        return str(read(event, "Newcomer", received=NOW).row.kind)

    assert [kind(None), kind("refused"), kind("550 no"), kind(BLOCKED)] == ["soft_bounce"] * 4
    assert kind(DEAD) == "hard_bounce"


def test_amazon_did_not_send_because_of_an_earlier_complaint() -> None:
    complaint = {
        "complaintSubType": "OnAccountSuppressionList",
        "complainedRecipients": [{"emailAddress": "ann@example.org"}],
    }
    assert told("amazon_ses", "Complaint", complaint=complaint).kind == "rejected"


@pytest.mark.parametrize(
    ("text", "code", "enhanced"),
    [
        ("550 5.1.1 no such user", 550, "5.1.1"),
        ("smtp;550 5.1.1 no", 550, "5.1.1"),
        ("smtp; 550-5.7.1 blocked", 550, "5.7.1"),
        ("host mx.example.org[192.0.2.1] said: 554 5.7.1 no", 554, "5.7.1"),
        ("connect to mx.example.org:587 timed out", None, ""),
        ("mx.example.org 192.0.2.250 refused", None, ""),
        ("5.1.1 The email account does not exist", None, "5.1.1"),
        ("call 555 123 4567", None, ""),
        ("", None, ""),
        (None, None, ""),
        (b"550 5.1.1 \xff", 550, "5.1.1"),
        (7, None, ""),
    ],
)
def test_the_codes_in_a_reply(text: Any, code: int | None, enhanced: str) -> None:
    found = reply_in(text)
    assert (found.code, found.enhanced) == (code, enhanced)


# --- ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("esp", NAMES)
def test_what_is_told_twice_has_one_id(esp: str) -> None:
    word = ours(esp, "delivered") or ours(esp, "taken")
    again = told(esp, word)
    if esp == "unisender_go":  # whatever the order of its fields
        event = raw(esp, word)
        event["event_data"] = dict(reversed(event["event_data"].items()))
        (read_again,) = events_of(esp, [event])
        assert read(read_again, NAMES[esp], received=NOW).row.event_id == again.event_id
    assert told(esp, word).event_id == again.event_id
    assert told(esp, word, to="other@example.org").event_id != again.event_id
    assert len(again.event_id) <= 300


def test_one_notification_of_amazon_about_two_people_is_two_events() -> None:
    event = raw("amazon_ses", "Bounce")
    event["bounce"]["bouncedRecipients"].append({"emailAddress": "bob@example.org"})
    first, second = events_of("amazon_ses", [event])
    ids = {read(e, "Amazon SES", received=NOW).row.event_id for e in (first, second)}
    assert len(ids) == 2


def test_without_an_id_of_its_own_two_events_differ_by_what_they_say() -> None:
    opened = [told("postmark", "Open", UserAgent=agent) for agent in ("one", "two", "one")]
    assert opened[0].event_id == opened[2].event_id != opened[1].event_id


def test_a_long_id_becomes_a_hash() -> None:
    def row(event_id: str) -> ProviderEvent:
        event = signals.AnymailTrackingEvent(event_type="opened", event_id=event_id)
        return read(event, "Test", received=NOW).row

    assert len(row("x" * 290).event_id) < 300
    assert row("x" * 900).event_id == row("x" * 900).event_id != row("x" * 901).event_id
    assert len(row("x" * 900).event_id) < 100


def test_the_old_name_of_brevo_is_brevo() -> None:
    event = signals.AnymailTrackingEvent(event_type="delivered")
    assert read(event, "SendinBlue", received=NOW).row.esp == "Brevo"


# --- times -----------------------------------------------------------------------------------

PLUS14, MINUS12 = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize(
    ("at", "is_odd"),
    [
        (NOW, False),
        (NOW - timedelta(days=400), False),
        (NOW + timedelta(hours=23), False),
        (NOW + timedelta(hours=25), True),
        (datetime(2000, 1, 1, tzinfo=UTC), False),
        (datetime(1999, 12, 31, tzinfo=UTC), True),
        (datetime(2000, 1, 1, tzinfo=PLUS14), True),
        (datetime(1, 1, 1, tzinfo=PLUS14), True),
        (datetime(9999, 12, 31, 23, 59, tzinfo=MINUS12), True),
        (datetime(2026, 3, 1), True),
        (None, True),
        ("2026-03-01", True),
        (1772366400, True),
    ],
)
def test_a_time_that_cannot_be_is_the_time_of_receipt(at: Any, is_odd: bool) -> None:
    event = signals.AnymailTrackingEvent(event_type="opened", timestamp=at)
    reading = read(event, "Test", received=NOW)
    assert reading.odd_time is is_odd
    assert reading.row.at == (NOW if is_odd else at)


# --- garbage ---------------------------------------------------------------------------------

GARBAGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(codec=None), max_size=400)
    | st.binary(max_size=50)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(GARBAGE, min_size=8, max_size=8), st.sampled_from([*NAMES.values(), "x\0" * 99]))
def test_whatever_an_event_holds_a_row_comes_out_that_a_database_takes(
    given_values: list[Any], esp: str
) -> None:
    names = (
        "event_type",
        "timestamp",
        "event_id",
        "esp_event",
        "description",
        "message_id",
        "metadata",
        "recipient",
    )
    event = signals.AnymailTrackingEvent(**dict(zip(names, given_values, strict=True)))
    event.mta_response = given_values[0]
    for kind in (event.event_type, "bounced", "failed", "complained"):
        event.event_type = kind
        row = read(event, esp, received=NOW).row
        for field in ProviderEvent._meta.fields:
            limit = getattr(field, "max_length", None)
            value = getattr(row, field.attname)
            if limit is not None:
                assert isinstance(value, str)
                assert len(value) <= limit
                assert "\0" not in value
                value.encode()
        assert row.at.utcoffset() is not None


def test_the_metadata_may_be_of_any_type() -> None:
    odd: list[Any] = [None, [], "job_id", 7, {"job_id": ["a"]}, {"job_id": True}, {7: 8}]
    for metadata in odd:
        event = signals.AnymailTrackingEvent(event_type="opened", metadata=metadata)
        assert read(event, "Test", received=NOW).row.job_id == ""
    event = signals.AnymailTrackingEvent(
        event_type="opened", metadata={"job_id": "message:1:key:  two  spaces", "installation": 7}
    )
    row = read(event, "Test", received=NOW).row
    assert (row.job_id, row.installation) == ("message:1:key:  two  spaces", "7")


def test_an_event_that_nobody_can_read_is_kept_as_it_came() -> None:
    row = unreadable({"event": None, "b": "\0"}, "SendGrid", received=NOW)
    assert (row.kind, row.esp, row.at) == (UNREADABLE, "SendGrid", NOW)
    assert row.text.startswith('{"b": ')
    assert unreadable({"b": "\0", "event": None}, "SendGrid", received=NOW).event_id == row.event_id
    assert unreadable(QueryDict("a=1&a=2"), "Mailgun", received=NOW).text == '{"a": ["1", "2"]}'
