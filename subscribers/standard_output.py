"""Output whose reader may go away: ``head``, a closed pager."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def while_it_is_read(output: Any) -> Iterator[None]:
    """Writing to ``output`` (a file, or a command's wrapper of one) ends without an error when its
    reader has seen enough; what is written to it later goes nowhere."""
    try:
        yield
        output.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
