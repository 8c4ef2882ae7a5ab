"""Which PostgreSQL a sender trusts, asked of real ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from config.embedded.cluster import Cluster
from sending.cluster import ClusterChanged, check, judge, look
from sending.installation import installation
from sending.models import Installation
from tests.conftest import run_manage

EXIT_REFUSED, EXIT_CLUSTER_CHANGED = 3, 4
TABLE = Installation._meta.db_table


@pytest.mark.django_db
def test_the_server_of_the_tests_is_seen_as_it_is() -> None:
    seen = look()
    assert judge(seen) == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT system_identifier::text FROM pg_control_system()")
        assert seen.identity is not None
        assert seen.identity[0] == cursor.fetchone()[0]
        cursor.execute("SHOW server_version_num")
        assert str(seen.version) == cursor.fetchone()[0]
    assert seen.identity[1] >= 1
    assert (seen.fsync, seen.full_page_writes, seen.in_recovery) == (True, True, False)


@pytest.mark.django_db
def test_the_first_look_is_remembered_and_the_next_agrees() -> None:
    namespace = installation().namespace
    assert check() == []
    row = Installation.objects.get()
    assert (row.system_identifier, row.timeline) == look().identity
    assert check() == []
    assert Installation.objects.get().namespace == namespace


@pytest.mark.django_db
@pytest.mark.parametrize("changed", [{"system_identifier": "1"}, {"timeline": 999}])
def test_another_cluster_or_timeline_waits_for_a_confirmation(changed: dict[str, object]) -> None:
    check()
    Installation.objects.update(**changed)
    before = Installation.objects.values().get()
    for _ in range(2):
        with pytest.raises(ClusterChanged, match="--confirm-cluster") as caught:
            check()
        assert "\n" not in str(caught.value)
        assert Installation.objects.values().get() == before, "a refusal remembers nothing"
    assert check(confirm=True) == []
    row = Installation.objects.get()
    assert (row.system_identifier, row.timeline) == look().identity
    assert check() == []


# --- a real sender ---------------------------------------------------------------------------


def refusal(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one plain line with which the process refused."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def unsafe_cluster(tmp_path: Path) -> Iterator[Cluster]:
    own = Cluster(tmp_path / "postgres", {"fsync": "off"})
    own.ensure()
    yield own
    own.destroy()


def test_a_sender_refuses_a_server_that_forgets(
    unsafe_cluster: Cluster, bare_environ: dict[str, str]
) -> None:
    environ = {
        **bare_environ,
        "SECRET_KEY": settings.SECRET_KEY,
        "DATABASE_URL": unsafe_cluster.url(),
    }
    done = run_manage("run_sender", "--drain", env=environ)
    assert "set fsync = on" in refusal(done, EXIT_REFUSED)


def test_a_sender_waits_for_staff_on_another_cluster(
    database_url: str, manage: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert manage("run_sender", "--drain").returncode == 0
    with psycopg.connect(database_url, autocommit=True) as own:
        identity = own.execute(f"SELECT system_identifier, timeline FROM {TABLE}").fetchone()
        own.execute(f"UPDATE {TABLE} SET system_identifier = '1'")
        line = refusal(manage("run_sender", "--drain"), EXIT_CLUSTER_CHANGED)
        assert "another database cluster" in line
        assert "--confirm-cluster" in line
        assert manage("run_sender", "--drain", "--confirm-cluster").returncode == 0
        now = own.execute(f"SELECT system_identifier, timeline FROM {TABLE}").fetchone()
        assert now == identity
        assert manage("run_sender", "--drain").returncode == 0
