"""The embedded PostgreSQL: first starts at once, deaths of starters and of the server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from config import embedded
from config.embedded import binaries, identity, processes
from config.embedded.cluster import Cluster
from config.embedded.errors import EmbeddedError
from config.embedded.sockets import PORT, socket_directory

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60


def embedded_command(action: str, cluster: Cluster) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "config.embedded", action, str(cluster.data)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def server_of(cluster: Cluster) -> int:
    pid = cluster.server()
    assert pid is not None
    return pid


def ask(cluster: Cluster, query: str = "SELECT 42") -> object:
    cluster.ensure()
    with cluster.connect() as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
def made_before(cluster: Cluster, migrated_data: Path) -> None:
    """The test's ``cluster`` has its files and is not started: ``initdb`` takes seconds, and is no
    part of what comes later."""
    subprocess.run(["cp", "-a", str(migrated_data), str(cluster.data)], check=True)


@pytest.fixture
def handler(cluster: Cluster, django_db_blocker: DjangoDbBlocker) -> Iterator[ConnectionHandler]:
    handler = ConnectionHandler({"default": embedded.database_settings(cluster.data)})
    with django_db_blocker.unblock():
        yield handler
        handler.close_all()


@pytest.fixture
def stranger() -> Iterator[int]:
    """The process id of a living process that is no PostgreSQL."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def test_nothing_is_started_before_the_first_connection(
    cluster: Cluster, handler: ConnectionHandler
) -> None:
    assert handler["default"].vendor == "postgresql"
    assert not cluster.data.exists()
    with handler["default"].cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("sendonce",)


def test_six_processes_that_start_together_share_one_server(cluster: Cluster) -> None:
    starters = [embedded_command("start", cluster) for _ in range(6)]
    said = {starter.communicate(timeout=PATIENCE_S) for starter in starters}
    assert [starter.returncode for starter in starters] == [0] * 6
    assert said == {(f"running as process {server_of(cluster)} in {cluster.data}\n", "")}


def test_the_server_is_durable_private_and_reachable_by_url(cluster: Cluster) -> None:
    cluster.ensure()
    with psycopg.connect(cluster.url()) as connection:
        shown = {
            name: connection.execute(f"SHOW {name}").fetchone()
            for name in (
                *("fsync", "full_page_writes", "synchronous_commit", "listen_addresses"),
                *("server_encoding", "timezone", "max_connections"),
            )
        }
    assert shown == {
        "fsync": ("on",),
        "full_page_writes": ("on",),
        "synchronous_commit": ("on",),
        "listen_addresses": ("",),
        "server_encoding": ("UTF8",),
        "timezone": ("UTC",),
        "max_connections": ("200",),
    }
    assert cluster.data.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("made_before")
def test_it_outlives_its_starter_and_holds_nothing_of_it(cluster: Cluster) -> None:
    starter = embedded_command("start", cluster)
    # Ends only when nobody holds the pipes any more: a server that did would hang us here.
    starter.communicate(timeout=PATIENCE_S)
    pid = server_of(cluster)
    assert os.getsid(pid) not in {os.getsid(0), starter.pid}
    if processes.HAVE_PROC:
        opened = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        assert str(cluster.data.with_name("postgres.lock")) not in opened
    # The lock is free, too.
    assert ask(cluster) == 42


@pytest.mark.parametrize("moment", ["initdb has begun", "the server has begun"])
def test_a_starter_killed_midway_leaves_nothing_in_the_way(cluster: Cluster, moment: str) -> None:
    begun = {
        "initdb has begun": lambda: any(cluster.data.parent.glob("postgres.init-*/base")),
        "the server has begun": lambda: (cluster.data / "postmaster.pid").exists(),
    }[moment]
    starter = embedded_command("start", cluster)
    wait_until(begun)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert ask(cluster) == 42
    assert list(cluster.data.parent.glob("postgres.init-*")) == []


@pytest.mark.usefixtures("made_before")
def test_a_killed_server_comes_back_with_everything_committed(
    cluster: Cluster, handler: ConnectionHandler
) -> None:
    wrapper = handler["default"]
    with wrapper.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (n int)")
        cursor.execute("INSERT INTO kept VALUES (7)")
    killed = server_of(cluster)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not processes.members(cluster.data))
    with pytest.raises(OperationalError), wrapper.cursor() as cursor:
        cursor.execute("SELECT n FROM kept")
    wrapper.close()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT n FROM kept")
        assert cursor.fetchone() == (7,)
    assert server_of(cluster) != killed


@pytest.mark.usefixtures("made_before")
def test_a_server_that_recovers_from_the_crash_of_a_backend_is_stopped(cluster: Cluster) -> None:
    # Told to end at this moment, PostgreSQL 18 never does.
    for _ in range(3):
        cluster.ensure()
        with cluster.connect() as victim, cluster.connect() as witness:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    witness.execute("SELECT 1")
        assert cluster.stop()
        assert cluster.server() is None
    assert ask(cluster) == 42


