"""Options that all benchmarks have."""

from __future__ import annotations

import argparse
import functools
import math
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import timing


def parser(doc: str | None) -> argparse.ArgumentParser:
    # Its first paragraph.
    made = argparse.ArgumentParser(description=" ".join((doc or "").split("\n\n")[0].split()))
    made.add_argument("--quick", action="store_true", help="small numbers: does it run at all?")
    made.add_argument("--figures", metavar="FILE", help="also write the figures there, as JSON")
    return made


def parse(
    made: argparse.ArgumentParser, arguments: Sequence[str] | None = None, /, **quick: Any
) -> argparse.Namespace:
    """The options of the command line, or of ``arguments``; with ``--quick``, ``quick`` are the
    defaults of those that were not given."""
    if made.parse_known_args(arguments)[0].quick:
        made.set_defaults(**quick)
    options = made.parse_args(arguments)
    if options.figures:
        from . import figures

        figures.write_to(Path(options.figures))
    return options


def count(text: str) -> int:
    """A number of things, 1 at least: argparse's ``type``."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number


def duration(text: str) -> float:
    """Seconds or minutes above 0: argparse's ``type``."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


@functools.cache
def knows(command: str, option: str) -> bool:
    """Whether a management command has an option."""
    said = subprocess.run(
        timing.manage(command, "--help"), capture_output=True, text=True, check=True, timeout=60
    )
    return option in said.stdout
