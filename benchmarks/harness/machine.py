"""What a figure was measured on and with; nothing that names the machine or its owner."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

from . import sink

GIB = 1 << 30


def describe() -> dict[str, str]:
    """Name of a fact and the fact, in the order to show them."""
    return {
        "cores": str(cores()),
        "processor": _processor(),
        "memory": f"{_memory() / GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "Django": importlib.metadata.version("django"),
        "psycopg": importlib.metadata.version("psycopg"),
        "Postfix (smtp-sink, smtp-source)": _postfix(),
    }


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float:
    """How many processes wanted to run lately, over a minute: whether others were at work."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _postfix() -> str:
    tool = sink.find("postconf")
    if tool is None:
        return "unknown" if sink.find("smtp-sink") else "not installed"
    said = subprocess.run(
        [tool, "-d", "mail_version"], capture_output=True, text=True, timeout=10, check=False
    )
    return said.stdout.rpartition("=")[2].strip() or "unknown"
