"""What every test can ask for: the run's own cluster, fresh databases, real commands."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from pytest_django import DjangoDbBlocker

from config.embedded.cluster import Cluster
from tests.dealing import dealt
from tests.forks import Forks
from tests.settings import MEMORY, RUN_PREFIX, VAR_DIR

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    if _is_controller(config) and "TEST_CLUSTER" in os.environ:
        _remove_abandoned_runs()
        run = Path(os.environ["TEST_CLUSTER"])
        draft = run.with_name(f"new-{run.name}")
        draft.mkdir(parents=True)
        # Held until the process ends, however it does; xdist workers do not inherit it. The
        # name that another run looks for appears with the lock already held.
        config.stash[_RUN_LOCK] = os.open(draft / "alive", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(config.stash[_RUN_LOCK], fcntl.LOCK_EX)
        draft.rename(run)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN_LOCK in config.stash:
        _remove_run(Path(os.environ["TEST_CLUSTER"]))
        os.close(config.stash[_RUN_LOCK])


def pytest_collection(session: pytest.Session) -> None:
    """The workers of a run compile the tests together: each reads all of them, beginning at
    another place, and what one has compiled the others find beside the source."""
    if _is_controller(session.config):
        return
    number = int(session.config.workerinput["workerid"].removeprefix("gw"))  # type: ignore[attr-defined]
    count: int = session.config.workerinput["workercount"]  # type: ignore[attr-defined]
    asked = [(ROOT / argument).resolve() for argument in session.config.args]
    files = [f for f in sorted(ROOT.glob("tests/*/test_*.py")) if {f, *f.parents} & {*asked}]
    start = len(files) * number // count
    for file in files[start:] + files[:start]:
        # What can't be imported, or skips itself, says so when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if {"database_url", "empty_database_url"} & set(getattr(item, "fixturenames", ())):
            # pytest-django makes the test database only for tests that say they use one.
            item.add_marker(pytest.mark.django_db)
        for marker in ("crash", "browser"):
            if marker in item.path.relative_to(ROOT).parts:
                item.add_marker(marker)
    if not _is_controller(config):
        items[:] = dealt(items, config.workerinput["workercount"])  # type: ignore[attr-defined]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Django and all the tests stay to the end: no collection of garbage has to look at them. A
    page leaves thousands of objects behind, and none has to be gone at once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


_RUN_LOCK = pytest.StashKey[int]()


def _is_controller(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput")


def _remove_run(run: Path) -> None:
    Cluster(run / "postgres").destroy()
    shutil.rmtree(run, ignore_errors=True)


def _remove_abandoned_runs() -> None:
    """A run that was killed leaves its server behind, but not its lock."""
    for alive in (
        *(VAR_DIR / "tests").glob(f"{RUN_PREFIX}*/alive"),
        *MEMORY.glob(f"{RUN_PREFIX}*/alive"),
    ):
        with contextlib.suppress(OSError):
            # Others of the machine may have theirs beside ours.
            if alive.parent.stat().st_uid != os.getuid():
                continue
            descriptor = os.open(alive, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_run(alive.parent)
            finally:
                os.close(descriptor)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[contextlib.ExitStack]:
    """Of the workers of a run the first migrates, and the others copy what it has made. The lock
    is held until there is something to copy."""
    with contextlib.ExitStack() as waiting:
        if "TEST_CLUSTER" in os.environ:
            waiting.enter_context(_locked(Path(os.environ["TEST_CLUSTER"]) / "template.lock"))
            with django_db_blocker.unblock():
                migrated = _has_template()
            if migrated:
                connection.settings_dict["TEST"].update(TEMPLATE=_template(), MIGRATE=False)
                waiting.close()
        yield waiting


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None,
    django_db_modify_db_settings: contextlib.ExitStack,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """The migrated test database, and a copy of it that no test writes to."""
    with django_db_blocker.unblock():
        source = connection.settings_dict["NAME"]
        connection.close()
        if not connection.settings_dict["TEST"].get("TEMPLATE"):
            _administer(f'CREATE DATABASE "{_template()}" TEMPLATE "{source}"')
        django_db_modify_db_settings.close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('is_superuser') = 'on'")
            (may_flush,) = cursor.fetchone()
        connection.close()
    with pytest.MonkeyPatch.context() as patch:
        if may_flush:
            with django_db_blocker.unblock():
                emit = _EmitWhereChanged()
                connection.close()
            patch.setattr(type(connection.ops), "sql_flush", _sql_flush)
            patch.setattr(flush, "emit_post_migrate_signal", emit)
        yield
    with django_db_blocker.unblock():
        if "TEST_CLUSTER" not in os.environ:  # else it goes with its cluster, after all workers
            _administer(f'DROP DATABASE "{_template()}" WITH (FORCE)')
        _await_the_others_end(source)


@pytest.fixture
def database_url(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The ``DATABASE_URL`` of a migrated, otherwise empty database of this test's own.

    For tests whose processes commit: the test itself may open psycopg connections to it, and
    commands get it through ``environ``.
    """
    with _database(_template(), django_db_blocker) as url:
        yield url


