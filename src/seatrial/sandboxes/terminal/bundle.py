"""Programs of this machine as a directory that runs in any image, whatever C library the image has.

A bundle has programs with their libraries and their loader. A small shell script starts each program with that loader,
so the environment of the program's children does not change. ``terminal`` makes a bundle of tmux and the recorder,
``agents.mini_swe_agent`` one of an agent with its interpreter.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from seatrial.errors import SetupProblem

_WRAPPER = """#!/bin/sh
{environment}exec {place}/lib/ld.so --library-path {place}/lib --argv0 {argv0} {place}/{program} "$@"
"""


def make_once(directory: Path, build: Callable[[Path], None]) -> Path:
    """The directory. The first caller builds it, and it appears only when it is complete. Blocking."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with (directory.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not directory.is_dir():
                with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".making-") as scratch:
                    made = Path(scratch) / "bundle"
                    build(made)
                    _open_to_all(made)
                    made.rename(directory)
    return directory


def interpreter() -> Path:
    """The Python that runs this process, not the link in a virtual environment."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()


def libraries_of(program: Path) -> list[Path]:
    """The shared libraries of a program and its loader. Empty for a static program. Blocking."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if done.returncode and "not a dynamic executable" not in done.stdout + done.stderr:
        raise SetupProblem(f"The libraries of {program} could not be listed: {done.stderr.strip()}")
    found = re.findall(r"^\s*(\S+)(?: => (/\S+))? \(0x", done.stdout, re.MULTILINE)
    paths = [Path(path or name) for name, path in found]
    return [path for path in paths if path.is_absolute()]  # the kernel's vdso has no path


def copy_libraries(programs: Iterable[Path], target: Path) -> None:
    """Copies the shared libraries of all these programs, and their loader as ``ld.so``."""
    for program in programs:
        for source in libraries_of(program):
            if (target / source.name).exists():
                continue  # another program needs it too
            shutil.copy2(source.resolve(), target / source.name)
            if source.name.startswith(("ld-linux", "ld-musl", "ld64")):
                shutil.copy2(source.resolve(), target / "ld.so")
    if not (target / "ld.so").is_file():
        raise SetupProblem("This machine's programs have no dynamic loader that could be bundled.")


def strip_symbols(programs: Iterable[Path]) -> None:
    """Removes debug symbols, most of a bundle's size, if this machine has ``strip``."""
    own = [str(path) for path in programs if path.is_file() and not _is_shared(path) and _is_program(path)]
    if own and shutil.which("strip") is not None:
        subprocess.run(["strip", "--strip-unneeded", *own], capture_output=True, check=False)


def wrapper(place: PurePosixPath, program: str, *, argv0: str, environment: str = "") -> str:
    """The script that starts a program of the bundle at ``place``."""
    return _WRAPPER.format(place=place, program=program, argv0=argv0, environment=environment)


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _is_shared(path: Path) -> bool:
    """Installers make hard links to files of their caches. A change would also change the cache."""
    return path.stat().st_nlink > 1


def _open_to_all(bundle: Path) -> None:
    """Lets all users read and run it, because sandboxes run as any user."""
    for path in [bundle, *bundle.rglob("*")]:
        if path.is_dir() or not (path.is_symlink() or _is_shared(path)):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
