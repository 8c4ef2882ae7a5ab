"""One message to one recipient: the commands, their replies, and where doubt begins.

Where the server offers PIPELINING (RFC 2920), MAIL, RCPT and DATA go out in one write and their
three replies are read one after the other, so that the stage is known as well as without. The
body and the final dot are two writes: a loss during the first is definite (the server has no
complete message), a loss from the beginning of the second on can't be known (RFC 1047).

Back to back, the final dot and the envelope of the message after it leave in one write with the
body: one round trip a message instead of two, and two calls into the kernel instead of seven. How
much of a write that fails was taken tells doubt from none.

With BDAT (RFC 3030) MAIL, RCPT and the message itself leave together, one round trip instead of
two. The server knows the length beforehand, so the last two bytes take the place of the dot: until
their write begins it can't have a complete message. What it says of the sender and the recipient
is heard only after them: that is why BDAT is used on request only.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import NamedTuple

from .answers import Answer, Stage, answer
from .smtp_dialogue import Dialogue, SMTPFailure, SMTPRefusedLocally
from .smtp_envelope import needs_utf8, unstuffed, whole_lines, wire_body
from .smtp_wire import Reply, WireLost

FINAL_DOT = b".\r\n"
_QUEUE_ID = re.compile(rb"queued as ([\w.-]{1,200})|\bid=([\w.-]{1,200})", re.IGNORECASE)


class Step(NamedTuple):
    """A command before the body, and the codes with which it goes on."""

    stage: Stage
    wanted: tuple[int, ...]

    def is_unreadable(self, reply: Reply) -> bool:
        """DATA is answered by 354 or refused; anything below 400 is neither."""
        return self.stage is Stage.DATA and reply.code < 400 and reply.code != 354


MAIL = Step(Stage.MAIL, (250,))
RCPT = Step(Stage.RCPT, (250, 251, 252))
DATA = Step(Stage.DATA, (354,))
#: Nothing is said between the beginning and the end of a message but refusals.
END = Step(Stage.BODY, ())


# -- DATA ----------------------------------------------------------------------------------------


def by_data(
    dialogue: Dialogue, sender: str, recipient: str, data: bytes, *, is_stuffed: bool = False
) -> Answer:
    """Hand the message over by DATA; for the arguments see ``Session.deliver``.

    Returns the acceptance; raises ``SMTPFailure`` for every other end.
    """
    body = data if is_stuffed else wire_body(data)
    mail, rcpt = _mail_command(dialogue, sender, recipient, data), f"RCPT TO:<{recipient}>"
    dialogue.begin()
    if "PIPELINING" in dialogue.features:
        _all_at_once(dialogue, f"{mail}\r\n{rcpt}\r\nDATA\r\n".encode())
    else:
        _one_by_one(dialogue, mail, rcpt)
    stage = Stage.BODY
    try:
        _write_body(dialogue, body)
        stage = Stage.DOT
        dialogue.wire.write(FINAL_DOT, dialogue.timeouts.command)
        reply = dialogue.wire.read_reply(dialogue.timeouts.final)
    except WireLost as lost:
        raise dialogue.lost(stage, lost) from lost
    return _end(dialogue, reply)


def _one_by_one(dialogue: Dialogue, mail: str, rcpt: str) -> None:
    for step, command in ((MAIL, mail), (RCPT, rcpt), (DATA, "DATA")):
        try:
            spoke = step is not MAIL and dialogue.wire.spoke_unasked()
            reply = dialogue.unasked() if spoke else dialogue.command(command)
            if step.is_unreadable(reply):
                raise WireLost(f"unreadable reply: {reply.code} to DATA")
        except WireLost as lost:
            raise dialogue.lost(step.stage, lost) from lost
        if reply.code not in step.wanted:
            raise dialogue.reset_after(dialogue.failure(step.stage, reply))


def _all_at_once(dialogue: Dialogue, lines: bytes) -> None:
    """One write, or none where that was done before; then the replies, each for its own step. The
    first that refuses is the answer: whatever follows it refuses for that reason, or (DATA) has to
    be ended empty."""
    refused: SMTPFailure | None = None
    taken: list[Step] = []
    step = MAIL
    try:
        if lines:
            dialogue.wire.write(lines, dialogue.timeouts.command)
        for step in (MAIL, RCPT, DATA):
            reply = dialogue.reply()
            if reply.code in step.wanted:
                taken.append(step)
                continue
            if reply.code < 400:
                raise WireLost(f"unreadable reply: {reply.code} to {step.stage.upper()}")
            refused = refused or dialogue.failure(step.stage, reply)
            if reply.code == 421:
                break
        if refused is None:
            return
        if DATA in taken:
            # It waits for a message although it refused (RFC 2920 3.1): an empty one ends that,
            # but only where nobody can get it.
            if RCPT in taken:
                dialogue.drop()
                raise refused
            dialogue.wire.write(FINAL_DOT, dialogue.timeouts.command)
            dialogue.reply()
    except WireLost as lost:
        failure = dialogue.lost(step.stage, lost)
        raise refused or failure from lost
    raise dialogue.reset_after(refused)


def _write_body(dialogue: Dialogue, body: bytes) -> None:
    """Write the body. What the server says meanwhile is its refusal: the dot is not sent."""
    wire = dialogue.wire
    try:
        wire.write(body, dialogue.timeouts.command, more=True)
        if not wire.spoke_unasked():
            return
    except WireLost as lost:
        raise _refused_early(dialogue, _last_words(dialogue), lost) from lost
    raise _refused_early(dialogue, dialogue.reply())


def _refused_early(
    dialogue: Dialogue, early: Reply | None, lost: WireLost | None = None
) -> SMTPFailure | WireLost:
    """What the server said before it had the whole message, whose end it does not get."""
    if early is None:
        return lost or WireLost("connection lost")
    dialogue.drop()
    if early.code < 400:
        return WireLost(f"unreadable reply: {early.code} before the final dot")
    return dialogue.failure(Stage.BODY, early)


# -- DATA, back to back --------------------------------------------------------------------------


def back_to_back(
    dialogue: Dialogue,
    sender: str,
    recipient: str,
    data: bytes,
    following: tuple[str, str, bytes] | None,
) -> Answer:
    """Hand the message over by DATA, and with its end the envelope of the one that ``following``
    names (RFC 2920 4 has commands in one group with the final dot); as ``by_data`` of bodies that
    are stuffed. The server must offer PIPELINING.

    After this nothing but ``following`` can be sent; whoever has something else closes. Nothing
    follows on a connection whose answer was no acceptance (what a server may say besides would be
    taken for the next one's), or whose write was cut short.
    """
    message = sender, recipient, data
    if dialogue.announced == message:
        dialogue.announced = None
        _all_at_once(dialogue, b"")
    else:
        dialogue.begin()
        _all_at_once(dialogue, _envelope(dialogue, *message))
    ahead = b""
    if following is not None:
        with contextlib.suppress(SMTPRefusedLocally):  # which it will be told in its own turn
            ahead = _envelope(dialogue, *following)
    wire, stage, is_whole = dialogue.wire, Stage.BODY, True
    try:
        if wire.spoke_unasked():
            raise _refused_early(dialogue, dialogue.reply())
        try:
            wire.write(data + FINAL_DOT + ahead, dialogue.timeouts.command)
        except WireLost as lost:
            if lost.taken < len(data) + len(FINAL_DOT):
                raise _refused_early(dialogue, _last_words(dialogue), lost) from lost
            is_whole = False
        stage = Stage.DOT
        reply = wire.read_reply(dialogue.timeouts.final)
    except WireLost as lost:
        raise dialogue.lost(stage, lost) from lost
    if not is_whole or (ahead and reply.code >= 400):
        dialogue.drop()
    elif ahead and reply.code < 300:
        dialogue.announced = following
    return _end(dialogue, reply)


def _envelope(dialogue: Dialogue, sender: str, recipient: str, data: bytes) -> bytes:
    mail = _mail_command(dialogue, sender, recipient, data)
    return f"{mail}\r\nRCPT TO:<{recipient}>\r\nDATA\r\n".encode()


# -- BDAT ----------------------------------------------------------------------------------------


def by_chunk(
    dialogue: Dialogue, sender: str, recipient: str, data: bytes, *, is_stuffed: bool = False
) -> Answer:
    """Hand the message over by one BDAT, pipelined behind MAIL and RCPT; as ``by_data``."""
    body = unstuffed(data) if is_stuffed else whole_lines(data)
    mail = _mail_command(dialogue, sender, recipient, data)
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
    return _after_chunk(dialogue, left)


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


def _after_chunk(dialogue: Dialogue, steps: tuple[Step, ...]) -> Answer:
    """The replies that are left, after the write of the last bytes has begun. The first that
    refuses is the answer; what is lost or unreadable is doubt, unless the recipient was refused,
    or the sender and (as it must) the recipient with it: then nobody can have got it."""
    end = time.monotonic() + dialogue.timeouts.final
    refused: SMTPFailure | None = None
    is_doubtful = True
    try:
        for step in steps:
            reply = dialogue.wire.read_reply(max(0.0, end - time.monotonic()))
            if reply.code in step.wanted:
                is_doubtful = True
                continue
            if reply.code < 400:
                raise WireLost(f"unreadable reply: {reply.code} to {step.stage.upper()}")
            refused, is_doubtful = refused or dialogue.failure(step.stage, reply), False
            if reply.code == 421:
                raise dialogue.reset_after(refused)
        reply = dialogue.wire.read_reply(max(0.0, end - time.monotonic()))
        if refused is None:
            return _end(dialogue, reply)
        if reply.code < 400 and is_doubtful:
            raise WireLost(f"unreadable reply: {reply.code} after a refusal")
    except WireLost as lost:
        failure = dialogue.lost(Stage.DOT, lost)
        raise failure if refused is None or is_doubtful else refused from lost
    raise dialogue.reset_after(refused)


# -- what both have in common --------------------------------------------------------------------


def _mail_command(dialogue: Dialogue, sender: str, recipient: str, data: bytes) -> str:
    features, parameters = dialogue.features, ""
    if needs_utf8(sender, recipient):
        if "SMTPUTF8" not in features:
            said = "the address needs SMTPUTF8 and the relay does not offer it"
            raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.6.7"))
        parameters += " SMTPUTF8"
    if "8BITMIME" in features and (parameters or not data.isascii()):
        parameters += " BODY=8BITMIME"
    if "SIZE" in features:
        limit = features["SIZE"]
        if limit.isdigit() and 0 < int(limit) < len(data):
            said = f"the message has {len(data)} bytes, the relay takes {limit}"
            raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.3.4"))
        parameters += f" SIZE={len(data)}"
    return f"MAIL FROM:<{sender}>{parameters}"


def _last_words(dialogue: Dialogue) -> Reply | None:
    try:
        return dialogue.wire.read_reply(1.0)
    except WireLost:
        return None


def _end(dialogue: Dialogue, reply: Reply) -> Answer:
    """What the reply to the whole message says. Raises ``SMTPFailure`` unless it is acceptance."""
    if 200 <= reply.code < 300:
        found = _QUEUE_ID.search(reply.text)
        queue_id = (found[1] or found[2]).decode("ascii", "replace") if found else ""
        return answer(Stage.DOT, reply.code, reply.text, message_id=queue_id)
    if reply.code < 400:
        said = f"unreadable reply: {reply.code} after the end of the message"
        raise dialogue.lost(Stage.DOT, said)
    raise dialogue.reset_after(dialogue.failure(Stage.DOT, reply))
