"""Builds the tree of an agent that runs on Node, or whose npm package brings a program of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from seatrial.agents.kits.elf import read_program
from seatrial.agents.kits.own_loader import KIT_DIR, machine_number
from seatrial.agents.kits.packages import NODE, NODE_VERSION, NodePackages, PythonPackages, Tools
from seatrial.agents.kits.recipes import Recipe
from seatrial.errors import SetupProblem
from seatrial.sandboxes.terminal.bundle import make_once
from seatrial.system.removal import remove_tree

_START = '#!/bin/sh\nexec {node} {script} "$@"\n'


class NodeTree:
    """One build. Blocking."""

    def __init__(self, recipe: Recipe, tools: Tools, scratch: Path, runtimes: Path) -> None:
        self._recipe = recipe
        self._tools = tools
        self._scratch = scratch
        self._runtimes = runtimes
        self._npm: NodePackages | None = None

    def latest(self) -> str:
        return self._packages.latest(self._recipe.package, self._scratch)

    def build(self, tree: Path, version: str) -> str:
        """Fills the tree. Returns the version that was installed."""
        recipe = self._recipe
        packages = tree / "agent"
        self._packages.install([f"{recipe.package}@{version}", *recipe.also], packages)
        for leftover in (packages / "node_modules" / ".package-lock.json", packages / "package.json"):
            leftover.unlink(missing_ok=True)
        about = json.loads((packages / "node_modules" / recipe.package / "package.json").read_text())
        for foreign in _foreign_programs(packages):
            foreign.unlink()
        start = tree / "bin" / recipe.program
        start.parent.mkdir()
        if (program := self._native(packages)) is not None:
            program.chmod(0o755)
            start.symlink_to(KIT_DIR / program.relative_to(tree))
        else:
            shutil.copyfile(self._packages.program, tree / "bin" / "node")
            (tree / "bin" / "node").chmod(0o755)
            script = KIT_DIR / "agent" / "node_modules" / recipe.package / _script(about, recipe.program)
            start.write_text(_START.format(node=KIT_DIR / "bin" / "node", script=script))
            start.chmod(0o755)
        remove_tree(packages / "node_modules" / ".bin")
        return str(about["version"])

    @property
    def _packages(self) -> NodePackages:
        if self._npm is None:
            wheels = PythonPackages(self._tools)
            name = f"node-{NODE_VERSION}".replace(".*", "")
            node = make_once(self._runtimes / name, lambda made: wheels.install([f"{NODE}=={NODE_VERSION}"], made))
            self._npm = NodePackages(self._tools, node)
        return self._npm

    def _native(self, packages: Path) -> Path | None:
        if not self._recipe.native:
            return None
        found = sorted((packages / "node_modules").glob(self._recipe.native))
        return next((path for path in found if read_program(path) is not None), None)


def _script(about: dict[str, object], program: str) -> PurePosixPath:
    """The script behind a command of a package."""
    commands = about.get("bin")
    path = commands.get(program) if isinstance(commands, dict) else commands
    if not isinstance(path, str) or ".." in PurePosixPath(path).parts or path.startswith("/"):
        raise SetupProblem(f"The package {about.get('name')} has no command {program}.")
    return PurePosixPath(path)


def _foreign_programs(packages: Path) -> Iterator[Path]:
    """Programs for other architectures, which some packages bring along."""
    here = machine_number()
    for path in list(packages.rglob("*")):
        if not path.is_symlink() and path.is_file():
            program = read_program(path)
            if program is not None and program.machine != here:
                yield path