@pytest.mark.usefixtures("made_before")
def test_a_server_that_does_not_end_in_order_is_ended_at_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.embedded.cluster.ORDERLY_END_S", 0.5)
    cluster.ensure()
    stopped = cluster.connect()
    try:
        # A backend that is stopped holds the orderly end up; an immediate one kills it.
        os.kill(stopped.info.backend_pid, signal.SIGSTOP)
        assert cluster.stop()
    finally:
        stopped.close()
    assert ask(cluster) == 42


@pytest.mark.usefixtures("made_before")
def test_a_killed_server_whose_backend_still_works_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A backend that computes does not look whether its server lives.
    monkeypatch.setattr("config.embedded.cluster.ORPHAN_PATIENCE_S", 0.5)
    cluster.ensure()
    busy = cluster.connect()
    try:
        orphan = busy.info.backend_pid
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 100000000000)")
        os.kill(server_of(cluster), signal.SIGKILL)
        assert ask(cluster) == 42
        assert not processes.belongs(orphan, cluster.data)
    finally:
        busy.close()


@pytest.mark.usefixtures("made_before")
def test_many_processes_meet_a_killed_server(cluster: Cluster) -> None:
    cluster.ensure()
    os.kill(server_of(cluster), signal.SIGKILL)
    starters = [embedded_command("start", cluster) for _ in range(4)]
    said = {starter.communicate(timeout=PATIENCE_S) for starter in starters}
    assert said == {(f"running as process {server_of(cluster)} in {cluster.data}\n", "")}


@pytest.mark.usefixtures("made_before")
def test_a_pid_file_that_names_a_stranger_is_stale(cluster: Cluster, stranger: int) -> None:
    cluster.ensure()
    pid_file = cluster.data / "postmaster.pid"
    lock_file = socket_directory(cluster.data) / f".s.PGSQL.{PORT}.lock"
    old = {file: file.read_text().splitlines() for file in (pid_file, lock_file)}
    os.kill(server_of(cluster), signal.SIGKILL)
    wait_until(lambda: not processes.members(cluster.data))
    for file, lines in old.items():
        file.write_text("\n".join([str(stranger), *lines[1:]]) + "\n")
    assert cluster.server() is None
    assert ask(cluster) == 42
    assert processes.is_alive(stranger)


