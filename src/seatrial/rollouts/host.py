"""Opens rollouts and makes sure that they end. One host per environment that a trainer loads.

Any loop may call it, and any number of rollouts may be open; the work runs on the host's own loop. Sandboxes left by a
killed process are removed before the first rollout of the next one.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from seatrial.domain.trial import Phase
from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.engine.trials.retention import remove_dead_work_dirs
from seatrial.errors import Conflict
from seatrial.rollouts.background import BackgroundLoop
from seatrial.rollouts.graded import as_faults
from seatrial.rollouts.rollout import Rollout
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask
from seatrial.rollouts.trials import TrialMaker
from seatrial.sandboxes.docker.leftovers import Leftovers as DockerLeftovers
from seatrial.sandboxes.oci.leftovers import Leftovers as OciLeftovers
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.record import Abandoned, SandboxRecord
from seatrial.sandboxes.selection import engine_listens
from seatrial.sandboxes.sweep import sweep
from seatrial.settings import Settings
from seatrial.system.processes import ProcessIdentity, WorkerName
from seatrial.system.removal import remove_tree


class RolloutHost:
    """Opens rollouts, tracks the open ones, and closes them all."""

    def __init__(self, settings: Settings, rules: RolloutRules | None = None) -> None:
        self.rules = rules or RolloutRules()
        self._settings = settings
        self._options = SandboxOptions.of(settings)
        self._owner = Owner(install=f"rollouts-{uuid.uuid4().hex[:8]}")
        self._work_dir = settings.work_dir / WorkerName.mine().folder / self._owner.install
        self._loop = BackgroundLoop("seatrial-rollouts")
        self._trials = TrialMaker(self._options, self.rules, self._owner)
        self._opening: set[asyncio.Task[Any]] = set()
        self._open: set[Rollout] = set()
        self._sweeping: asyncio.Task[int | None] | None = None
        self._duties = Duties(system_clock)
        self._used = False
        self._closed = False
        self._process = os.getpid()

    async def open(self, task: FoundTask) -> Rollout:
        """Opens one sandbox for one trial. Raises a ``TrialFault`` if that fails; cancelling leaves nothing behind."""
        if self._closed:
            raise Conflict("These rollouts have been closed.")
        if not self._used:
            self._used = True
            atexit.register(self.abandon)
        return await self._loop.run(self._opened(task))

    async def close(self) -> None:
        """Ends every open rollout."""
        if not self._closed:
            self._closed = True
            self._end(await self._loop.run(self._close_all()))

    def close_now(self) -> None:
        """The same for callers without an event loop."""
        if not self._closed:
            self._closed = True
            self._end(self._loop.wait(self._close_all()))

    def abandon(self) -> None:
        """Called when the interpreter exits. Threads can no longer start then, so sandboxes are removed as if the
        process were gone."""
        if self._process == os.getpid():
            self._closed = True
            remove_own(self._options, self._owner, self._work_dir)

    @property
    def in_flight(self) -> int:
        """Number of rollouts that are open or opening."""
        return len(self._open) + len(self._opening)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _opened(self, task: FoundTask) -> Rollout:
        opening = asyncio.current_task()
        assert opening is not None
        self._opening.add(opening)
        try:
            with as_faults(Phase.START):
                await self._swept()
                trial = await self._trials.make(task, self._work_dir / uuid.uuid4().hex[:12])
                await trial.start()
            rollout = Rollout(task, trial, self._loop, self.rules.command_timeout_sec, self._open.discard)
            self._open.add(rollout)
            return rollout
        finally:
            self._opening.discard(opening)

    async def _swept(self) -> None:
        """Once, unless it fails: no rollout ends for what others left, and the next one tries again."""
        if self._sweeping is None:
            self._sweeping = asyncio.create_task(self._duties.once("leftovers", self._sweep))
        sweeping = self._sweeping
        if await asyncio.shield(sweeping) is None and self._sweeping is sweeping:
            self._sweeping = None

    async def _sweep(self) -> int:
        await remove_dead_work_dirs(self._settings.work_dir)
        return await remove_stray(self._options)

    async def _close_all(self) -> bool:
        """Returns whether everything is removed."""
        for opening in self._opening:
            opening.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        ends = await asyncio.gather(*(rollout.end() for rollout in list(self._open)), return_exceptions=True)
        await asyncio.to_thread(remove_files, self._work_dir)
        return not any(isinstance(end, BaseException) for end in ends)

    def _end(self, everything_gone: bool) -> None:
        self._loop.stop()
        if everything_gone:  # otherwise ``abandon`` tries again at exit
            atexit.unregister(self.abandon)


async def remove_stray(options: SandboxOptions) -> int:
    """Removes sandboxes whose process is gone."""

    async def none_leased() -> set[tuple[int, int]]:
        return set()

    return await sweep(options, "rollouts", none_leased)


def remove_own(options: SandboxOptions, owner: Owner, work_dir: Path) -> None:
    """Removes sandboxes of this process. Blocking, and without threads: the interpreter may be exiting."""
    me = ProcessIdentity.mine()

    def mine(record: SandboxRecord) -> bool:
        return record.owner == owner and record.process == me

    if any(mine(record) for record in OciLeftovers(options.run_dir).sandboxes()):
        OciLeftovers(options.run_dir).remove(mine)
    if engine_listens(options.docker_host):
        with suppress(Exception):  # the engine is gone; the next process removes what is left
            asyncio.run(_sweep_engine(options, mine))
    remove_files(work_dir)


def remove_files(work_dir: Path) -> None:
    """Removes the folder of a host, and the folder of its process if it is empty."""
    remove_tree(work_dir)
    with suppress(OSError):
        work_dir.parent.rmdir()


async def _sweep_engine(options: SandboxOptions, mine: Abandoned) -> None:
    async with DockerLeftovers.at(options.docker_host) as docker:
        if any(mine(container.record) for container in await docker.containers()):
            await docker.sweep(mine)
