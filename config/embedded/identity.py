"""As whom the server runs: ourselves, or, when we are root, somebody PostgreSQL accepts."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import EmbeddedError

SCRIPT = Path(__file__).with_name("unprivileged.py")


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its exit status and what it printed."""

    status: int
    output: str

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"


@dataclass(frozen=True)
class Identity:
    """A way to run programs (``mode``, see ``unprivileged``) and who then owns their files."""

    mode: tuple[str, ...]
    uid: int
    gid: int

    def run(self, directory: Path, command: Sequence[str], *, timeout: float) -> Outcome:
        """Run ``command`` in ``directory``, detached from our terminal, files and environment.

        Output goes through a file: a server that held a pipe open would make us wait for it.
        """
        launcher = [sys.executable, "-I", "-S", str(SCRIPT), *self.mode, str(directory), *command]
        with tempfile.TemporaryFile() as output:
            try:
                status = subprocess.run(
                    launcher,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                    start_new_session=True,
                    timeout=timeout,
                ).returncode
            except subprocess.TimeoutExpired:
                return Outcome(-1, f"{Path(command[0]).name} gave no result within {timeout:.0f} s")
            output.seek(0)
            return Outcome(status, output.read().decode(errors="replace"))

    def own(self, tree: Path) -> None:
        """Make ``tree`` this identity's, unless it is; only root needs to and can."""
        if os.geteuid() != 0 or tree.stat().st_uid == self.uid:
            return
        for folder, _, files in os.walk(tree):
            os.chown(folder, self.uid, self.gid)
            for file in files:
                os.chown(os.path.join(folder, file), self.uid, self.gid, follow_symlinks=False)


def candidates(euid: int, egid: int, owner: tuple[int, int] | None) -> list[Identity]:
    """The identities to try, best first, for a data directory of ``owner`` (uid, gid).

    Raises ``EmbeddedError`` when it belongs to somebody whom ``euid`` cannot become.
    """
    if euid != 0:
        if owner is not None and owner[0] != euid:
            raise EmbeddedError(
                f"the database directory belongs to user id {owner[0]} and this is user id {euid}: "
                "run as its owner, or set DATABASE_URL."
            )
        return [Identity(("self",), euid, egid)]
    if owner is not None and owner[0] != 0:
        uid, gid = owner
        return [Identity((mode, str(uid), str(gid)), uid, gid) for mode in ("user", "reader")]
    found = []
    if inside := _account("daemon", "postgres", "nobody"):
        # The account only lends its name to root inside the namespace: initdb looks it up.
        found.append(Identity(("namespace", str(inside.pw_uid)), 0, egid))
    if other := _account("postgres", "nobody", "daemon"):
        uid, gid = other.pw_uid, other.pw_gid
        found += [Identity((mode, str(uid), str(gid)), uid, gid) for mode in ("user", "reader")]
    return found


def refuse_foreign(directory: Path) -> None:
    """Raise ``EmbeddedError`` when ``directory`` is there and is of somebody we cannot become."""
    if directory.exists():
        owner = directory.stat()
        candidates(os.geteuid(), os.getegid(), (owner.st_uid, owner.st_gid))


def choose(directory: Path, program: str) -> Identity:
    """The first identity that can reach ``directory`` and run ``program --version`` there.

    ``directory`` exists and is either empty (and then may change hands) or a database of its
    owner. Raises ``EmbeddedError`` with what was tried when none can.
    """
    owner = directory.stat()
    reasons = []
    for identity in candidates(os.geteuid(), os.getegid(), (owner.st_uid, owner.st_gid)):
        identity.own(directory)
        outcome = identity.run(directory, [program, "--version"], timeout=60)
        if outcome.status == 0:
            return identity
        reasons.append(outcome.last_line)
    raise EmbeddedError(
        "the embedded PostgreSQL cannot be run"
        + (" as root, nor from here as another user" if os.geteuid() == 0 else "")
        + f" ({'; '.join(reasons)}): run as an ordinary user, or set DATABASE_URL."
    )


def _account(*names: str) -> pwd.struct_passwd | None:
    for name in names:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        if account.pw_uid != 0:
            return account
    return None
