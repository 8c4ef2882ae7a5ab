"""Four processes that race for the tokens of one bucket: never too many, nearly all."""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_right

from tests.conftest import ROOT

SECONDS = 4.0


def _race(environ: dict[str, str], count: int = 4) -> list[tuple[str, float]]:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.permits", str(SECONDS)],
            cwd=ROOT,
            env={**environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    taken: list[tuple[str, float]] = []
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        found = json.loads(out)
        taken += [(domain, at) for domain, at in found]
    return sorted(taken, key=lambda pair: pair[1])


def _most(times: list[float], window: float) -> int:
    """The most permits in any window of so many seconds."""
    return max(bisect_right(times, start + window) - n for n, start in enumerate(times))


def _check(times: list[float], rate: float) -> None:
    for window in (1.0, 1.5, 2.0, 3.0, SECONDS):
        assert _most(times, window) <= rate * window * 1.05 + 1, f"in {window} s"
    used = (len(times) - 1) / (times[-1] - times[0])
    assert used >= 0.9 * rate, f"{used} of {rate} a second"


def test_one_bucket(environ: dict[str, str]) -> None:
    rate = 200.0
    transports = {"default": {"BACKEND": "sending.smtp.EmailBackend", "RATE": rate}}
    taken = _race({**environ, "SENDONCE_TRANSPORTS": json.dumps(transports)})
    _check([at for _, at in taken], rate)


def test_two_buckets_at_once(environ: dict[str, str]) -> None:
    """A domain's limit within the transport's: neither is exceeded, and what the one refuses
    costs the other nothing."""
    transports = {"default": {"BACKEND": "sending.smtp.EmailBackend", "RATE": 60.0}}
    domains = {"one.example.org": 20.0}
    taken = _race(
        {
            **environ,
            "SENDONCE_TRANSPORTS": json.dumps(transports),
            "SENDONCE_DOMAIN_RATES": json.dumps(domains),
        }
    )
    _check([at for _, at in taken], 60.0)
    _check([at for domain, at in taken if domain == "one.example.org"], 20.0)
