"""Four processes that race for the tokens of one bucket: never too many, nearly all."""

from __future__ import annotations

import json
from bisect import bisect_right
from pathlib import Path

from tests.crash.conftest import wait_until
from tests.forks import Forks

SECONDS = 4.0


def _race(
    environ: dict[str, str], forks: Forks, folder: Path, count: int = 4
) -> list[tuple[str, float]]:
    env = {**environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    go, errors = folder / "go", folder / "errors"
    outs = [folder / f"out-{number}" for number in range(count)]
    command = ["-m", "tests.crash.permits", str(SECONDS), str(go)]
    running = [forks.start(command, env=env, out=out, err=errors) for out in outs]
    for out in outs:
        wait_until(lambda out=out: out.exists() and "ready" in out.read_text(), "all ready")  # type: ignore[misc]
    go.touch()
    taken: list[tuple[str, float]] = []
    for process, out in zip(running, outs, strict=True):
        assert process.wait(60) == 0, errors.read_text()
        _, found = out.read_text().splitlines()
        taken += [(domain, at) for domain, at in json.loads(found)]
    return sorted(taken, key=lambda pair: pair[1])


def _most(times: list[float], window: float) -> int:
    """The most permits in any window of so many seconds."""
    return max(bisect_right(times, start + window) - n for n, start in enumerate(times))


def _check(times: list[float], rate: float) -> None:
    for window in (1.0, 1.5, 2.0, 3.0, SECONDS):
        assert _most(times, window) <= rate * window * 1.05 + 1, f"in {window} s"
    used = (len(times) - 1) / (times[-1] - times[0])
    assert used >= 0.9 * rate, f"{used} of {rate} a second"


def test_one_bucket(environ: dict[str, str], forks: Forks, tmp_path: Path) -> None:
    rate = 200.0
    transports = {"default": {"BACKEND": "sending.smtp.EmailBackend", "RATE": rate}}
    taken = _race({**environ, "SENDONCE_TRANSPORTS": json.dumps(transports)}, forks, tmp_path)
    _check([at for _, at in taken], rate)


def test_two_buckets_at_once(environ: dict[str, str], forks: Forks, tmp_path: Path) -> None:
    """A domain's limit within the transport's: neither is exceeded, and what the one refuses
    costs the other nothing."""
    transports = {"default": {"BACKEND": "sending.smtp.EmailBackend", "RATE": 60.0}}
    domains = {"one.example.org": 20.0}
    taken = _race(
        {
            **environ,
            "SENDONCE_TRANSPORTS": json.dumps(transports),
            "SENDONCE_DOMAIN_RATES": json.dumps(domains),
        },
        forks,
        tmp_path,
    )
    _check([at for _, at in taken], 60.0)
    _check([at for domain, at in taken if domain == "one.example.org"], 20.0)
