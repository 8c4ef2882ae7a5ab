"""Output whose reader may go away: ``head``, a closed pager."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError


@contextlib.contextmanager
def while_it_is_read(output: Any) -> Iterator[None]:
    """Writing to ``output`` (a file, or a command's wrapper of one) ends without an error when its
    reader has seen enough; what is written to it later goes nowhere. Raises ``CommandError`` where
    it can't be written, as on a full disk."""
    try:
        yield
        output.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        said = f"The output can't be written: {error.strerror}."
        raise CommandError(said, returncode=2) from error
