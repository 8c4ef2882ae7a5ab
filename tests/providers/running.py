"""Starting the providers as a process, and the settings that lead anymail to them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from sending.sink.record import read_record
from tests.conftest import ROOT

from .server import SECRET


class ProviderServer:
    """A process of ``tests.providers.server`` and what it recorded. A context manager."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.record, self.wire = folder / "accepted.jsonl", folder / "wire.jsonl"
        self.switch = folder / "faults.json"
        self.arguments = arguments
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.providers.server", "--port", str(self.port)]
        files = ["--record", self.record, "--wire", self.wire, "--switch", self.switch]
        self.process = subprocess.Popen(
            [*command, *map(str, files), *self.arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().strip().rpartition(":")[2])

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def __enter__(self) -> ProviderServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def fail(self, **percent: float) -> None:
        """From now on so many per cent of the recipients meet these faults."""
        draft = self.switch.with_suffix(".new")
        draft.write_text(json.dumps(percent))
        draft.rename(self.switch)

    def accepted(self, recipient: str | None = None) -> list[dict[str, Any]]:
        return [e for e in read_record(self.record) if recipient in (None, e["recipient"])]

    def wait_for(self, count: int, seconds: float = 60) -> None:
        """Wait until so many were accepted; a bound that only a fault reaches."""
        end = time.monotonic() + seconds
        while len(self.accepted()) < count:
            assert time.monotonic() < end, f"waited {seconds} s for {count} accepted"
            time.sleep(0.02)

    def requests(self, recipient: str) -> list[dict[str, Any]]:
        """All requests that were about this recipient; its address must be in the body."""
        return [e for e in read_record(self.wire) if recipient in e["content"]]

    def url(self, provider: str) -> str:
        return f"http://127.0.0.1:{self.port}/{provider}/"


def backend(provider: str) -> str:
    return f"anymail.backends.{provider}.EmailBackend"


def options(provider: str, url: str, **more: Any) -> dict[str, Any]:
    """``OPTIONS`` of a transport to this provider at ``url``."""
    if provider == "amazon_ses":
        config = {"retries": {"total_max_attempts": 1}, **more}
        return {
            "session_params": {
                "aws_access_key_id": SECRET,
                "aws_secret_access_key": "x",
                "region_name": "eu-west-1",
            },
            "client_params": {"endpoint_url": url.rstrip("/"), "config": config},
        }
    if provider == "mailjet":
        return {"api_key": "x", "secret_key": SECRET, "api_url": url, **more}
    if provider == "postmark":
        return {"server_token": SECRET, "api_url": url, **more}
    if provider == "mailersend":
        return {"api_token": SECRET, "api_url": url, **more}
    return {"api_key": SECRET, "api_url": url, **more}
