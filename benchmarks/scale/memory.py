"""The most memory that a sender has had in use, by Linux's own account."""

from __future__ import annotations

import time
from pathlib import Path

from ..harness import cluster, timing
from ..harness.timing import Failed
from .ledger_table import SEND, execute

PATIENCE_S = 300.0


def peak(database_url: str, email_url: str, campaign_id: int, messages: int) -> int:
    """Bytes of ``run_sender`` and its children at their most, when so many messages of the
    campaign were sent; it builds the campaign meanwhile. Raises ``timing.Failed``."""
    command = timing.manage(
        "run_sender", "--no-progress", "--verbosity", "0", "--campaign", str(campaign_id)
    )
    deadline = time.monotonic() + PATIENCE_S
    with timing.started(command, cluster.environ(database_url, email_url)) as process:
        while _sent(campaign_id) < messages:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"campaign {campaign_id}: not sent in {PATIENCE_S:.0f} s")
            time.sleep(0.1)
        return sum(_high_water(pid) for pid in _family(process.pid))


def _sent(campaign_id: int) -> int:
    ((count,),) = execute(
        f"SELECT count(*) FROM {SEND} WHERE campaign_id = %s AND status = 'sent'", [campaign_id]
    )
    return int(count)


def _family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += _family(int(child))
    return found


def _high_water(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Failed(f"no VmHWM of process {pid}")
