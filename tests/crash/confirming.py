"""A web process that queues a confirmation and is killed: ``python -m tests.crash.confirming KEY
ACCOUNT WHEN``, where WHEN is ``before_commit``, ``after_commit`` or ``never``."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta


def main(key: str, account_id: int, when: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.db import transaction
    from django.utils import timezone

    from subscribers import hooks
    from subscribers.models import Account

    def killed(at: str) -> None:
        if when == at:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

    with transaction.atomic():
        hooks.send_message(
            hooks.Message(
                account=Account.objects.get(pk=account_id),
                kind="confirm",
                key=key,
                to=f"{key}@example.org",
                subject="Please confirm: {{ account.name }}",
                text="Hello,\n\n{{ confirm_url }}\n",
                html='<p><a href="{{ confirm_url }}">Yes</a></p>',
                context={"confirm_url": f"https://www.example.org/l/{key}"},
                expires=timezone.now() + timedelta(hours=1),
            )
        )
        killed("before_commit")
    killed("after_commit")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