@pytest.fixture
def empty_database_url(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """As ``database_url``, without any table: nobody has run ``migrate`` yet."""
    with _database("template0", django_db_blocker) as url:
        yield url


@pytest.fixture
def bare_environ() -> dict[str, str]:
    """A command's environment without any setting of ours: what a user's shell gives."""
    return _bare_environ()


def _bare_environ() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def environ(bare_environ: dict[str, str], database_url: str) -> dict[str, str]:
    """A command's environment: the test's own database, the test's own secret."""
    return {
        **bare_environ,
        "DATABASE_URL": database_url,
        "SECRET_KEY": settings.SECRET_KEY,
        "SENDONCE_DIRECT_CONNECTION": "true",
    }


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """What starts processes of ours quickly."""
    made = Forks()
    yield made
    made.stop()


@pytest.fixture
def manage(
    environ: dict[str, str], forks: Forks
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``manage.py`` with ``environ`` to its end; ``extra`` goes over the environment."""

    def run(
        *arguments: str, extra: dict[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return forks.manage(*arguments, env={**environ, **(extra or {})}, timeout=timeout)

    return run


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of this test's own, not started: to be killed, stopped and started again."""
    home = tmp_path
    if "TEST_CLUSTER" in os.environ:
        home = Path(os.environ["TEST_CLUSTER"], f"own-{uuid.uuid4().hex[:12]}")
        home.mkdir(mode=0o700)
    own = Cluster(home / "postgres")
    yield own
    own.destroy()
    if home != tmp_path:
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def migrated_data(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """The directory of a cluster that was migrated and has ended in order, to be copied: for all
    workers of a run where it has a directory."""
    run = os.environ.get("TEST_CLUSTER")
    made = (Path(run) if run else tmp_path_factory.mktemp("migrated")) / "migrated"
    with _locked(made.with_name("migrated.turn")):
        if not made.exists():
            draft = Cluster(made.with_name("migrating"))
            draft.ensure()
            done = forks.manage(
                *("migrate", "--verbosity", "0"),
                env={**_bare_environ(), "DATABASE_URL": draft.url(), "SECRET_KEY": "x" * 50},
            )
            assert done.returncode == 0, done.stderr
            draft.stop()
            draft.data.rename(made)
    return made


def run_manage(
    *arguments: str, env: dict[str, str], timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def _template() -> str:
    """What databases are copied from: one for all workers on a server of the run's own."""
    if "TEST_CLUSTER" in os.environ:
        return "migrated"
    return f"{connection.settings_dict['NAME']}_template"


def _has_template() -> bool:
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [_template()])
        return cursor.fetchone() is not None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One worker at a time; the kernel frees it when its holder ends, however that happens."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _database(template: str, blocker: DjangoDbBlocker) -> Iterator[str]:
    """The ``DATABASE_URL`` of a copy of ``template``, gone after the block."""
    name = f"{_template()}_{uuid.uuid4().hex[:12]}"
    with blocker.unblock():
        _administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    yield _url(name)
    with blocker.unblock():
        _administer(f'DROP DATABASE "{name}" WITH (FORCE)')


def _sql_flush(operations: Any, style: Any, tables: Iterable[str], **options: Any) -> list[str]:
    """After a test that commits: to empty fifty tables that hold a few rows, ``TRUNCATE`` makes
    a hundred and fifty files anew. Here it is only for those that have grown."""
    emptied = set(tables) - set(_WRITTEN_BY_MIGRATE)
    names = ", ".join(f"'{operations.quote_name(table)}'" for table in emptied)
    return [
        "SET LOCAL session_replication_role = replica",  # the order does not matter, nor triggers
        f"""
        DO $$
        DECLARE
            name text;
            large text[] := '{{}}';
        BEGIN
            FOREACH name IN ARRAY ARRAY[{names}]::text[] LOOP
                IF pg_relation_size(name::regclass) > 262144 THEN
                    large := large || name;
                ELSE
                    EXECUTE 'DELETE FROM ' || name;
                END IF;
            END LOOP;
            IF large <> '{{}}' THEN
                EXECUTE 'TRUNCATE ' || array_to_string(large, ', ') || ' CASCADE';
            END IF;
        END $$
        """,
    ]


#: By receivers of its signal, and by hardly any test.
_WRITTEN_BY_MIGRATE = ("auth_permission", "django_content_type")


class _EmitWhereChanged:
    """Stands for the signal that ``flush`` sends so that content types and permissions are made
    anew, which takes longer than all the rest: they are left alone, and only after a test that
    has changed them they are emptied and the signal is sent."""

    def __init__(self) -> None:
        self.before = self._digest()

    def __call__(self, verbosity: int, interactive: bool, database: str) -> None:
        ContentType.objects.clear_cache()  # as a receiver of the signal does
        if self._digest() != self.before:
            with connection.cursor() as cursor:
                for table in _WRITTEN_BY_MIGRATE:
                    cursor.execute(f"DELETE FROM {table}")
            emit_post_migrate_signal(verbosity, interactive, database)
            self.before = self._digest()

    @staticmethod
    def _digest() -> list[Any]:
        found = []
        with connection.cursor() as cursor:
            for table in _WRITTEN_BY_MIGRATE:
                cursor.execute(f"SELECT md5(string_agg(t::text, ' ' ORDER BY id)) FROM {table} t")
                found.append(cursor.fetchone())
        return found


def _administer(statement: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)


def _await_the_others_end(name: str, seconds: float = 5.0) -> None:
    """A thread of the live server may close its connection a moment after its last answer; one
    that stays was leaked by a test, and its last statement says by which."""
    connection.close()
    end = time.monotonic() + seconds
    while True:
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                "SELECT pid, state, left(query, 300) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
            others = cursor.fetchall()
        if not others:
            return
        assert time.monotonic() < end, f"connections leaked to {name}: {others}"
        time.sleep(0.05)


def _url(name: str) -> str:
    entry = connection.settings_dict
    options = {k: v for k, v in entry["OPTIONS"].items() if k != "data_directory"}
    if entry["HOST"]:
        options["host"] = entry["HOST"]
    if entry["PORT"]:
        options["port"] = entry["PORT"]
    secret = f":{quote(entry['PASSWORD'], safe='')}" if entry["PASSWORD"] else ""
    query = urlencode(options, quote_via=quote)
    return f"postgresql://{quote(entry['USER'], safe='')}{secret}@/{quote(name)}?{query}"
