"""Who takes part: ``smtp-source`` as the ceiling, Sendonce, and the peers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg

from config.embedded.cluster import DATABASE, Cluster

from . import cluster, environments, timing
from .contest import one_round
from .sink import Sink, source_command
from .timing import Failed, Took

PEERS = ("post_office", "mailer", "nuntius", "procrastinate")
CEILING = "smtp-source"
SENDONCE = "Sendonce"
#: Seconds that a peer's round may take, of which a few are meant.
PEER_PATIENCE_S = 120.0
#: A copy of the database from before the build.
UNBUILT = "unbuilt"


@dataclass
class Ceiling:
    """What can go into the sink at all, of bytes that are ready."""

    sink: Sink
    messages: int
    name: str = CEILING
    _sent: bool = False

    def prepare(self) -> None:
        self._sent = False

    def drain(self) -> Took:
        if self._sent:
            return Took(0.0, 0.0)
        self._sent = True
        return timing.run([source_command(self.sink.port, self.messages)])

    def check(self) -> None:
        return None


@dataclass
class Sendonce:
    """``run_sender --drain`` on a fresh copy of a database with one approved campaign, whose rows
    are built as a peer's queue is filled, or (``builds``) are built meanwhile."""

    server: Cluster
    sink: Sink
    campaign_id: int
    messages: int
    options: list[str]
    name: str = SENDONCE
    #: Options of its SMTP backend, as ``EMAIL_URL`` has them.
    relay_options: str = ""
    builds: bool = False
    _database: str = "drained"

    def prepare(self) -> None:
        cluster.drop(self.server, self._database)
        cluster.copy(self.server, UNBUILT if self.builds else DATABASE, self._database)

    def drain(self) -> Took:
        return timing.run([self.command()], self.environ())

    def command(self) -> list[str]:
        return timing.manage(
            *("run_sender", "--drain", "--no-progress", "--verbosity", "0"),
            *("--campaign", str(self.campaign_id), *self.options),
        )

    def check(self) -> float:
        """The ledger's identity, and that everybody was sent it; the span is the database's, from
        the first hand-over, or from the start of the campaign that is built meanwhile."""
        timing.run([timing.manage("ledger", "--campaign", str(self.campaign_id))], self.environ())
        with psycopg.connect(self.server.url(self._database)) as connection:
            found = connection.execute(
                "SELECT count(*), extract(epoch FROM max(s.sent_at) "
                "- CASE WHEN %(builds)s THEN min(c.started_at) ELSE min(s.handed_at) END) "
                "FROM sendonce_sending_send s JOIN sendonce_campaigns_campaign c "
                "ON c.id = s.campaign_id WHERE c.id = %(campaign)s AND s.status = 'sent'",
                {"campaign": self.campaign_id, "builds": self.builds},
            ).fetchone()
        assert found is not None
        if found[0] != self.messages:
            raise Failed(f"{found[0]} of {self.messages} were sent")
        return float(found[1])

    def environ(self) -> dict[str, str]:
        email_url = self.sink.email_url + (self.relay_options and f"?{self.relay_options}")
        return cluster.environ(self.server.url(self._database), email_url)

    def setting(self) -> str:
        meanwhile = "and its build" if self.builds else ""
        return " ".join(filter(None, [*self.options, self.relay_options, meanwhile]))


@dataclass
class Peer:
    """A module of ``benchmarks.peers``, run by the Python of its environment."""

    module: ModuleType
    python: Path
    server: Cluster
    sink: Sink
    messages: int
    setting: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.module.NAME)

    @property
    def version(self) -> str:
        return environments.version_of(self.module.PACKAGE, self.python)

    def prepare(self) -> None:
        timing.run([self._command("fill", str(self.messages))], self._environ())
        cluster.checkpoint(self.server)

    def drain(self) -> Took:
        command = self._command("send", json.dumps(self.setting))
        return timing.run([command], self._environ(), PEER_PATIENCE_S)

    def check(self) -> None:
        said = subprocess.run(
            self._command("left"),
            cwd=timing.ROOT,
            env=self._environ(),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.split()
        if said != ["0"]:
            raise Failed(f"{self.name}: {' '.join(said)} were not sent")

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", self.module.__name__, *arguments]

    def _environ(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYTHONWARNINGS": "ignore",
            "DATABASE_URL": self.server.url(self._database()),
            "SINK_PORT": str(self.sink.port),
            # With the cluster's folder it goes, whatever happens to its holder.
            "LOCK_PATH": str(self.server.data.with_name(f"{self._database()}-lock")),
        }

    def _database(self) -> str:
        return self.module.__name__.rpartition(".")[2]


def find_peer(name: str, server: Cluster, sink: Sink, messages: int) -> Peer:
    """The peer with its environment, an empty database and its first setting.

    Raises ``environments.Unavailable``.
    """
    module = importlib.import_module(f"benchmarks.peers.{name}")
    python = environments.python_for(name, environments.least_python(name))
    cluster.create(server, name)
    return Peer(module, python, server, sink, messages, module.SETTINGS[0])


def put_at_its_best(
    peer: Peer, trial: int, seconds: float, most: int, say: Callable[[str], None]
) -> None:
    """Give the peer the fastest of its settings, each tried with ``trial`` messages, and as many
    messages as take it about so many seconds, ``most`` at most."""
    rates = []
    peer.messages = trial
    for setting in peer.module.SETTINGS:
        peer.setting = setting
        try:
            rates.append(one_round(peer, peer.sink.bytes_read).rate)
        except Failed as error:
            rates.append(0.0)
            say(f"trial: {peer.name}: {error}")
            continue
        say(f"trial: {peer.name:24} {rates[-1]:7.0f}/s  {told(setting)}")
    fastest = rates.index(max(rates))
    peer.setting = peer.module.SETTINGS[fastest]
    peer.messages = int(min(max(rates[fastest] * seconds, trial), most))


def told(setting: Mapping[str, Any]) -> str:
    """A setting in words: ``processes 2, threads 1``."""
    return ", ".join(f"{name} {value}".lower() for name, value in setting.items())
