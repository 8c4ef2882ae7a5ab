"""The demo from its first line to its last."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from django.conf import settings
from django.db import connection

from campaigns.models import Campaign
from sending.alive import ALIVE_WITHIN
from sending.ledger import balance
from sending.models import Send, Worker
from sending.sink import Fault, read_record
from subscribers.conf import conf
from subscribers.database_clock import database_time

from . import report, stage
from .children import Children, ended_by_signals, manage_command
from .mail_server import FAULTS, start_sink
from .people import SCRIPTS, generate
from .plot import LANES, LOT, SENDERS, Plot
from .screen import Screen

FEWEST, MOST = 20, 100_000
SITE_PORT = 8000
#: The database backend of the project whose server outlives the commands that use it.
EMBEDDED = "config.embedded"


class DemoRefused(Exception):
    """The demo can't run here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. ``keep``: leave record and logs behind."""

    people: int
    seed: int
    serve: bool
    keep: bool


def run(options: Options, screen: Screen) -> int:
    """Play it; the exit code, 0 when every promise was kept. Raises ``DemoRefused`` before
    anything was done, ``ChildFailed`` when a process of it did not do its part."""
    _refuse_where_it_would_harm(options)
    screen.title(
        f"Sendonce demo: a campaign to {options.people:,} people, and a sender killed on the way"
    )
    with ended_by_signals():
        folder = Path(mkdtemp(prefix="sendonce-demo-"))
        passed = False
        try:
            with Children(folder) as children:
                logins, verdict = _play(options, screen, children, folder)
            passed = verdict.passed
        finally:
            if options.keep or not passed:
                screen.write(f"\nThe mail server's record and all logs are in {folder}")
            else:
                rmtree(folder, ignore_errors=True)
        _say_how_to_go_on(screen, logins, serve=options.serve)
        if options.serve:
            _serve(screen)
    return 0 if passed else 1


def _refuse_where_it_would_harm(options: Options) -> None:
    if not FEWEST <= options.people <= MOST:
        raise DemoRefused(f"--people must be {FEWEST} to {MOST:,}, not {options.people:,}")
    if not hasattr(settings, "DEMO_SERVE"):
        # Its senders learn of its mail server through the environment, which only our own
        # settings read: in another project they would never find it.
        raise DemoRefused("the demo runs in Sendonce's own project only: clone it, then make demo")
    if not settings.DEBUG:
        raise DemoRefused("the demo makes logins and prints their passwords: set DEBUG=true")


def _play(
    options: Options, screen: Screen, children: Children, folder: Path
) -> tuple[list[stage.Login], report.Verdict]:
    stage.prepare_database()
    _refuse_beside_senders()
    screen.step("database", f"PostgreSQL {_server_version()}, tables up to date")

    account = stage.make_account()
    for left in stage.cancel_leftovers(account):
        screen.detail(f"campaign {left} of an interrupted demo is canceled")
    logins = stage.make_logins(account)
    segment = stage.load_people(account, options.people, options.seed, folder)
    screen.step("people", f"{options.people:,} invented subscribers imported from a CSV file,")
    screen.detail(f"such as {_some_names(options)}")

    campaign = stage.compose(account, segment)
    record = folder / "accepted.jsonl"
    sink, port = start_sink(
        children,
        record,
        segment,
        first_seed=campaign.pk,
        people=options.people,
        lanes=SENDERS * LANES,
    )
    screen.step("mail server", f"a local one on port {port}; it delivers nothing, and misbehaves:")
    screen.detail(
        f"greylists {FAULTS[Fault.GREYLIST]:.0f} % of the people, has no mailbox for "
        f"{FAULTS[Fault.REFUSE]:.0f} %, and on {FAULTS[Fault.DROP]:.0f} %"
    )
    screen.detail("hangs up after the message, without an answer")

    stage.approve(campaign)
    screen.step("campaign", f"{campaign.name!r}, written by demo-editor, approved by demo-approver")

    plot = Plot(screen, children, campaign, record, sink, port, options.people)
    plot.run()
    evidence = _evidence(campaign, record, plot.kills)
    found = report.judge(evidence)
    verdict = report.Verdict(found.accepted, found.duplicates, [*plot.problems, *found.problems])
    _show(screen, evidence, verdict)
    if verdict.passed:
        stage.release_account(account)
    return logins, verdict


def _show(screen: Screen, evidence: report.Evidence, verdict: report.Verdict) -> None:
    screen.step("the count", "what the mail server took, against what the ledger says")
    screen.write("")
    for line in report.report_lines(evidence, verdict):
        screen.write(line)
    screen.write("")
    for problem in verdict.problems:
        screen.write(f"  FAILED: {problem}")
    if verdict.passed:
        screen.write("  PASSED: nobody got two, and nobody was dropped in silence.")


def _evidence(campaign: Campaign, record: Path, kills: int) -> report.Evidence:
    found = balance(campaign.pk)
    campaign.refresh_from_db()
    rows = Send.objects.filter(campaign=campaign).values_list("email", "status", "reason")
    return report.Evidence(
        record=read_record(record),
        rows=[report.Row(email or "", status, reason) for email, status, reason in rows],
        audience=found.audience,
        campaign_status=campaign.status,
        lost_at_most=kills * LANES * LOT,
    )


def _refuse_beside_senders() -> None:
    """Another sender would take the demo's rows without knowing its mail server."""

    def alive() -> dict[int, object]:
        seen = Worker.objects.filter(ended__isnull=True, seen__gt=database_time() - ALIVE_WITHIN)
        return dict(seen.values_list("pk", "seen"))

    before = alive()
    if not before:
        return
    time.sleep(3.0)  # one that was killed a moment ago does not beat again
    now = alive()
    for worker in Worker.objects.filter(pk__in=[pk for pk in now if now[pk] != before.get(pk)]):
        raise DemoRefused(f"a sender runs already ({worker}): stop it, the demo brings its own")


def _server_version() -> str:
    connection.ensure_connection()
    number = connection.connection.info.server_version
    return f"{number // 10000}.{number % 10000}"


def _some_names(options: Options) -> str:
    some = list(generate(min(options.people, len(SCRIPTS)), options.seed))
    return ", ".join(f"{p.first_name} {p.last_name}" for p in some[1:12:2])


def _say_how_to_go_on(screen: Screen, logins: list[stage.Login], *, serve: bool) -> None:
    hint = "" if serve else "   (start it with: make run)"
    screen.write(f"\nThe admin: {conf.BASE_URL}/admin/{hint}")
    for login in logins:
        screen.write(f"  {login.username:<14} {login.password:<16} {login.role}")
    if connection.settings_dict["ENGINE"] == EMBEDDED:
        screen.write("\nThe embedded PostgreSQL keeps running; make db-stop stops it.")


def _serve(screen: Screen) -> None:
    """The site on its port until Ctrl-C; not when something else is there."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", SITE_PORT)) == 0:
            screen.write(f"\nPort {SITE_PORT} is taken: the site is not started.")
            return
    screen.write("\nThe site runs until Ctrl-C.")
    site = subprocess.Popen([*manage_command(), "runserver", "--noreload", str(SITE_PORT)])
    try:
        with suppress(KeyboardInterrupt):  # from the terminal it reaches the site as well
            site.wait()
    finally:
        site.terminate()
        site.wait()
