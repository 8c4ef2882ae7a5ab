"""A fork of ``tests.forks`` is what ``python manage.py`` would be: settings, signals, files."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.conftest import run_manage
from tests.forks import SETTINGS, Forks

#: What a process finds around it. Imported modules, which differ, are no part of it.
SEEN = """
import dataclasses, json, logging, os, re, signal, sys, threading
from django.conf import settings
from django.core.cache import caches
from django.db import connections
from subscribers.conf import Conf, conf
said = json.dumps({
    "connections": repr(connections.settings),
    "settings": {name: repr(getattr(settings, name)) for name in dir(settings) if name.isupper()},
    "conf": {f.name: repr(getattr(conf, f.name)) for f in dataclasses.fields(Conf)},
    "wrapper": repr(connections["default"].settings_dict),
    "opened": [wrapper.connection is not None for wrapper in connections.all()],
    "caches": repr(caches.settings),
    "log": [repr(logging.root.handlers), logging.root.level],
    "environ": dict(os.environ),
    "signals": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "blocked": repr(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "wakeup": signal.set_wakeup_fd(-1),
    "files": [n for n in range(64) if os.path.exists(f"/dev/fd/{n}")],
    "threads": threading.active_count(),
    "arguments": sys.argv[1:3],
    "directory": os.getcwd(),
    "umask": os.umask(0o22),
})
print(re.sub(" at 0x[0-9a-f]+", "", said))
"""


@pytest.fixture
def env(bare_environ: dict[str, str]) -> dict[str, str]:
    return {
        **bare_environ,
        "DATABASE_URL": "postgresql://somebody@127.0.0.1:1/here",
        "SECRET_KEY": "of-this-test-0123456789-0123456789-0123456789",
        "DEBUG": "true",
        "LOG_LEVEL": "ERROR",
        "EMAIL_URL": "smtp://127.0.0.1:1",
        "SENDONCE_BASE_URL": "https://news.example.org",
        "SENDONCE_LANES": "3",
        "ANYMAIL": '{"MAILGUN_API_KEY": "key"}',
        "TZ": "Europe/Paris",
    }


def test_a_fork_sees_what_a_new_process_sees(forks: Forks, env: dict[str, str]) -> None:
    fork, new = (
        run("shell", "--no-imports", "-c", SEEN, env=env) for run in (forks.manage, run_manage)
    )
    assert (fork.returncode, fork.stderr) == (new.returncode, new.stderr) == (0, "")
    assert json.loads(fork.stdout) == json.loads(new.stdout)
    assert json.loads(fork.stdout)["environ"]["DATABASE_URL"] == env["DATABASE_URL"]
    assert not any(secret in fork.stdout for secret in SETTINGS.values() if "-" in secret)


def test_each_fork_reads_its_own_settings(forks: Forks, env: dict[str, str]) -> None:
    told = "from django.conf import settings; print(settings.SENDONCE['BASE_URL'])"
    say = ["shell", "--no-imports", "-c", told]
    for name in ("one", "two"):
        env["SENDONCE_BASE_URL"] = f"https://{name}.example.org"
        assert forks.manage(*say, env=env).stdout == f"https://{name}.example.org\n"
    del env["SECRET_KEY"], env["DEBUG"]
    done = forks.manage("check", env=env)
    assert done.returncode == 2
    assert "SECRET_KEY" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_fork_and_is_told(
    number: int, forks: Forks, env: dict[str, str], tmp_path: Path
) -> None:
    idle = tmp_path / "idle.py"
    idle.write_text("import signal\nwhile True:\n    signal.pause()\n")
    process = forks.start([str(idle)], env=env, out=tmp_path / "out")
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(60) == -number
