"""Builds one kit in a scratch directory: the agent's packages, its runtime, a shell, and the kit's own loader."""

from __future__ import annotations

import json
import platform
import shutil
from datetime import UTC, datetime
from pathlib import Path

from seatrial.agents.kits.kit import Kit, digest_of, settle_modes, size_of
from seatrial.agents.kits.node_tree import NodeTree
from seatrial.agents.kits.own_loader import adopt, machine_libc
from seatrial.agents.kits.packages import Tools
from seatrial.agents.kits.python_tree import PythonTree
from seatrial.agents.kits.recipes import Recipe
from seatrial.errors import SetupProblem

_STDBUF = """#!/bin/sh
while :; do
    case "${1-}" in
        -i | -o | -e) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
exec "$@"
"""
"""For images without GNU's own, through which Harbor's commands write their log. With this one it comes in larger
pieces."""


class KitBuild:
    """One build. Blocking; ``tools.stop()`` ends it from another thread."""

    def __init__(self, recipe: Recipe, tools: Tools, scratch: Path, runtimes: Path) -> None:
        """``runtimes`` keeps what kits share: Node, and the standard library of Python."""
        self._recipe = recipe
        self._scratch = scratch
        self._tree = (NodeTree if recipe.runtime == "node" else PythonTree)(recipe, tools, scratch, runtimes)

    def latest(self) -> str:
        """What ``latest`` means at the registry now."""
        found = self._tree.latest()
        if not found:
            raise SetupProblem(f"The registry does not tell the latest version of {self._recipe.package}.")
        return found

    def make(self, version: str) -> tuple[Kit, Path]:
        """The kit and its folder in the scratch directory, which has the tree and ``kit.json``."""
        folder = self._scratch / "kit"
        tree = folder / "tree"
        tree.mkdir(parents=True)
        installed = self._tree.build(tree, version)
        self._add_shell(tree)
        adopt(tree, self._tree.library_places if isinstance(self._tree, PythonTree) else ())
        settle_modes(tree)
        kit = Kit(
            agent=self._recipe.agent,
            version=installed,
            arch=platform.machine(),
            libc=machine_libc(),
            program=self._recipe.program,
            digest=digest_of(tree),
            size_bytes=size_of(tree),
            made_at=datetime.now(UTC),
        )
        (folder / "kit.json").write_text(json.dumps(kit.model_dump(mode="json"), indent=2) + "\n")
        return kit, folder

    def _add_shell(self, tree: Path) -> None:
        bash = shutil.which("bash")
        if bash is None:
            raise SetupProblem("Agent kits need bash on this machine.", fix="Run: apt-get install bash")
        shutil.copyfile(bash, tree / "bin" / "bash")
        (tree / "bin" / "stdbuf").write_text(_STDBUF)
        for name in ("bash", "stdbuf"):
            (tree / "bin" / name).chmod(0o755)
