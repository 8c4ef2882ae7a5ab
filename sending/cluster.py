"""What a sender asks of its PostgreSQL before it trusts it with the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction

from .installation import installation
from .models import Installation

OLDEST = 140000
TIMELINE = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"


class ClusterRefused(OperationalError):
    """The database can't keep the promise; the message says what to change.

    Operational, as a lost connection is: a running sender that meets it waits and tries again.
    """


class ClusterChanged(OperationalError):
    """Another cluster or timeline than the last sender saw: staff must confirm it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Facts about the server; ``identity`` is None where the role may not read it."""

    version: int
    fsync: bool
    full_page_writes: bool
    in_recovery: bool
    identity: tuple[str, int] | None
    asynchronous_standbys: int
    synchronous_standby_names: str


def look() -> Cluster:
    """Read the server's facts, in a few small statements."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, current_setting('fsync')::bool, "
            "current_setting('full_page_writes')::bool, "
            "pg_is_in_recovery(), "
            "current_setting('synchronous_standby_names')"
        )
        version, fsync, pages, recovering, names = cursor.fetchone()
    standbys = _optional("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async'")
    system = _optional("SELECT system_identifier::text FROM pg_control_system()")
    # Not pg_control_checkpoint(): that one learns of a promotion only at the next checkpoint.
    timeline = None if recovering else _optional(TIMELINE)
    identity = (str(system), int(timeline)) if system and timeline is not None else None
    return Cluster(
        version=version,
        fsync=fsync,
        full_page_writes=pages,
        in_recovery=recovering,
        identity=identity,
        asynchronous_standbys=int(standbys or 0),
        synchronous_standby_names=names,
    )


def judge(cluster: Cluster) -> list[str]:
    """Warnings about ``cluster``. Raises ``ClusterRefused``. Pure."""
    if cluster.version < OLDEST:
        raise ClusterRefused("PostgreSQL 14 or newer is needed")
    if not cluster.fsync:
        raise ClusterRefused(
            "fsync is off: a crash of the machine would forget what was sent and send it again; "
            "set fsync = on in postgresql.conf"
        )
    if cluster.in_recovery:
        raise ClusterRefused("this server is a standby; DATABASE_URL must name the primary")
    warnings = []
    if not cluster.full_page_writes:
        warnings.append("full_page_writes is off: a torn page after a crash can lose the ledger")
    if cluster.asynchronous_standbys and not cluster.synchronous_standby_names:
        warnings.append(
            "the standbys are asynchronous: a failover can lose a hand-over, and so send twice; "
            "set synchronous_standby_names and promote only that standby"
        )
    return warnings


def check(*, confirm: bool = False) -> list[str]:
    """Judge the cluster and compare it with the one last seen; remember it.

    Called at the start, and again on every connection that a running sender opens: after a
    failover nothing is handed over before staff have looked. Raises ``ClusterRefused``, and
    ``ClusterChanged`` unless ``confirm``. Returns warnings.
    """
    cluster = look()
    warnings = judge(cluster)
    if cluster.identity is None:
        return warnings
    seen = installation()
    before = (seen.system_identifier, seen.timeline)
    if before == cluster.identity:
        return warnings
    if seen.system_identifier and not confirm:
        raise ClusterChanged(
            f"this is another database cluster than the last sender saw (system identifier and "
            f"timeline {cluster.identity}, then {before}): after a failover or a restore, rows "
            f"may be older than what was sent. Check the campaigns that were sending, then "
            f"start one run_sender with --confirm-cluster; the others wait for it"
        )
    Installation.objects.filter(
        pk=1, system_identifier=seen.system_identifier, timeline=seen.timeline
    ).update(system_identifier=cluster.identity[0], timeline=cluster.identity[1])
    return warnings


def _optional(statement: str) -> Any:
    """The one value of a query that the role may not be allowed to make."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
    except DatabaseError:
        return None
    return row[0] if row else None
