"""Gives a kit a loader and libraries of its own, so that its programs run in an image with any C library, or with none.

The loader is a copy of this machine's. Where it searches for libraries is built into it, as paths of the distribution.
These paths are replaced, in place, by the kit's own, and the programs of the kit name this loader. So no variable has
to be set, which the agent's commands would inherit, and no start script hides a program from itself: some read their
own file, others start themselves again.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from seatrial.agents.kits.elf import Program, read_program, set_loader
from seatrial.errors import SetupProblem

KIT_DIR = PurePosixPath("/opt/seatrial/kit")
"""The place of an agent's kit inside every sandbox. It is short, because its paths replace others in place."""
LOADER = KIT_DIR / "ld.so"
LIBRARIES = KIT_DIR / "lib"

_GLIBC_LOADER = re.compile(r"/lib(64)?/ld-linux[^/]*\.so\.\d+")
_SEARCHED = re.compile(rb"/lib/([a-z0-9_]+-linux-gnu[a-z0-9]*)/\0/usr/lib/\1/\0/lib/\0/usr/lib/\0")
_CACHE = b"/etc/ld.so.cache\0"
_NO_CACHE = b"/proc/self/none/\0"
"""A path as long as the other, where there is never a file."""
_PRELOAD = b"/etc/ld.so.preload\0"
_NO_PRELOAD = b"/proc/self/nothing\0"


def machine_libc() -> str:
    """The C library that kits of this machine bring: ``glibc-2.36``."""
    kind, version = platform.libc_ver()
    return f"{kind or 'unknown'}-{version}" if version else kind or "unknown"


def adopt(tree: Path, beside: Iterable[Path] = ()) -> None:
    """Makes all programs of a tree use the kit's loader, and copies the libraries that they need from this machine.

    ``beside`` are further directories with libraries. Blocking. Raises ``SetupProblem`` if this machine's loader cannot
    be used."""
    found = dict(_programs(tree))
    (tree / "lib").mkdir(exist_ok=True)
    _copy_libraries(found.values(), _libraries() | _libraries_in(beside), tree / "lib")
    _copy_loader(tree / LOADER.name)
    for path, program in found.items():
        if _GLIBC_LOADER.fullmatch(program.loader):
            set_loader(path, program, str(LOADER))


def _programs(tree: Path) -> Iterator[tuple[Path, Program]]:
    here = machine_number()
    for path in tree.rglob("*"):
        program = read_program(path) if path.is_file() and not path.is_symlink() else None
        if program is not None and program.machine == here:
            yield path, program


def machine_number() -> int:
    """The number of this machine's architecture in ELF files."""
    program = read_program(Path("/proc/self/exe"))
    if program is None:
        raise SetupProblem("The programs of this machine cannot be read.")
    return program.machine


def _copy_libraries(programs: Iterable[Program], here: Mapping[str, Path], target: Path) -> None:
    known: set[str] = set()
    pending = [name for program in programs for name in program.needed]
    while pending:
        name = pending.pop()
        # What this machine does not have comes with the package, or belongs to a part that is not used.
        if name in known or name not in here or name.startswith("ld-linux"):
            continue
        known.add(name)
        shutil.copyfile(here[name], target / name)
        library = read_program(here[name])
        pending.extend(library.needed if library is not None else ())


def _libraries_in(directories: Iterable[Path]) -> dict[str, Path]:
    return {path.name: path for directory in directories for path in directory.glob("*.so*") if path.is_file()}


@cache
def _libraries() -> dict[str, Path]:
    """The libraries of this machine by name."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    here, found = machine_number(), dict[str, Path]()
    for name, path in re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", listed, re.MULTILINE):
        program = read_program(Path(path)) if name not in found else None
        if program is not None and program.machine == here:
            found[name] = Path(path).resolve()
    return found


def _copy_loader(target: Path) -> None:
    program = read_program(Path("/bin/sh"))
    loader = Path(program.loader) if program is not None and program.loader else None
    if loader is None or not _GLIBC_LOADER.fullmatch(str(loader)):
        raise SetupProblem("Agent kits need a machine with the GNU C library.")
    target.write_bytes(_own_paths(loader.read_bytes()))
    target.chmod(0o755)


def _own_paths(loader: bytes) -> bytes:
    """The loader with the kit's paths. Raises ``SetupProblem`` if it has no paths of the usual form."""
    own = str(LIBRARIES).encode()
    usual = _SEARCHED.search(loader)
    if usual is None or _CACHE not in loader or len(f"/lib/{usual[1].decode()}/") <= len(own):
        raise SetupProblem(
            "The loader of this machine's C library searches in unusual places, so no agent kit can be made from it.",
            fix="Use a worker on Debian or Ubuntu.",
        )

    def replaced(found: re.Match[bytes]) -> bytes:
        return b"\0".join(
            own.ljust(len(part), b"/") if len(part) > len(own) else part for part in found[0].split(b"\0")
        )

    return _SEARCHED.sub(replaced, loader).replace(_CACHE, _NO_CACHE).replace(_PRELOAD, _NO_PRELOAD)
