"""procrastinate as a queue: a job for each message, its worker in several processes.

The job renders Django's templates (compiled once) and sends with Django's SMTP backend over a
connection that its thread keeps open; jobs are deleted when they succeed.
"""

from __future__ import annotations

import os
import sys
import threading

from benchmarks.harness import message
from benchmarks.harness.machine import cores
from benchmarks.peers import site

NAME = "procrastinate"
PACKAGE = "procrastinate"
SETTINGS: tuple[site.Setting, ...] = (
    {"processes": cores(), "concurrency": 4, "delete jobs": "successful"},
    {"processes": cores(), "concurrency": 1, "delete jobs": "successful"},
    {"processes": 2 * cores(), "concurrency": 2, "delete jobs": "successful"},
    {"processes": cores(), "concurrency": 4, "delete jobs": "never"},
)
GUARANTEE = (
    "jobs at work stay 'doing' for ever; whoever has them retried sends those again "
    "that were accepted"
)
TASK = "benchmarks.send"

_thread = threading.local()


def set_up(setting: site.Setting) -> None:
    site.configure(["procrastinate.contrib.django"])
    from procrastinate.contrib.django import app

    app.task(name=TASK)(deliver)


def deliver(number: int) -> None:
    from django.core.mail import EmailMultiAlternatives, get_connection

    if not hasattr(_thread, "connection"):
        _thread.connection = get_connection()
        _thread.connection.open()
    subject, text, html = site.rendered(number)
    email = EmailMultiAlternatives(
        subject,
        text,
        message.FROM,
        [message.address(number)],
        connection=_thread.connection,
    )
    email.attach_alternative(html, "text/html")
    email.send()


def fill(count: int) -> None:
    from django.db import connection
    from procrastinate.contrib.django import app

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs CASCADE")
    for first in range(1, count + 1, 1000):
        numbers = range(first, min(first + 1000, count + 1))
        app.configure_task(TASK).batch_defer(*({"number": number} for number in numbers))


def send(setting: site.Setting) -> None:
    """The worker, in as many processes."""
    from django.core.management import call_command

    def work() -> None:
        call_command(
            "procrastinate",
            "worker",
            "--one-shot",
            "--no-listen-notify",
            f"--concurrency={setting['concurrency']}",
            f"--delete-jobs={setting['delete jobs']}",
        )

    children = []
    for _ in range(setting["processes"] - 1):
        child = os.fork()
        if not child:
            work()
            os._exit(0)
        children.append(child)
    work()
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit("a process failed")


def left() -> int:
    from procrastinate.contrib.django.models import ProcrastinateJob

    return ProcrastinateJob.objects.exclude(status="succeeded").count()


if __name__ == "__main__":
    site.main(set_up, fill, send, left)
