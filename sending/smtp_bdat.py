"""One message to one recipient by BDAT (RFC 3030): MAIL, RCPT and the message itself leave
together, one round trip instead of two.

The server knows the length beforehand, so the last two bytes take the place of the dot: until
their write begins it can't have a complete message. What it says of the sender and the recipient
is heard only after them: that is why BDAT is used on request only.
"""

from __future__ import annotations

import time

from .answers import Stage
from .smtp_dialogue import Dialogue, SMTPFailure
from .smtp_envelope import unstuffed, whole_lines
from .smtp_transaction import END, MAIL, RCPT, Step, Transaction, end_of, mail_command
from .smtp_wire import WireLost


def by_chunk(
    dialogue: Dialogue, sender: str, recipient: str, data: bytes, *, is_stuffed: bool = False
) -> Transaction:
    """Hand the message over by one BDAT, pipelined behind MAIL and RCPT; as ``by_data``."""
    body = unstuffed(data) if is_stuffed else whole_lines(data)
    mail = mail_command(dialogue, sender, recipient, data)
    lines = f"{mail}\r\nRCPT TO:<{recipient}>\r\nBDAT {len(body)} LAST\r\n".encode()
    wire, patience = dialogue.wire, dialogue.timeouts.command
    dialogue.begin()
    stage = Stage.BODY
    try:
        wire.write(lines + body[:-2], patience, more=True)
        left = _after_early_replies(dialogue)
        stage = Stage.DOT
        wire.write(body[-2:], patience)
    except WireLost as lost:
        raise dialogue.lost(stage, lost) from lost
    return (yield from _after_chunk(dialogue, left))


def _after_early_replies(dialogue: Dialogue) -> tuple[Step, ...]:
    """The steps whose replies are still to come just before the last bytes are written: a big
    message gives the server time to answer MAIL and RCPT.

    A refusal ends it: by hanging up, as the server waits for the rest of the message. Raises
    ``SMTPFailure`` for it and ``WireLost``.
    """
    left: tuple[Step, ...] = (MAIL, RCPT)
    while dialogue.wire.spoke_unasked():
        reply = dialogue.reply()
        step = left[0] if left else END
        if reply.code in step.wanted:
            left = left[1:]
            continue
        if reply.code < 400:
            raise WireLost(f"unreadable reply: {reply.code} before the end of the message")
        dialogue.drop()
        raise dialogue.failure(step.stage, reply)
    return left


def _after_chunk(dialogue: Dialogue, steps: tuple[Step, ...]) -> Transaction:
    """The replies that are left, after the write of the last bytes has begun. The first that
    refuses is the answer; what is lost or unreadable is doubt, unless the recipient was refused,
    or the sender and (as it must) the recipient with it: then nobody can have got it."""
    end = time.monotonic() + dialogue.timeouts.final
    refused: SMTPFailure | None = None
    is_doubtful = True
    try:
        for step in steps:
            reply = yield from dialogue.heard(end - time.monotonic())
            if reply.code in step.wanted:
                is_doubtful = True
                continue
            if reply.code < 400:
                raise WireLost(f"unreadable reply: {reply.code} to {step.stage.upper()}")
            refused, is_doubtful = refused or dialogue.failure(step.stage, reply), False
            if reply.code == 421:
                raise (yield from dialogue.reset_after(refused))
        reply = yield from dialogue.heard(end - time.monotonic())
        if refused is None:
            return (yield from end_of(dialogue, reply))
        if reply.code < 400 and is_doubtful:
            raise WireLost(f"unreadable reply: {reply.code} after a refusal")
    except WireLost as lost:
        failure = dialogue.lost(Stage.DOT, lost)
        raise failure if refused is None or is_doubtful else refused from lost
    raise (yield from dialogue.reset_after(refused))
