"""What the SMTP backend refuses before it connects: options that don't mean what they seem to, and
messages that can't be sent."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from .answers import Stage, answer
from .smtp_dialogue import SMTPRefusedLocally
from .smtp_envelope import mailbox


def check_options(flags: dict[str, Any], seconds: dict[str, Any], messages: Any) -> None:
    """Raise ``ImproperlyConfigured`` for an option that would not mean what it seems to: the text
    "no" would be yes. None is an option that was not given."""
    for name, value in flags.items():
        if value is not None and value not in (True, False):
            raise ImproperlyConfigured(f"SMTP: {name} is true or false, not {value!r}.")
    for name, value in seconds.items():
        if value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):
            words = f"SMTP: {name} is a number of seconds above 0, not {value!r}."
            raise ImproperlyConfigured(words)
    if not isinstance(messages, int) or messages < 1:
        raise ImproperlyConfigured(
            f"SMTP: messages_per_connection is a whole number from 1 on, not {messages!r}."
        )


def checked_message(envelope_from: str, recipient: str, data: bytes) -> tuple[str, str]:
    """The bare addresses of a message that can be sent. Raises ``SMTPRefusedLocally``."""
    try:
        sender, bare = mailbox(envelope_from), mailbox(recipient)
        if not bare:
            raise ValueError("no recipient")
        if not data or data.isspace():
            raise ValueError("empty message")
    except (ValueError, AttributeError) as error:
        raise SMTPRefusedLocally(answer(Stage.LOCAL, None, str(error), enhanced="")) from error
    return sender, bare
