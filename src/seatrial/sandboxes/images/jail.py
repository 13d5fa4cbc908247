"""Confines builders: a program that ``confinement`` starts. It uses only the standard library.

It runs one or more commands, each in separate namespaces and in a root that has only the files of its step. The host's
root is not mounted there at all. The argument is a ``Plan`` as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_SIGKILL = 9
_LAST_CAPABILITY = 40
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 21, 31})
"""CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT SYS_ADMIN SETFCAP.

Without MKNOD no build makes a device node, without DAC_READ_SEARCH none opens a file by its handle."""
_MKNOD = 27
_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Step:
    """One command."""

    argv: tuple[str, ...]
    env: dict[str, str]
    readable: tuple[str, ...]
    """Files and folders at their own paths. Missing ones are left out."""
    writable: tuple[str, ...]
    renamed: dict[str, str]
    """Folders and files that it may read at another path: the path, and their real place. In this order."""
    files: dict[str, str]
    """Contents of small files to make, by path."""
    network: bool
    """Whether it has the network of this program. Otherwise it has an empty one."""
    cgroup_files: tuple[str, ...]
    """``cgroup.procs`` files of the cgroups that it enters."""
    makes_nodes: bool = False
    """Keeps MKNOD, for pulled layers with device nodes. The caller removes them afterwards."""


@dataclass(frozen=True)
class Plan:
    """The steps to run, one after the other until one fails."""

    root: str
    """An empty folder, to mount the root at."""
    disk: str
    """Folder to mount ``disk_image`` at."""
    disk_image: str
    """File with a file system of a fixed size. Empty for no mount."""
    steps: tuple[Step, ...]


def main(text: str) -> int:
    fields = json.loads(text)
    plan = Plan(**{**fields, "steps": tuple(Step(**step) for step in fields["steps"])})
    _mount(None, "/", None, _REC | _PRIVATE)
    if plan.disk_image:
        subprocess.run(
            ["mount", "-t", "ext4", "-o", "loop,nodev,nosuid", plan.disk_image, plan.disk], check=True, timeout=60
        )
    for step in plan.steps:
        status = _run(plan, step)
        if status:
            return status
    return 0


def _run(plan: Plan, step: Step) -> int:
    """Forks twice: one process enters the namespaces, the next is the first process in them and runs the command."""
    child = os.fork()
    if child:
        return _exit_code(os.waitpid(child, 0)[1])
    try:
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        for file in step.cgroup_files:
            Path(file).write_text("0")
        if not step.network:
            os.unshare(os.CLONE_NEWNET)
        os.unshare(os.CLONE_NEWNS | os.CLONE_NEWPID | os.CLONE_NEWIPC | os.CLONE_NEWUTS | os.CLONE_NEWCGROUP)
        first = os.fork()
        if first:
            os._exit(_exit_code(os.waitpid(first, 0)[1]))
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        _become(plan, step)
    except BaseException as error:
        sys.stderr.write(f"Error: the build could not be confined: {error}\n")
        sys.stderr.flush()
    os._exit(126)


def _become(plan: Plan, step: Step) -> NoReturn:
    _mount("tmpfs", plan.root, "tmpfs", _NOSUID | _NODEV, "mode=755,size=64m")
    _mount_usual(plan.root)
    for path, content in step.files.items():
        _place(plan.root, path, folder=False).write_text(content)
    for path in step.readable:
        _bind(plan.root, path, path, writable=False)
    for path, source in step.renamed.items():
        _bind(plan.root, source, path, writable=False)
    for path in step.writable:
        _bind(plan.root, path, path, writable=True)
    _mount(None, plan.root, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    _call(_libc.sethostname(b"build", ctypes.c_size_t(5)), "sethostname")
    os.chdir(plan.root)
    _call(_libc.pivot_root(b".", b"."), "pivot_root")
    _call(_libc.umount2(b".", _DETACH), "umount")
    os.chdir("/")
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES and not (step.makes_nodes and capability == _MKNOD):
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # an older kernel knows fewer
    os.execve(step.argv[0], step.argv, step.env)  # noqa: S606 - the builder, in a separate root


def _mount_usual(root: str) -> None:
    """What every program expects: ``/proc``, a harmless ``/dev``, a read-only ``/sys``, places for small files."""
    for name in ("proc", "sys", "dev", "tmp", "var/tmp", "run", "root"):
        Path(root, name).mkdir(parents=True, exist_ok=True)
    _mount("proc", f"{root}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _mount("sysfs", f"{root}/sys", "sysfs", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    _mount("tmpfs", f"{root}/dev", "tmpfs", _NOSUID | _NOEXEC, "mode=755,size=64k")
    for node in _NODES:
        Path(root, "dev", node).touch()
        _mount(f"/dev/{node}", f"{root}/dev/{node}", None, _BIND)
    for name in ("pts", "shm"):
        Path(root, "dev", name).mkdir()
    _mount("devpts", f"{root}/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    _mount("tmpfs", f"{root}/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777,size=256m")  # noqa: S108
    for name, target in _LINKS.items():
        Path(root, "dev", name).symlink_to(target)
    for name in ("tmp", "var/tmp", "run"):
        _mount("tmpfs", f"{root}/{name}", "tmpfs", _NOSUID | _NODEV, "mode=1777,size=256m")


def _bind(root: str, source: str, path: str, *, writable: bool) -> None:
    if not Path(source).exists():
        return
    target = str(_place(root, path, folder=Path(source).is_dir()))
    _mount(source, target, None, _BIND)
    lock = _NODEV | _NOSUID | (0 if writable else _RDONLY)
    _mount(None, target, None, _REMOUNT | _BIND | lock)


def _place(root: str, path: str, *, folder: bool) -> Path:
    place = Path(root + path)
    place.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        place.mkdir(exist_ok=True)
    elif not place.exists():
        place.touch()
    return place


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _call(_libc.mount(*words, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def _prctl(option: int, value: int) -> None:
    _call(_libc.prctl(option, value, 0, 0, 0), "prctl")


def _call(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
