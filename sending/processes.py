"""Several sender processes side by side: a parent that starts them and sees to their end.

The parent sends nothing, has one thread and never opens a connection to the database. Its
children are forks of it, made after Django's set-up: four of them cost the CPU of one start
(2.0 s; four commands cost 8.3 s) and 128 MB instead of 286, as what was imported is shared.

Forking is safe only where nothing is open or running. So it is refused where another thread
exists. And a connection of the parent's, even a closed one, may have started something in libpq's
libraries for TLS and Kerberos that crashes a fork which connects: the first child looks at the
database in the place of all, and the others start when it has come up.

A pipe ties the children to the parent: its end of file tells them to stop, as SIGTERM would, and
comes whether the parent wants it or dies by SIGKILL. It is not counted as a signal, so that it
may come together with one that went to all (Ctrl-C, a supervisor that signals every process).
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from django.db import connections

from . import clock
from .processes_ends import ABANDONED, Next, after, exit_code, wait_before
from .processes_reports import LARGEST, Totals, decode
from .stopping import SIGNALS, Requests

log = logging.getLogger("sendonce.sender")

#: Seconds between two looks of the parent.
TICK = 0.1
#: Seconds after which the parent itself is ended, when it should have killed those that hang.
LATER = 3.0
#: Bytes of their output that are read at once.
_CHUNK = 65536


class NotAlone(Exception):
    """This process has threads, so that it must not be forked."""


@dataclass(frozen=True, slots=True)
class Tie:
    """What a child has of its parent. ``first``: it looks at the database for all of them."""

    number: int
    first: bool
    _lifeline: int
    _reports: socket.socket

    def hear_signals(self) -> None:
        """Handlers are in place: let in what was held back since before the fork."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def is_cut(self) -> bool:
        """Whether the parent wants an end, or is gone."""
        ready, _, _ = select.select([self._lifeline], [], [], 0)
        return bool(ready)

    def tell(self, report: bytes) -> None:
        """Send the parent a report, if it listens."""
        with contextlib.suppress(OSError):
            self._reports.send(report)


@dataclass(slots=True)
class _Process:
    """One of the processes; ``pid`` 0: it does not run. Times are of ``sending.clock``."""

    number: int
    pid: int = 0
    begun: float = 0.0
    not_before: float = 0.0
    wait: float = 0.0
    over: bool = False
    code: int = 0


