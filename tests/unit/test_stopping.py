"""Which signal is a second one, and the last words then."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

import pytest

from sending.stopping import Requests
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([7.0], []),
        ([7.0, 7.0, 7.2, 8.0], []),
        ([7.0, 8.1], [8.1]),
        ([7.0, 7.9, 8.8, 9.7], [8.8, 9.7]),  # counted from the first: repeating helps
    ],
)
def test_what_comes_with_the_first_is_the_same_request(
    times: list[float], seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests()
    assert not requests
    found = []
    for now in times:
        monkeypatch.setattr(time, "monotonic", lambda now=now: now)
        if requests.is_second():
            found.append(now)
        assert requests
    assert found == seconds


@pytest.mark.parametrize("is_read", [True, False])
def test_the_last_words_wait_for_no_reader(is_read: bool) -> None:
    """A log that nobody reads any more, and a pipe that is full, keep no process from ending."""
    reading, writing = os.pipe()
    with open(reading, "rb") as read, open(writing, "wb", buffering=0) as log:
        if not is_read:
            os.set_blocking(writing, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(writing, b"x" * 65536):
                    pass
            os.set_blocking(writing, True)
        code = (
            "from sending.stopping import end_at_once; end_at_once(143, 'e', 'the end', signal=15)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, stderr=log, stdin=subprocess.DEVNULL, timeout=60
        )
        log.close()
        said = read.read()
    assert done.returncode == 128 + 15
    assert said.count(b'ERROR e signal=15 "the end"') == is_read
