"""For commands that only look: they do so also where the settings keep senders from starting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, SystemCheckError

from subscribers.standard_output import while_it_is_read


class LookingCommand(BaseCommand):
    """Tells on stderr what the checks refuse, and goes on: that is when staff want to look."""

    def check(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().check(*args, **kwargs)
        except SystemCheckError as error:
            self.stderr.write(str(error))

    def show(self, lines: Iterable[str]) -> None:
        """Print them, as far as somebody reads: what the command found out stays its exit code."""
        if getattr(self.stdout, "_out", self.stdout) is None:  # a shell has closed it
            return
        with while_it_is_read(self.stdout):
            for line in lines:
                self.stdout.write(line)
