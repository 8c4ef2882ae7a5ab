"""django-mailer: ``send_mail`` over pickled messages, one SMTP connection for a process.

Without its lock file several processes share the queue, which its documentation allows on
PostgreSQL; the log keeps no copy of the message; nothing is throttled.
"""

from __future__ import annotations

import os
import sys

from benchmarks.harness import message
from benchmarks.harness.machine import cores
from benchmarks.peers import site

NAME = "django-mailer"
PACKAGE = "django-mailer"
SETTINGS: tuple[site.Setting, ...] = (
    {"processes": cores(), "lock file": False},
    {"processes": 1, "lock file": True},
    {"processes": 2 * cores(), "lock file": False},
)
GUARANTEE = (
    "the message on the wire of each process is sent again; "
    "with the lock file (the default) nothing goes out until somebody removes it"
)


def set_up(setting: site.Setting) -> None:
    site.configure(
        ["mailer"],
        MAILER_USE_FILE_LOCK=setting.get("lock file", False),
        MAILER_LOCK_PATH=os.environ["LOCK_PATH"],
        MAILER_EMAIL_LOG_MESSAGE_DATA=False,
        MAILER_EMAIL_THROTTLE=0,
    )


def fill(count: int) -> None:
    from django.core.mail import EmailMultiAlternatives
    from mailer.models import Message, MessageLog

    Message.objects.all().delete()
    MessageLog.objects.all().delete()
    rows = []
    for number in range(1, count + 1):
        subject, text, html = site.rendered(number)
        email = EmailMultiAlternatives(subject, text, message.FROM, [message.address(number)])
        email.attach_alternative(html, "text/html")
        row = Message()
        row.email = email
        rows.append(row)
    Message.objects.bulk_create(rows, batch_size=1000)


def send(setting: site.Setting) -> None:
    """The command, in as many processes; forked with nothing open, they start together."""
    from django.core.management import call_command

    children = []
    for _ in range(setting["processes"] - 1):
        child = os.fork()
        if not child:
            call_command("send_mail", verbosity=0)
            os._exit(0)
        children.append(child)
    call_command("send_mail", verbosity=0)
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit("a process failed")


def left() -> int:
    from mailer.models import Message

    return Message.objects.count()


if __name__ == "__main__":
    site.main(set_up, fill, send, left)
