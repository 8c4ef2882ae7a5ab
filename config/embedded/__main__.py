"""``python -m config.embedded start|stop|status|url [DIRECTORY]``: the server by hand.

DIRECTORY is the cluster's; without it, the project's ``var/postgres``. Exit status 0: done, or
``status`` found a server; 1: it could not be done, or there is none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import psycopg

from .cluster import Cluster
from .errors import EmbeddedError

DEFAULT = Path(__file__).resolve().parents[2] / "var" / "postgres"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m config.embedded")
    parser.add_argument("action", choices=["start", "stop", "status", "url"])
    parser.add_argument("directory", nargs="?", type=Path, default=DEFAULT)
    arguments = parser.parse_args()
    cluster = Cluster(arguments.directory)
    try:
        return _act(arguments.action, cluster)
    except (EmbeddedError, psycopg.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _act(action: str, cluster: Cluster) -> int:
    if action == "stop":
        print("stopped" if cluster.stop() else "not running")
        return 0
    if action in {"start", "url"}:
        cluster.ensure()
    if action == "url":
        print(cluster.url())
        return 0
    pid = cluster.server()
    print("not running" if pid is None else f"running as process {pid} in {cluster.data}")
    return 1 if pid is None else 0


if __name__ == "__main__":
    sys.exit(main())