@pytest.mark.usefixtures("made_before")
def test_where_there_is_no_proc_lsof_tells(
    cluster: Cluster, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("lsof") is None:
        pytest.skip("lsof is not installed")
    monkeypatch.setattr(processes, "HAVE_PROC", False)
    cluster.ensure()
    assert processes.belongs(server_of(cluster), cluster.data)
    assert not processes.belongs(stranger, cluster.data)
    assert not processes.belongs(server_of(cluster), cluster.data.parent)


@pytest.mark.usefixtures("made_before")
def test_the_pid_file_of_a_living_server_stays(cluster: Cluster) -> None:
    cluster.ensure()
    before = server_of(cluster)
    # Its socket is gone, as a cleaner of temporary files may do: no second server is started.
    (socket_directory(cluster.data) / f".s.PGSQL.{PORT}").unlink()
    starter = embedded_command("start", cluster)
    with pytest.raises(subprocess.TimeoutExpired):
        starter.communicate(timeout=1)
    assert cluster.server() == before
    starter.kill()
    starter.communicate()


@pytest.mark.parametrize("content", ["", "not a number\n"])
@pytest.mark.usefixtures("made_before")
def test_an_unreadable_pid_file_is_stale(cluster: Cluster, content: str) -> None:
    cluster.ensure()
    cluster.stop()
    (cluster.data / "postmaster.pid").write_text(content)
    assert ask(cluster) == 42


@pytest.mark.parametrize("name", ["x" * 120, "a, b", "it's $HOME \u00e9"])
def test_a_path_that_no_socket_address_or_host_list_takes(tmp_path: Path, name: str) -> None:
    cluster = Cluster(tmp_path / name / "postgres")
    try:
        assert ask(cluster) == 42
        with psycopg.connect(cluster.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        directory = socket_directory(cluster.data)
        assert directory.stat().st_mode & 0o077 == 0
    finally:
        cluster.destroy()
    assert not socket_directory(cluster.data).exists()


def test_a_socket_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / ("x" * 120) / "postgres")
    target = tmp_path / "elsewhere"
    target.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    socket_directory(cluster.data).symlink_to(target)
    with pytest.raises(EmbeddedError, match="belongs to somebody else"):
        cluster.ensure()


def test_two_clusters_side_by_side_are_strangers(cluster: Cluster, tmp_path: Path) -> None:
    other = Cluster(tmp_path / "other", {"max_connections": "17"})
    try:
        assert ask(cluster, "SELECT current_setting('max_connections')") == "200"
        assert ask(other, "SELECT current_setting('max_connections')") == "17"
        assert cluster.stop()
        assert ask(other) == 42
        assert cluster.server() is None
    finally:
        other.destroy()


def test_stopping_is_clean_and_the_next_connection_starts_again(cluster: Cluster) -> None:
    assert not cluster.stop()
    with cluster_in_use(cluster) as connection:
        assert cluster.stop()
        assert connection.broken or connection.closed or not _alive(connection)
    assert not (cluster.data / "postmaster.pid").exists()
    assert ask(cluster) == 42


@pytest.mark.usefixtures("made_before")
def test_data_of_another_major_version_is_refused_in_one_line(
    cluster: Cluster, handler: ConnectionHandler
) -> None:
    cluster.ensure()
    cluster.stop()
    (cluster.data / "PG_VERSION").write_text("13\n")
    with pytest.raises(OperationalError, match=r"made by PostgreSQL 13[^\n]*$"):
        handler["default"].ensure_connection()


def test_a_directory_with_something_else_in_it_is_left_alone(cluster: Cluster) -> None:
    cluster.data.mkdir()
    (cluster.data / "letter.txt").write_text("dear")
    with pytest.raises(EmbeddedError, match="is not empty"):
        cluster.ensure()
    assert (cluster.data / "letter.txt").read_text() == "dear"


def test_the_other_version_in_the_wheel_serves_its_own_data(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = binaries.available()
    if len(versions) < 2:
        pytest.skip("the wheel has one PostgreSQL only")
    oldest = versions[-1]
    with monkeypatch.context() as patch:
        patch.setattr(binaries, "available", lambda: [oldest])
        cluster.ensure()
    cluster.stop()
    assert str(ask(cluster, "SHOW server_version")).startswith(str(oldest.major))


def test_without_the_wheel_the_way_out_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")
    with pytest.raises(EmbeddedError, match=r"DATABASE_URL.*django-sendonce\[embedded\]"):
        cluster.ensure()


def test_the_backend_needs_a_directory() -> None:
    entry = embedded.database_settings(Path("/nowhere"))
    wrapper = ConnectionHandler({"default": {**entry, "OPTIONS": {}}})["default"]
    with pytest.raises(ImproperlyConfigured, match="data_directory"):
        wrapper.get_connection_params()


@pytest.mark.parametrize(
    ("euid", "owner", "modes"),
    [
        (1000, None, ["self"]),
        (1000, (1000, 1000), ["self"]),
        (0, None, ["namespace", "user", "reader"]),
        (0, (0, 0), ["namespace", "user", "reader"]),
        (0, (1000, 1000), ["user", "reader"]),
    ],
)
def test_who_runs_the_server(euid: int, owner: tuple[int, int] | None, modes: list[str]) -> None:
    found = identity.candidates(euid, euid, owner)
    assert [candidate.mode[0] for candidate in found] == modes
    if owner and owner[0]:
        assert {candidate.uid for candidate in found} == {owner[0]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
@pytest.mark.parametrize("mode", ["namespace", "reader"])
def test_root_runs_it_under_a_closed_folder(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    assert cluster.data.parent.stat().st_mode & 0o077 == 0
    every = identity.candidates
    monkeypatch.setattr(
        identity, "candidates", lambda *who: [one for one in every(*who) if one.mode[0] == mode]
    )
    try:
        cluster.ensure()
    except EmbeddedError as error:
        pytest.skip(f"not allowed here: {error}")
    status = Path(f"/proc/{server_of(cluster)}/status").read_text()
    capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
    assert capabilities == {"namespace": 0, "reader": 1 << 2}[mode]
    assert cluster.data.parent.stat().st_mode & 0o077 == 0
    assert ask(cluster) == 42


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_when_nobody_whom_root_can_become_gets_through_one_line_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = identity.candidates
    monkeypatch.setattr(
        identity, "candidates", lambda *who: [one for one in every(*who) if one.mode[0] == "user"]
    )
    with pytest.raises(EmbeddedError, match=r"root.*ordinary user, or set DATABASE_URL\.$") as said:
        cluster.ensure()
    assert "\n" not in str(said.value)
    assert list(cluster.data.parent.iterdir()) == [cluster.data.with_name("postgres.lock")]


def test_data_of_another_user_is_refused() -> None:
    with pytest.raises(EmbeddedError, match="belongs to user id 0"):
        identity.candidates(1000, 1000, (0, 0))


def cluster_in_use(cluster: Cluster) -> psycopg.Connection:
    cluster.ensure()
    return cluster.connect()


def _alive(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
