"""Amazon SES while its library still repeats requests by itself: nothing is sent at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.forks import Forks

SES = "anymail.backends.amazon_ses.EmailBackend"


def test_the_sender_does_not_start_with_them(environ: dict[str, str], forks: Forks) -> None:
    pytest.importorskip("boto3")
    entry: dict[str, Any] = {"BACKEND": SES, "OPTIONS": {"client_params": {"region_name": "x"}}}
    environ["SENDONCE_TRANSPORTS"] = json.dumps({"ses": entry})
    done = forks.manage("run_sender", "--drain", env=environ)
    assert done.returncode == 2
    assert "(sendonce.E006) SENDONCE['TRANSPORTS']['ses']" in done.stderr
    assert "total_max_attempts" in done.stderr
    assert "Traceback" not in done.stderr
    entry["OPTIONS"]["client_params"]["config"] = {"retries": {"total_max_attempts": 1}}
    environ["SENDONCE_TRANSPORTS"] = json.dumps({"ses": entry})
    done = forks.manage("run_sender", "--drain", env=environ)
    assert done.returncode == 0, done.stderr
