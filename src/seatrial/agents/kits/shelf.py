"""The kits of this machine: found, built once however many processes ask, listed and pruned.

A kit is a folder with its tree and ``kit.json``. It is renamed into place when it is whole, so a build that is killed
leaves no half kit. A lock of each kit's name makes processes build it one after the other, and the second finds it.
"""

from __future__ import annotations

import asyncio
import hashlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seatrial.agents.kits.build import KitBuild
from seatrial.agents.kits.kit import Kit, digest_of
from seatrial.agents.kits.own_loader import machine_libc
from seatrial.agents.kits.packages import Stopped, Tools
from seatrial.agents.kits.recipes import LATEST, RECIPES, Recipe, wanted_version
from seatrial.errors import InvalidInput, SetupProblem
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.single_flight import SingleFlight
from seatrial.system.file_locks import file_lock
from seatrial.system.removal import remove_tree

IDLE_SEC = 600.0
"""A kit used within this time is kept, because a sandbox may be about to borrow it."""
_LATEST_FOR = timedelta(hours=12)
"""How long a registry's answer to ``latest`` holds on this machine. A job keeps its own version forever."""
_FAILURE_FOR_SEC = 300.0
_SCRAP_SEC = 86_400.0
FORMAT = 1
"""Of trees. Count it up when a kit of the same packages would have another content."""

type Work[T] = Callable[[KitBuild, Path], T]
"""Gets a build and its scratch directory."""


@dataclass(frozen=True, slots=True)
class ReadyKit:
    """A kit and where its tree is."""

    kit: Kit
    tree: Path
    used_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.tree.parent.name


