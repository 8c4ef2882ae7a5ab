"""What staff are mailed, in words. Pure: facts in, subject and text out; short, and with what to do
next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from campaigns.content import CompiledContent

from .wording import IN_DOUBT, remedy, trouble

SUBJECT = "{{ headline }}"
#: Foreign words (names, replies) come as data, so that no brace in them is a merge field.
TEXT = """\
{{ words }}
{% if url %}
{{ url }}
{% endif %}
--
You are a member of the account {{ account.name }}. Its page in the admin is where these notices
are switched off.
"""
HTML = """\
<!doctype html>
<html lang="en"><body style="font-family:Helvetica,Arial,sans-serif;font-size:15px;line-height:1.5">
<p>{{ words|linebreaksbr }}</p>
{% if url %}<p><a href="{{ url }}">Open it in the admin</a></p>{% endif %}
<p style="font-size:12px;color:#57606a">You are a member of the account {{ account.name }}. Its page
in the admin is where these notices are switched off.</p>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class Notice:
    """``words`` are paragraphs, a blank line between them."""

    headline: str
    words: str


def content(
    *, from_email: str, from_name: str, reply_to: str, account: Mapping[str, str]
) -> CompiledContent:
    """The templates of every notice, from this sender; the words are the message's context."""
    return CompiledContent(
        subject=SUBJECT,
        preheader="",
        html=HTML,
        text=TEXT,
        from_email=from_email,
        from_name=from_name,
        reply_to=reply_to,
        account_fields=dict(account),
    )


def paused(name: str, reason: str, counts: Mapping[str, int], *, status: str) -> Notice:
    """A brake has paused a campaign, whose status by now is ``status``."""
    waiting = sum(counts[name] for name in ("queued", "claimed", "sending", "retry"))
    if status == "canceled":
        now = "Somebody has canceled it since."
    elif status != "paused":
        now = "Somebody has resumed it since."
    else:
        now = (
            f"{waiting:,} of {_people(counts['audience'])} are still to get it. Nothing more of it "
            "leaves until somebody resumes it."
        )
    return Notice(
        f"Paused: {name}",
        _paragraphs(f'The campaign "{name}" was paused: {reason}.', now, _advice(reason)),
    )


#: As ``brakes.judge_rates`` begins.
_COMPLAINTS = re.compile(r"\d+ complaints about ")
_DEAD = re.compile(r"\d+ of \d+ addresses are dead")


def _advice(reason: str) -> str:
    # The reason begins with the brake's own words; a relay's reply in it may say anything.
    if _COMPLAINTS.match(reason):
        return (
            "So many people call it spam that mailbox providers will soon hold it against all your "
            "mail. Ask where these addresses come from, and whether these people expect this, "
            "before they get any more of it. Whoever complained gets nothing any more."
        )
    if _DEAD.match(reason):
        return (
            "A list with so many dead addresses is old, or was not collected from people; mailbox "
            "providers block senders for it. Look at where it comes from before it gets any more. "
            "The dead addresses are suppressed and get nothing any more."
        )
    return (
        "These refusals speak of the sender or the content, not of the recipients, so nobody was "
        "suppressed. Mend what the answer names (authentication of the domain, reputation, quota, "
        "content) and resume. What was refused has failed and can be sent again."
    )


_COUNTED = (
    ("sent", "accepted"),
    ("bounced", "bounced: the addresses are dead and are suppressed now"),
    ("failed", "failed: refused, or tried as often as the account allows; can be sent again"),
    ("suppressed", "withheld: unsubscribed or suppressed before it reached them"),
    ("canceled", "canceled"),
    ("in_doubt", f"in doubt: {IN_DOUBT}"),
)


def sent(name: str, counts: Mapping[str, int]) -> Notice:
    """A campaign has nothing left to do by itself."""
    lines = [f"{counts[status]:,} {words}" for status, words in _COUNTED if counts[status]]
    parts = [
        f'The campaign "{name}" is sent. Of {_people(counts["audience"])}:',
        "\n".join(lines) or "nobody was left to write to",
    ]
    if counts["in_doubt"]:
        parts.append(_DECIDE)
    return Notice(f"Sent: {name}", _paragraphs(*parts))


_DECIDE = (
    "Messages in doubt are not sent again by themselves. A late answer or a tracking event may "
    "still settle them. Else look into the relay's log, and decide in the admin (sends, "
    "in doubt): send again, which some may then get twice, or treat as sent, which some may then "
    "not have got."
)


def doubt(name: str, rows: int) -> Notice:
    """Rows of a campaign are in doubt, and nothing settles them but evidence or a person."""
    many = "1 message is" if rows == 1 else f"{rows:,} messages are"
    return Notice(
        f"In doubt: {name}",
        _paragraphs(
            f'{many} in doubt in the campaign "{name}": {IN_DOUBT}. So nobody can know whether '
            "they were accepted.",
            _DECIDE,
        ),
    )


def rates(name: str, reason: str) -> Notice:
    """A campaign that is sent has turned out to bounce, or to be called spam, too often."""
    return Notice(
        f"Look at: {name}",
        _paragraphs(
            f'The campaign "{name}" is sent already, but since then: {reason}.',
            _advice(reason),
        ),
    )


def transport(
    alias: str, stage: str, code: int | None, reason: str, *, since: str, whose: str | None
) -> Notice:
    """A transport takes no mail, for ``whose`` account alone if that is given. ``since`` is a
    time in words."""
    wrong = trouble(stage, code, whose=whose, said=reason)
    return Notice(
        f"Paused: transport {alias}",
        _paragraphs(
            f"The transport {alias} {wrong}. It is paused since {since}. It said: {reason}",
            "What is to go over it waits.",
            f"{remedy(stage, code, whose=whose, said=reason)} Senders try by themselves, and the "
            "first try that works lifts the pause.",
            "This notice waited as all mail of the account does: now that you read it, the "
            "transport has worked again, or the account has another one.",
        ),
    )


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(parts)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"
