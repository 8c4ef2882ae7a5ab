"""Runs one program as somebody other than root; a script, executed by ``identity``.

PostgreSQL refuses to run as root, and the folders above a checkout may be closed to everybody
else (``/root`` is). Nothing is opened to others here; instead the program gets either

``namespace UID``
    a user namespace in which root's files belong to UID: same files, no root, no capability;
``user UID GID``
    another account, for which the folders must be open;
``reader UID GID``
    another account with the one capability to pass closed folders (CAP_DAC_READ_SEARCH);
``self``
    no change.

A script and not a ``preexec_fn``: that is unsafe in a process with threads, and a namespace can
only be made by a process with one. Run with ``python -I -S``; it needs the standard library only.

    unprivileged.py MODE [UID [GID]] DIRECTORY PROGRAM ARGUMENT...

changes to DIRECTORY and executes PROGRAM. Exit status 126 and one line on stderr: it could not.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
PR_SET_KEEPCAPS = 8
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
CANNOT = 126


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilitySets(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(libc: ctypes.CDLL, *arguments: int) -> int:
    padded = [*arguments, 0, 0, 0, 0][:5]
    return int(libc.prctl(*(ctypes.c_ulong(argument) for argument in padded)))


def enter_namespace(libc: ctypes.CDLL, uid: int) -> None:
    """Root's files seem to belong to ``uid``, which is who we are from the next exec on."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _checked(libc.unshare(CLONE_NEWUSER), "unshare")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outer_uid} 1"),
        ("gid_map", f"{uid} {outer_gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def become_reader(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    """``become``, keeping the capability to pass folders that are closed to ``uid``."""
    _checked(_prctl(libc, PR_SET_KEEPCAPS, 1), "keep capabilities")
    become(uid, gid)
    header = _CapabilityHeader(CAPABILITY_VERSION_3, 0)
    sets = (_CapabilitySets * 2)()
    bit = 1 << CAP_DAC_READ_SEARCH
    sets[0] = _CapabilitySets(bit, bit, bit)
    _checked(libc.capset(ctypes.byref(header), ctypes.byref(sets)), "capset")
    _checked(_prctl(libc, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH), "ambient set")


def main(arguments: list[str]) -> int:
    mode, *rest = arguments
    try:
        if mode != "self":
            libc = ctypes.CDLL(None, use_errno=True)
            uid = int(rest.pop(0))
            if mode == "namespace":
                enter_namespace(libc, uid)
            elif mode == "user":
                become(uid, int(rest.pop(0)))
            elif mode == "reader":
                become_reader(libc, uid, int(rest.pop(0)))
            else:
                raise ValueError(f"unknown mode {mode}")
            _checked(_prctl(libc, PR_SET_NO_NEW_PRIVS, 1), "no new privileges")
        os.umask(0o077)
        directory, *command = rest
        os.chdir(directory)
        os.execv(command[0], command)
    except (OSError, ValueError) as error:
        print(f"{mode}: {error}", file=sys.stderr)
    return CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
