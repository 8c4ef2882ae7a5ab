"""For commands that only look: they do so also where the settings keep senders from starting."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, SystemCheckError


class LookingCommand(BaseCommand):
    """Tells on stderr what the checks refuse, and goes on: that is when staff want to look."""

    def check(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().check(*args, **kwargs)
        except SystemCheckError as error:
            self.stderr.write(str(error))