class Supervisor:
    """Runs ``count`` children, each of which calls ``work`` and exits with what it returns.

    ``patience``: seconds that they have to end when they are told to. ``print_line`` is where the
    lines go that they write to standard output or error; None: they write there themselves.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[Tie], int],
        *,
        drain: bool,
        patience: float,
        print_line: Callable[[str], object] | None = None,
    ) -> None:
        others = [t.name for t in threading.enumerate() if t is not threading.current_thread()]
        if others:
            raise NotAlone(
                "several processes need a start without threads, and an app of this project has "
                f"started some ({', '.join(others)}): start run_sender several times instead"
            )
        self.totals = Totals(count)
        self.signals = Requests()
        self._work = work
        self._drain = drain
        self._patience = patience
        self._print_line = print_line
        self._processes = [_Process(number) for number in range(count)]
        self._up = False
        self._ended_all: int | None = None
        self._abandoned = False
        self._give_up_at: float | None = None
        self._lifeline, self._held = os.pipe()
        self._reports, self._telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._reports.setblocking(False)
        self._telling.setblocking(False)
        self._output, self._printing = os.pipe() if print_line else (-1, -1)
        self._rest = b""

    def handle_signals(self) -> None:
        """End on SIGTERM, SIGINT and SIGHUP from now on; a second one kills them all."""
        self.signals.hear(self._patience + LATER, self._kill)
        # Who started us may have told the system to forget the children of its children.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def run(self, watch: Callable[[Totals], None]) -> int:
        """Until all have ended for good; the exit code. ``watch`` is called ten times a second."""
        connections.close_all()
        # What exists now is never looked at by a collector again: it stays shared, and is quicker.
        gc.collect()
        gc.freeze()
        while True:
            self._hear()
            self._reap()
            if self.signals:
                self._stop()
            if self._give_up_at is None:
                self._start_due()
            elif clock.now() > self._give_up_at:
                self._give_up()
            running = [p for p in self._processes if p.pid]
            wanted = [p for p in self._processes if not (p.over or self._stopping)]
            self.totals.missing = sum(not p.pid for p in wanted)
            watch(self.totals)
            if not running and (self._stopping or all(p.over for p in self._processes)):
                break
            self._wait()
        self.totals.ending = True  # the last figures are shown at any rate, however soon they come
        watch(self.totals)
        self._close()
        log.info("all processes have ended", extra={"event": "processes_ended", **self._rows()})
        return exit_code(
            ended_all=self._ended_all,
            any_abandoned=self._abandoned,
            last=[p.code for p in self._processes],
        )

    @property
    def _stopping(self) -> bool:
        return self._give_up_at is not None

    def _rows(self) -> dict[str, int]:
        return {f"rows_{k}": v for k, v in sorted(self.totals.read().counts.items())}

    # --- starting ----------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = clock.now()
        for process in self._processes if self._up else self._processes[:1]:
            if not process.pid and not process.over and process.not_before <= now:
                try:
                    self._start(process)
                except OSError as error:
                    self._again(process, lived=0.0, why=f"not started: {error}")

    def _start(self, process: _Process) -> None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # what a shell has closed
                stream.flush()
        first = not self._up
        with _signals_held():
            pid = os.fork()
            if pid == 0:
                self._be_child(Tie(process.number, first, self._lifeline, self._telling))
            process.pid = pid
        process.begun = clock.now()
        log.info(
            "process started",
            extra={"event": "process_started", "number": process.number, "pid": pid},
        )

    def _be_child(self, tie: Tie) -> NoReturn:
        """Never returns: the parent's frames, and what they would clean up, are not the child's."""
        code = 1
        try:
            os.close(self._held)
            self._reports.close()
            if self._print_line is not None:
                for standard in (1, 2):
                    os.dup2(self._printing, standard)
                os.close(self._output)
                os.close(self._printing)
            code = self._work(tie)
        except BaseException:
            log.exception("the process failed", extra={"event": "process_failed"})
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    # --- watching ----------------------------------------------------------------------------

    def _wait(self) -> None:
        """A tick, or until somebody says something."""
        said = [self._reports.fileno(), *([self._output] if self._print_line else [])]
        select.select(said, [], [], TICK)

    def _hear(self) -> None:
        """Take in the reports, and print the lines."""
        with contextlib.suppress(BlockingIOError):
            while True:
                pid, figures = decode(self._reports.recv(LARGEST))
                self.totals.heard(pid, figures)
                self._up = True
        if self._print_line is None:
            return
        while select.select([self._output], [], [], 0)[0]:
            *lines, self._rest = (self._rest + os.read(self._output, _CHUNK)).split(b"\n")
            for line in lines:
                self._print(line)

    def _print(self, line: bytes) -> None:
        # A terminal that went away must not stop who writes to it.
        with contextlib.suppress(OSError):
            if self._print_line is not None:
                self._print_line(line.decode("utf-8", "replace") + "\n")

    def _reap(self) -> None:
        for process in self._processes:
            if not process.pid:
                continue
            # A handler must never kill by the number of a process that is gone.
            with _signals_held():
                pid, status = os.waitpid(process.pid, os.WNOHANG)
                if pid:
                    process.pid = 0
            if pid:
                self._hear()  # its last words
                self.totals.ended(pid)
                self._ended(process, pid, os.waitstatus_to_exitcode(status))

    def _ended(self, process: _Process, pid: int, code: int) -> None:
        process.code = code
        self._abandoned = self._abandoned or code == ABANDONED
        stopping = self._stopping or bool(self.signals)
        next_ = after(code, any_came_up=self._up, drain=self._drain, stopping=stopping)
        if next_ is Next.AGAIN:
            lived = clock.now() - process.begun
            why = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._again(process, lived=lived, why=why, pid=pid)
            return
        process.over = True
        log.log(
            logging.WARNING if code else logging.INFO,
            "process ended",
            extra={
                "event": "process_ended",
                "number": process.number,
                "pid": pid,
                "exit_code": code,
            },
        )
        if next_ is Next.END_ALL:
            self._ended_all = code
            self._stop()

    def _again(self, process: _Process, *, lived: float, why: str, pid: int | None = None) -> None:
        process.wait = wait_before(lived=lived, last=process.wait)
        process.not_before = clock.now() + process.wait
        log.warning(
            "process ended, starting it again",
            extra={
                "event": "process_lost",
                "number": process.number,
                "pid": pid,
                "why": why,
                "lived": f"{lived:.0f}s",
                "wait": f"{process.wait:.0f}s",
            },
        )

    # --- ending ------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Tell them to end; once."""
        if self._stopping:
            return
        self._give_up_at = clock.now() + self._patience
        self.totals.ending = True
        os.close(self._held)
        log.info("all processes are to end", extra={"event": "processes_stopping"})

    def _give_up(self) -> None:
        """They end by themselves, whatever hangs; one that does not is as good as dead."""
        log.error(
            "killed what did not end: rows on the wire will be in doubt",
            extra={"event": "processes_killed"},
        )
        self._abandoned = True
        self._give_up_at = float("inf")
        self._kill()

    def _kill(self) -> None:
        for process in self._processes:
            if process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

    def _close(self) -> None:
        self._hear()
        if self._rest:
            self._print(self._rest)
        self._reports.close()
        self._telling.close()
        os.close(self._lifeline)
        if not self._stopping:
            os.close(self._held)
        if self._print_line is not None:
            os.close(self._output)
            os.close(self._printing)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait until the block is over; in a fork made inside it, until ``hear_signals``."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
