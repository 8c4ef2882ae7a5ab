"""Which signal is a second one."""

from __future__ import annotations

import time

import pytest

from sending.stopping import Requests


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
