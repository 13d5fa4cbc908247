"""FAULTS 29: a seeded random mix of faults against workers that share a store. ``make faults`` runs it for long.

``python -m tests.faults.mix --kind local|fleet --seconds 150 [--seed N]``. The seed is printed first and decides what
happens in which order; when exactly, the machine decides.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from seatrial.domain.job import Job
from seatrial.errors import StoreUnavailable
from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, open_installation
from tests.faults.checker import Checker
from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import submit

_WORKERS = 3
_TRIALS = 8
_OTHER_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


class Mix:
    """Submits jobs and does harm until the time is over; then everything has to come right."""

    def __init__(
        self,
        setup: Setup,
        seed: int,
        installation: Installation,
        server: PostgresServer | None,
        broker: RedisServer | None,
    ) -> None:
        self._setup = setup
        self._chance = random.Random(seed)
        self._installation = installation
        self._server = server
        self._broker = broker
        self._workers: list[FakeWorker] = []
        self._stopped: list[FakeWorker] = []
        self.jobs: list[Job] = []
        self.done: Counter[str] = Counter()
        self._faults: list[Callable[[], Awaitable[None]]] = [
            self._kill,
            self._freeze,
            self._store_away,
            self._cancel,
            self._many_hints,
            self._full_disk,
            self._leave,
        ]
        if broker is not None:
            self._faults += [self._broker_away, self._broker_forgets]

    async def run(self, seconds: float) -> None:
        try:
            for _ in range(_WORKERS):
                self._hire()
            for worker in self._workers:
                await asyncio.to_thread(worker.until_ready)
            deadline = time.monotonic() + seconds
            order = self._chance.sample(self._faults, len(self._faults))  # each at least once, however long it takes
            while order or time.monotonic() < deadline:
                await self._submit()
                await asyncio.sleep(self._chance.uniform(0.1, 0.8))
                fault = order.pop() if order else self._chance.choice(self._faults)
                self.done[fault.__name__.strip("_")] += 1
                await fault()
                self._fill_up()
            await Checker(self._installation).ended(*self.jobs)
        finally:
            for worker in (*self._workers, *self._stopped):
                worker.end()

    async def check(self) -> None:
        await Checker(self._installation).check(*self.jobs)

    def _hire(self, **changes: int) -> None:
        around = self._chance.choice([(), _OTHER_NAMESPACE])
        self._workers.append(FakeWorker.launch(replace(self._setup, **changes), around))  # type: ignore[arg-type]

    def _fill_up(self) -> None:
        self._workers = [worker for worker in self._workers if worker.alive]
        while len(self._workers) < _WORKERS:
            self._hire()

    async def _submit(self) -> None:
        """What is refused was not accepted; what was acknowledged has to end."""
        try:
            self.jobs.append(await submit(self._installation, _TRIALS))
        except StoreUnavailable:
            self.done["refused submission"] += 1

    async def _kill(self) -> None:
        self._chance.choice(self._workers).end()

    async def _freeze(self) -> None:
        worker = self._chance.choice(self._workers)
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(self._chance.choice([0.5, 1.5 * self._setup.lease_sec]))
        worker.send(signal.SIGCONT)

    async def _store_away(self) -> None:
        seconds = self._chance.choice([0.5, 1.2 * self._setup.lease_sec])
        if self._server is None:
            path = self._installation.settings.home / "seatrial.db"
            with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as foreign:
                foreign.execute("BEGIN IMMEDIATE")
                await asyncio.sleep(seconds)
                foreign.execute("ROLLBACK")
            return
        hard = self._chance.random() < 0.5
        await asyncio.to_thread(self._server.stop_hard if hard else self._server.pause)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._server.start if hard else self._server.resume)

    async def _broker_away(self) -> None:
        assert self._broker is not None
        await asyncio.to_thread(self._broker.stop)
        await asyncio.sleep(self._chance.choice([0.5, 1.2 * self._setup.lease_sec]))
        await asyncio.to_thread(self._broker.start)

    async def _broker_forgets(self) -> None:
        assert self._broker is not None
        await asyncio.to_thread(self._broker.command, "FLUSHALL")

    async def _cancel(self) -> None:
        if self.jobs:
            try:
                job = self._chance.choice(self.jobs[-5:])
                await self._installation.store.jobs.cancel(job.id, self._installation.clock())
            except StoreUnavailable:
                self.done["refused cancel"] += 1

    async def _many_hints(self) -> None:
        for _ in range(50):
            await self._installation.wake_up.announce()

    async def _full_disk(self) -> None:
        """A worker that finds no room: it claims nothing, and nobody waits for it."""
        self._chance.choice(self._workers).end()
        self._hire(disk_low_water_mb=1 << 30)

    async def _leave(self) -> None:
        worker = self._chance.choice(self._workers)
        worker.send(signal.SIGTERM)
        self._workers.remove(worker)
        self._stopped.append(worker)


async def run_mix(kind: str, seconds: float, seed: int, place: Path) -> Mix:
    """Returns when everything came right; raises ``AssertionError`` where not."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgresServer()) if kind == "fleet" else None
        broker = stack.enter_context(RedisServer()) if kind == "fleet" else None
        url = await server.create_database("mix") if server is not None else ""
        setup = Setup(
            home=str(place / "home"),
            diary=str(place / "diary"),
            database_url=url,
            broker_url=broker.url if broker is not None else "",
            capacity=5,
            lease_sec=4.0,
            heartbeat_sec=0.5,
            reap_sec=0.5,
            seconds=0.3,
        )
        async with open_installation(setup.settings()) as installation:
            mix = Mix(setup, seed, installation, server, broker)
            await mix.run(seconds)
            await mix.check()
            return mix


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("local", "fleet"), required=True)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if given.seed is None else given.seed
    print(f"{given.kind}: {given.seconds:g} s of faults, seed {seed}", flush=True)
    place = Path(tempfile.mkdtemp(prefix="seatrial-faults-"))
    mix = asyncio.run(run_mix(given.kind, given.seconds, seed, place))
    counts = ", ".join(f"{count} × {name.replace('_', ' ')}" for name, count in sorted(mix.done.items()))
    print(f"{given.kind}: {len(mix.jobs)} jobs, {len(mix.jobs) * _TRIALS} trials, all ended once; {counts}")
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
