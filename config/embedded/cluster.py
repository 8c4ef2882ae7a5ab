"""A PostgreSQL cluster in a directory: found running, or made and started, by whoever comes first.

Everything that changes the cluster's state happens under one file lock beside the directory.
The kernel frees it when its holder dies, at whatever moment; the next one finds a database that
is complete or not there at all (``initdb`` works in a directory of another name), and a server
that runs, starts, ends or left a ``postmaster.pid`` behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from . import binaries, identity, processes, sockets
from .errors import EmbeddedError
from .sockets import PORT, socket_directory

USER = "sendonce"
DATABASE = "sendonce"

#: Longest wait for a start (with crash recovery), an end, or another process that does either.
PATIENCE_S = 180.0
#: How long orphans of a killed server may take to notice before they are told.
ORPHAN_PATIENCE_S = 10.0
#: How long a server in recovery may take before it is stopped all the same.
RECOVERY_PATIENCE_S = 30.0
#: How long an orderly end may take (its checkpoint writes everything) before it is cut short.
ORDERLY_END_S = 30.0
LOG_LIMIT_BYTES = 10_000_000

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}


@dataclass(frozen=True)
class Cluster:
    """The cluster in ``data`` (made absolute); ``settings`` go over the defaults at its start."""

    data: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", Path(self.data).resolve())

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    def url(self, database: str = DATABASE) -> str:
        """A ``DATABASE_URL``, also for libpq, of ``database`` while the server runs."""
        query = urlencode({"host": str(self._socket()), "port": PORT}, quote_via=quote)
        return f"postgresql://{USER}@/{quote(database, safe='')}?{query}"

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection in autocommit mode; raises ``psycopg.OperationalError``."""
        return psycopg.connect(
            host=str(self._socket()),
            port=PORT,
            user=USER,
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )

    def ensure(self) -> Path:
        """Return the socket directory of a server that answers a query, started if need be.

        Raises ``EmbeddedError`` when there can be none.
        """
        with self._locked():
            identity.refuse_foreign(self.data)
            if not self._is_initialised():
                self._initialise()
            deadline = time.monotonic() + PATIENCE_S
            while not self._answers():
                if time.monotonic() > deadline:
                    raise EmbeddedError(f"{self.data}: no answer; see {self.log}")
                if self._server() is None:
                    self._start(deadline)
                else:
                    time.sleep(0.05)
            self._create_database()
            return self._socket()

    def stop(self) -> bool:
        """Disconnect everybody, write everything, end the server; whether there was one.

        A server that does not end in order is ended at once, and recovers at its next start;
        what was committed durably is there. Raises ``EmbeddedError`` when it does not end at all.
        """
        if not self.data.is_dir():
            return False
        with self._locked():
            pid = self._server()
            if pid is None:
                return False

            def ended() -> bool:
                return not processes.belongs(pid, self.data)

            # PostgreSQL 18 never ends when it is told to in the middle of a crash recovery: the
            # start-up process is done, and the postmaster waits for others it has not told.
            _within(RECOVERY_PATIENCE_S, lambda: not self._recovers())
            _tell(pid, signal.SIGINT)
            if not _within(ORDERLY_END_S, ended):
                _tell(pid, signal.SIGQUIT)
            self._wait(ended, "the server does not end")
            return True

    def destroy(self) -> None:
        """``stop``, then remove the cluster and all it holds."""
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)
        if socket_directory(self.data) != self.data:
            shutil.rmtree(socket_directory(self.data), ignore_errors=True)

    def server(self) -> int | None:
        """The process id of the running server, if any; it may not answer yet."""
        return self._server()

    # -- finding --------------------------------------------------------------------------

    @property
    def _lock_file(self) -> Path:
        return self.data.with_name(f"{self.data.name}.lock")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.data.parent.mkdir(parents=True, exist_ok=True)
            # Not inherited by programs (PEP 446): a server would hold the lock for its life.
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
            if os.geteuid() == 0:
                # Root may have come first to a checkout that is somebody else's.
                folder = self.data.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        except OSError as error:
            raise EmbeddedError(f"{self._lock_file}: {error.strerror}") from error
        try:
            self._wait(lambda: _try_lock(descriptor), "another process holds the lock")
            yield
        except OSError as error:
            # A full disk, a closed folder: said like every other reason.
            raise EmbeddedError(f"{error.filename or self.data}: {error.strerror}") from error
        finally:
            # Said aloud, as a forked child of another thread may have a copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _wait(self, condition: Callable[[], bool], complaint: str) -> None:
        if not _within(PATIENCE_S, condition):
            raise EmbeddedError(f"{self.data}: {complaint} ({PATIENCE_S:.0f} s)")

    def _is_initialised(self) -> bool:
        return (self.data / "PG_VERSION").exists()

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text(errors="replace").splitlines()
        except OSError:
            return []

    def _server(self) -> int | None:
        pid = _first_pid(self._pid_file_lines())
        return pid if pid is not None and processes.belongs(pid, self.data) else None

    def _socket(self) -> Path:
        """The running server's word (line 5 of its pid file): TMPDIR may differ between us."""
        lines = self._pid_file_lines()
        return Path(lines[4]) if len(lines) > 4 and lines[4] else socket_directory(self.data)

    def _answers(self) -> bool:
        try:
            with self.connect() as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError as error:
            # A server that is full is a server.
            return "too many clients" in str(error)
        return True

    def _recovers(self) -> bool:
        """Whether somebody is there who does not let us in: starting, or getting over a crash.
        A server whose socket is gone will never answer."""
        try:
            self.connect().close()
        except psycopg.OperationalError as error:
            said = str(error)
            return not any(w in said for w in ("No such file", "refused", "too many clients"))
        return False

    # -- making ---------------------------------------------------------------------------

    def _initialise(self) -> None:
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedError(f"{self.data} is not empty and holds no database: move it away.")
        for left in self.data.parent.glob(f"{self.data.name}.init-*"):
            # Whoever made it died, but its initdb may still be at work.
            self._end(left)
            shutil.rmtree(left, ignore_errors=True)
        tools = binaries.choose(None)
        making = Path(tempfile.mkdtemp(prefix=f"{self.data.name}.init-", dir=self.data.parent))
        try:
            owner = identity.choose(making, tools.program("initdb"))
            outcome = owner.run(
                making,
                [tools.program("initdb"), "-D", str(making), *_initdb_options(tools.major)],
                timeout=PATIENCE_S,
            )
            if outcome.status != 0:
                raise EmbeddedError(f"initdb failed: {outcome.last_line}")
            os.rename(making, self.data)
            _sync_directory(self.data.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _end(self, left: Path) -> None:
        def ended() -> bool:
            makers = processes.members(left, processes.MAKERS)
            for pid in makers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not makers

        self._wait(ended, "an abandoned initdb does not end")

    def _start(self, deadline: float) -> None:
        tools = binaries.choose(int((self.data / "PG_VERSION").read_text()))
        self._outlive_orphans()
        self._remove_stale_pid_files()
        owner = identity.choose(self.data, tools.program("postgres"))
        sockets.prepare(self.data, owner)
        self._rotate_log()
        outcome = owner.run(self.data, self._start_command(tools), timeout=PATIENCE_S)
        if outcome.status == 0 or self._server() is not None:
            return
        said = self._last_words()
        if "shared memory block" in said and time.monotonic() < deadline:
            # A process of the killed server that /proc did not show still has its memory.
            time.sleep(0.2)
            return
        raise EmbeddedError(f"the embedded PostgreSQL does not start: {said or outcome.last_line}")

    def _start_command(self, tools: binaries.Binaries) -> list[str]:
        quoted = str(socket_directory(self.data)).replace('"', '""')
        settings = {
            **SETTINGS,
            "unix_socket_directories": f'"{quoted}"',
            "port": str(PORT),
            **self.settings,
        }
        options = " ".join(
            f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items()
        )
        return [
            tools.program("pg_ctl"),
            # Run in the data directory: pg_ctl puts these into a shell's double quotes, where a
            # path could mean anything.
            *("-D", ".", "-l", self.log.name, "-o", options),
            *("-w", "-t", f"{PATIENCE_S - 30:.0f}", "start"),
        ]

    def _outlive_orphans(self) -> None:
        """Wait for what a killed server left: it still writes into the shared memory."""
        told = time.monotonic() + ORPHAN_PATIENCE_S

        def gone() -> bool:
            orphans = processes.members(self.data)
            if time.monotonic() > told:
                for pid in orphans:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
            return not orphans

        self._wait(gone, "processes of a killed server do not end")

    def _remove_stale_pid_files(self) -> None:
        """PostgreSQL heeds a pid file whose process lives, whatever that process now is.

        Called when no server of this directory runs. A file with a dead process stays: the
        server reads in it which shared memory must be free, and replaces it.
        """
        socket_lock = socket_directory(self.data) / f".s.PGSQL.{PORT}.lock"
        for file in (self.data / "postmaster.pid", socket_lock):
            try:
                pid = _first_pid(file.read_text(errors="replace").splitlines())
            except OSError:
                continue
            if pid is None or processes.is_alive(pid):
                file.unlink(missing_ok=True)

    def _rotate_log(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_LIMIT_BYTES:
                self.log.replace(self.log.with_suffix(".log.1"))

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        fatal = [line.partition("FATAL:")[2].strip() for line in lines if "FATAL:" in line]
        return fatal[-1] if fatal else ""

    def _create_database(self) -> None:
        with self.connect() as connection:
            found = connection.execute(
                "SELECT FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _initdb_options(major: int) -> list[str]:
    options = [f"--username={USER}", "--encoding=UTF8", "--no-locale"]
    if major >= 17:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # Who can open the socket is who can read the data files: the directory decides, not a
    # password that would have to lie beside them.
    return [*options, "--auth-local=trust", "--auth-host=reject"]


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _tell(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _first_pid(lines: list[str]) -> int | None:
    # A stand-alone backend writes its id negated.
    try:
        return abs(int(lines[0])) or None
    except (IndexError, ValueError):
        return None


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