class KitShelf:
    """One per process. ``directory`` may be shared with other processes of this machine."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        limit_bytes: int = 0,
        recipes: Mapping[str, Recipe] = RECIPES,
        runtimes: Path | None = None,
    ) -> None:
        """``environment`` is that of pip, uv and npm. ``limit_bytes``: all kits together; 0 is no limit."""
        self.recipes = recipes
        self._directory = directory
        self._runtimes = runtimes or directory / "runtimes"
        self._environment = dict(environment)
        self.limit_bytes = limit_bytes
        self._uses = UseRecords(directory / "uses")
        self._flights: SingleFlight[ReadyKit] = SingleFlight()
        self._checked: set[str] = set()
        self._failed: dict[tuple[str, str], tuple[float, SetupProblem]] = {}

    async def get(self, agent: str, version: str | None = None) -> ReadyKit:
        """The kit of an agent, built if it is not there. Raises ``SetupProblem`` if that is not possible, and
        ``InvalidInput`` for an agent without a recipe."""
        recipe = self._recipe(agent)
        wanted = wanted_version(recipe, version)
        if wanted == LATEST:
            wanted = await self._latest(recipe)
        failed = self._failed.get((agent, wanted))
        if failed is not None and time.monotonic() - failed[0] < _FAILURE_FOR_SEC:
            raise failed[1]
        try:
            return await self._flights.join((agent, wanted), lambda log: self._found_or_built(recipe, wanted))
        except SetupProblem as problem:
            self._failed[agent, wanted] = time.monotonic(), problem
            raise

    @contextmanager
    def hold(self, ready: ReadyKit) -> Iterator[None]:
        """Keeps a kit from being pruned."""
        with self._uses.hold(ready.name):
            yield

    def ready(self) -> list[ReadyKit]:
        """The most recently used first."""
        found = (self._read(path) for path in self._directory.glob("*/kit.json"))
        return sorted(filter(None, found), key=_age, reverse=True)

    async def prune(self, *, everything: bool = False, dry_run: bool = False) -> list[ReadyKit]:
        """Removes the least recently used kits until the rest fits the limit; with ``everything``, all that no sandbox
        uses. Returns what was removed."""
        return await asyncio.to_thread(self._prune, everything, dry_run)

    def _recipe(self, agent: str) -> Recipe:
        try:
            return self.recipes[agent]
        except KeyError:
            known = ", ".join(sorted(self.recipes))
            raise InvalidInput(
                f"There is no kit for the agent {agent!r}.", field="agent", fix=f"Known: {known}."
            ) from None

    async def _latest(self, recipe: Recipe) -> str:
        note = self._directory / f"{recipe.agent}.latest"
        async with file_lock(self._lock_file(f"{recipe.agent}.latest")):
            known, age = _read_note(note)
            if known and age < _LATEST_FOR:
                return known
            try:
                found = await self._with_tools(recipe, recipe.agent, lambda build, _: build.latest())
            except SetupProblem:
                # Without a registry, the newest that is here is the latest.
                here = [ready for ready in self.ready() if ready.kit.agent == recipe.agent]
                if not here:
                    raise
                return max(here, key=lambda ready: ready.kit.made_at).kit.version
            found = wanted_version(recipe, found)
            _write_note(note, found)
            return found

    async def _found_or_built(self, recipe: Recipe, version: str) -> ReadyKit:
        name = _name(recipe, version)
        if (ready := await self._usable(name)) is not None:
            return ready
        async with file_lock(self._lock_file(name)):
            if (ready := await self._usable(name)) is not None:
                return ready
            await self._with_tools(recipe, name, lambda build, scratch: self._shelve(build, version, name))
            ready = await self._usable(name)
            await self.prune()
        if ready is None:
            raise SetupProblem(f"The kit of {recipe.agent} {version} vanished while it was built.")
        return ready

    def _shelve(self, build: KitBuild, version: str, name: str) -> None:
        kit, folder = build.make(version)
        if kit.version != version:
            raise SetupProblem(f"The registry gave {kit.agent} {kit.version} instead of {version}.")
        target = self._directory / name
        remove_tree(target)  # one whose content was damaged
        folder.rename(target)
        self._checked.add(name)

    async def _usable(self, name: str) -> ReadyKit | None:
        """The kit, if it is there and whole. Each process compares its content with its digest once."""
        ready = self._read(self._directory / name / "kit.json")
        if ready is None or not self._uses.note(name):
            return None
        if name not in self._checked:
            if await asyncio.to_thread(digest_of, ready.tree) != ready.kit.digest:
                return None
            self._checked.add(name)
        return ready

    async def _with_tools[T](self, recipe: Recipe, name: str, work: Work[T]) -> T:
        """Runs blocking work in a thread with a scratch directory; a cancellation ends the tools that it started."""
        tools = Tools(self._environment)

        def run() -> T:
            for stale in self._directory.glob(f".making-{name}-*"):
                remove_tree(stale)  # the caller has the lock of this name, so nobody works there
            self._directory.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(dir=self._directory, prefix=f".making-{name}-"))
            try:
                return work(KitBuild(recipe, tools, scratch, self._runtimes), scratch)
            finally:
                remove_tree(scratch)

        task = asyncio.create_task(asyncio.to_thread(run))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            tools.stop()
            await asyncio.wait([task])
            if not task.cancelled() and not isinstance(error := task.exception(), Stopped | SetupProblem | None):
                raise error from None
            raise

    def _prune(self, everything: bool, dry_run: bool) -> list[ReadyKit]:
        removed: list[ReadyKit] = []
        kits = self.ready()
        total = sum(ready.kit.size_bytes for ready in kits)
        for ready in reversed(kits):
            if not everything and (not self.limit_bytes or total <= self.limit_bytes):
                break
            with self._uses.removing(ready.name, 0.0 if everything else IDLE_SEC) as free:
                if not free:
                    continue
                if not dry_run:
                    remove_tree(ready.tree.parent)
                    self._uses.forget(ready.name)
                    self._checked.discard(ready.name)
            total -= ready.kit.size_bytes
            removed.append(ready)
        if not dry_run:
            self._remove_scraps()
        if everything and not dry_run and self._runtimes.parent == self._directory and not self.ready():
            remove_tree(self._runtimes)
        return removed

    def _remove_scraps(self) -> None:
        for path in self._directory.glob(".making-*"):
            if time.time() - path.lstat().st_mtime > _SCRAP_SEC:
                remove_tree(path)

    def _read(self, path: Path) -> ReadyKit | None:
        try:
            kit = Kit.model_validate_json(path.read_text())
        except (OSError, ValueError):
            return None
        used = self._uses.last_used(path.parent.name)
        return ReadyKit(kit, path.parent / "tree", datetime.fromtimestamp(used, UTC) if used else None)

    def _lock_file(self, name: str) -> Path:
        return self._directory / "locks" / name


def _name(recipe: Recipe, version: str) -> str:
    """Changes with everything that the content depends on, as far as it is known before the build."""
    facts = hashlib.sha256(f"{FORMAT}\n{recipe}\n{platform.python_version()}".encode()).hexdigest()[:10]
    return f"{recipe.agent}@{version}-{platform.machine()}-{machine_libc()}-{facts}"


def _age(ready: ReadyKit) -> datetime:
    return ready.used_at or ready.kit.made_at


def _read_note(note: Path) -> tuple[str, timedelta]:
    try:
        return note.read_text().strip(), timedelta(seconds=max(time.time() - note.stat().st_mtime, 0))
    except OSError:
        return "", timedelta.max


def _write_note(note: Path, text: str) -> None:
    scratch = note.with_name(f".{note.name}-{time.monotonic_ns()}")
    scratch.write_text(text + "\n")
    scratch.replace(note)
