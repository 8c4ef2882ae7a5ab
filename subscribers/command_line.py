"""What the commands of this app share: who runs them, whose account, and where files go."""

from __future__ import annotations

import getpass
import io
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from django.core.management.base import CommandError

from .models import Account

#: Refused: nothing was changed, nothing was written.
REFUSED = 2


class Terminated(KeyboardInterrupt):
    """SIGTERM for the second time: end as ctrl-c does."""


@contextmanager
def terminable() -> Iterator[Callable[[], bool]]:
    """Yields "was SIGTERM received?", for the length of the block (in the main thread): work is to
    be ended where it is whole. A second one raises ``Terminated``."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            raise Terminated

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGTERM, before)


def who() -> str:
    """The operating system's user, for the record."""
    try:
        # The variables that it looks into may hold anything.
        name = getpass.getuser().encode("utf-8", "replace").decode()[:100]
    except (OSError, KeyError, ImportError):  # no such user; before Python 3.13 the last two
        name = ""
    return f"{name} (command line)" if name else "command line"


def account_named(slug: str) -> Account:
    """Raises ``CommandError``."""
    account = Account.objects.filter(slug=slug).first()
    if account is None:
        raise CommandError(f"There is no account {slug!r}.", returncode=REFUSED)
    return account


def write_private(path: Path, pieces: Iterable[str]) -> None:
    """Write a file as a whole or not at all, readable by its owner alone: it holds addresses.

    Raises ``CommandError``.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as target:
                for piece in pieces:
                    target.write(piece)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(
            f"{path} can't be written: {error.strerror}.", returncode=REFUSED
        ) from error


def write_out(pieces: Iterable[str]) -> None:
    """Write to standard output, as UTF-8 with line ends as they are; a reader that has seen enough
    (``head``, a closed pager) ends it quietly."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
