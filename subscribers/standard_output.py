"""Standard output whose reader may go away: ``head``, a closed pager."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def while_it_is_read() -> Iterator[None]:
    """Writing to standard output ends without an error when the reader has seen enough; what is
    written later goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
