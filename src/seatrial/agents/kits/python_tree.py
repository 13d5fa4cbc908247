"""Builds the tree of an agent that is a Python package: a copy of this machine's interpreter, and wheels."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path, PurePosixPath

from seatrial.agents.kits.own_loader import KIT_DIR
from seatrial.agents.kits.packages import PythonPackages, Tools
from seatrial.agents.kits.recipes import LATEST, Recipe
from seatrial.errors import SetupProblem
from seatrial.sandboxes.terminal.bundle import interpreter, make_once
from seatrial.system.removal import remove_tree

_NOT_NEEDED = (
    *("test", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo", "site-packages", "__pycache__"),
    *("config-*", "pydoc_data", "*.a"),
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")
_START = """#!{python} -IB
import sys

from {module} import {name}

sys.argv[0] = "{program}"
sys.exit({call}())
"""
"""Isolated (-I): the variables and the working directory of a task bring no module into the agent."""


class PythonTree:
    """One build. Blocking."""

    def __init__(self, recipe: Recipe, tools: Tools, scratch: Path, runtimes: Path) -> None:
        self._recipe = recipe
        self._packages = PythonPackages(tools)
        self._scratch = scratch
        self._runtimes = runtimes

    def latest(self) -> str:
        return self._packages.latest(self._recipe.package, self._scratch)

    def build(self, tree: Path, version: str) -> str:
        """Fills the tree. Returns the version that was installed."""
        recipe = self._recipe
        library = tree / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        (tree / "bin").mkdir(parents=True)
        shutil.copytree(self._standard_library(), library)
        packages = library / "site-packages"
        exact = recipe.package if version == LATEST else f"{recipe.package}=={version}"
        self._packages.install([exact, *recipe.also], packages)
        about = next(iter(distributions(name=recipe.package, path=[str(packages)])), None)
        if about is None:
            raise SetupProblem(f"The package {recipe.package} was not installed.")
        _write_start(about, recipe.program, tree / "bin" / recipe.program)
        for name in (*recipe.without, "bin"):
            remove_tree(packages / name)
        _compile(packages, KIT_DIR / packages.relative_to(tree))
        shutil.copyfile(interpreter(), tree / "bin" / "python3")
        (tree / "bin" / "python3").chmod(0o755)
        return about.version

    def _standard_library(self) -> Path:
        """Compiled once for all kits of this machine."""
        place = KIT_DIR / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"

        def build(library: Path) -> None:
            shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*_NOT_NEEDED))
            _copy_extensions(library)
            _compile(library, place)

        return make_once(self._runtimes / f"python-{platform.python_version()}-small", build)

    @property
    def library_places(self) -> tuple[Path, ...]:
        """Where an interpreter that was built by hand keeps its library."""
        return (interpreter().parent.parent / "lib",)


def _copy_extensions(library: Path) -> None:
    """Some Python builds keep compiled modules in another directory."""
    dynload = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    if dynload.is_dir() and not (library / "lib-dynload").is_dir():
        shutil.copytree(dynload, library / "lib-dynload")


def _write_start(about: Distribution, program: str, start: Path) -> None:
    commands = about.entry_points.select(group="console_scripts", name=program)
    command: EntryPoint | None = next(iter(commands), None)
    if command is None or not all(map(_IDENTIFIER.fullmatch, (command.module, command.attr))):
        raise SetupProblem(f"The package {about.name} has no command {program}.")
    python, name = KIT_DIR / "bin" / "python3", command.attr.partition(".")[0]
    text = _START.format(python=python, module=command.module, name=name, program=program, call=command.attr)
    start.write_text(text)
    start.chmod(0o755)


def _compile(library: Path, place: PurePosixPath) -> None:
    """The kit is read-only, so a module that is not compiled now would be compiled at each start. Runs no module."""
    command = [str(interpreter()), "-IBm", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    # The paths in tracebacks are those of the sandbox, and the same kit has the same content everywhere.
    paths = ["-s", str(library), "-p", str(place)]
    subprocess.run([*command, *paths, str(library)], capture_output=True, check=False)
