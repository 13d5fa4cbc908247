"""Three machines around one PostgreSQL, one Redis and one S3 server, while machines are killed, cut off and added.

``python -m tests.faults.site --trials 300`` makes namespaces of its own for all of it and goes into them: the network
between the machines and the servers' files exist nowhere else. When the process ends, however it ends, the kernel ends
everything inside and takes back the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import asyncpg
from moto.server import ThreadedMotoServer

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.ports.store import TrialFilter
from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, open_installation
from tests.command_line import image_cache_dir
from tests.faults.checker import Checker
from tests.faults.machine import Boot, Machine
from tests.faults.trial_worker import Setup
from tests.live_processes import TASK

_FILES = Path("/srv")
_HUB = "10.77.0.1"
_S3_PORT = 9000
_BUCKET = "trials"
_PATIENCE_SEC = 240.0
_INSIDE = "SEATRIAL_TEST_SITE"
_SESSIONS = """SELECT pid, client_addr, state, wait_event, pg_blocking_pids(pid), now() - xact_start AS since,
    left(query, 200) FROM pg_stat_activity WHERE backend_type = 'client backend'"""
_NEW = ("--net", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child")


class Site:
    """The machines, and what happens to them. The trials of a job wait until its gate is opened, so that machines hold
    some of them when harm is done, however slow everything is."""

    def __init__(self, installation: Installation, setup: Setup, place: Path, cache: Path | None = None) -> None:
        """With an image cache, the machines have real sandboxes."""
        self._installation = installation
        self._setup = setup
        self._boot = Boot.fake(setup) if cache is None else Boot.real(setup, cache)
        self._agent = "oracle" if cache is None else "tests.e2e.agents:Patient"
        self._place = place
        self._machines: dict[int, Machine] = {}
        self._began = time.monotonic()
        self.jobs: list[Job] = []

    async def run(self, trials: int, brief: bool) -> None:
        """Harm is done while the trials run; returns when all have ended as they should."""
        try:
            await (self._all_at_once(trials) if brief else self._one_after_another(trials))
            await Checker(self._installation).ended(*self.jobs, seconds=_PATIENCE_SEC)
            await self._check()
        except BaseException:
            for machine in self._machines.values():
                print(f"{machine.log.name}:\n{machine.log.read_text()[-3000:]}", flush=True)
            print(await self._sessions(), flush=True)
            raise
        finally:
            for machine in self._machines.values():
                machine.kill()

    async def _one_after_another(self, trials: int) -> None:
        first, second, third = [self._add() for _ in range(3)]
        await self._submit(trials // 3)
        await self._cut_off(first)
        await self._submit(trials // 3)
        await self._kill(second)
        self._open_gate()
        await self._submit(trials - 2 * (trials // 3))
        await self._holds(self._add())
        await self._kill(first, third)
        await self._holds(self._add())
        self._open_gate()

    async def _all_at_once(self, trials: int) -> None:
        first, second, _ = [self._add() for _ in range(3)]
        await self._submit(trials)
        await self._holds(first)
        held = await self._end(second)  # before the gate is opened for the other
        async with asyncio.TaskGroup() as group:
            group.create_task(self._are_lost(held))
            group.create_task(self._cut_off(first))
            self._add()

    def _add(self) -> Machine:
        number = max(self._machines, default=0) + 1
        machine = Machine.start(number, self._boot, self._place, f"10.77.0.{10 + number}/24")
        self._machines[number] = machine
        self._tell(f"machine {number} is added")
        return machine

    async def _submit(self, trials: int) -> None:
        (task,) = await self._installation.library.add(TASK)
        gate = self._setup.gate.format(job=len(self.jobs) + 1)
        options = {"gate": gate, "diary": self._setup.diary} if self._agent != "oracle" else {}
        agent = AgentSpec(name=self._agent, options=options)
        spec = JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(agent,), attempts=trials)
        self.jobs.append(await self._installation.submission.submit(spec))

    def _open_gate(self) -> None:
        Path(self._setup.gate.format(job=self.jobs[-1].id)).touch()

    async def _kill(self, *machines: Machine) -> None:
        await self._are_lost(await self._end(*machines))

    async def _end(self, *machines: Machine) -> dict[int, int]:
        """Returns what they held."""
        held = dict[int, int]()
        for machine in machines:
            held |= await self._holds(machine)
        for machine in machines:
            machine.kill()
        self._tell(f"machines {[machine.number for machine in machines]} are killed with {len(held)} trials")
        return held

    async def _cut_off(self, machine: Machine) -> None:
        """Its trials end while it is away, and it cannot say so before others have them."""
        held = await self._holds(machine)
        machine.unplug()
        self._tell(f"machine {machine.number} is cut off with {len(held)} trials")
        self._open_gate()
        await self._are_lost(held)
        before = await self._last_beat(machine)
        machine.plug()
        async with asyncio.timeout(_PATIENCE_SEC):
            while await self._last_beat(machine) == before:
                await asyncio.sleep(0.05)
        self._tell(f"machine {machine.number} is back")

    async def _holds(self, machine: Machine) -> dict[int, int]:
        """Waits until it holds all it can; returns the trials with the numbers of their tries."""
        await asyncio.to_thread(machine.until_works)
        chosen = TrialFilter(job_id=self.jobs[-1].id, states=(TrialState.RUNNING,))
        async with asyncio.timeout(_PATIENCE_SEC):
            while True:
                running = [row.trial async for row in self._installation.store.trials.each(chosen)]
                held = {one.id: one.try_number for one in running if (one.worker or "").startswith(machine.name)}
                in_sandboxes = self._boot.ready == "working" or len(machine.sandboxes) >= len(held)
                if len(held) == self._setup.capacity and in_sandboxes:
                    return held
                await asyncio.sleep(0.05)

    async def _are_lost(self, held: dict[int, int]) -> None:
        """Waits until the store gave up each of these tries. None of them may have been finished."""
        async with asyncio.timeout(_PATIENCE_SEC):
            for trial_id, number in held.items():
                while (result := (await self._installation.store.trials.tries(trial_id))[number - 1].result) is None:
                    await asyncio.sleep(0.05)
                assert result.cause is Cause.WORKER_LOST, result
        self._tell(f"{len(held)} trials were given up and go on elsewhere")

    async def _last_beat(self, machine: Machine) -> datetime | None:
        rows = await self._installation.store.workers.all()
        return next((row.seen_at for row in rows if row.worker.startswith(machine.name)), None)

    async def _check(self) -> None:
        checker = Checker(self._installation)
        await checker.check(*self.jobs)
        for job in self.jobs:
            assert {trial.outcome for trial in await checker.trials(job)} == {Outcome.PASSED}
        living = [machine for machine in self._machines.values() if machine.alive]
        async with asyncio.timeout(_PATIENCE_SEC):
            while left := [folder for machine in living for folder in machine.leftovers()]:
                await asyncio.sleep(0.2)
        assert not left
        counts = [len(await checker.trials(job)) for job in self.jobs]
        self._tell(f"{sum(counts)} trials ended once each, on {len(self._machines)} machines")

    async def _sessions(self) -> str:
        """What the database's server is doing, and who waits for whom."""
        connection = await asyncpg.connect(self._setup.database_url.replace("+asyncpg", ""))
        try:
            return "\n".join(map(repr, await connection.fetch(_SESSIONS)))
        finally:
            await connection.close()

    def _tell(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """PostgreSQL, Redis and S3 on the hub's address; where they are, as settings."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", "hub", "type", "bridge"], check=True)
    subprocess.run(["ip", "addr", "add", f"{_HUB}/24", "dev", "hub"], check=True)
    subprocess.run(["ip", "link", "set", "hub", "up"], check=True)
    with (
        PostgresServer(address=_HUB) as database,
        RedisServer(secrets.token_hex(8), address=_HUB) as broker,
        _s3() as bucket,
    ):
        url = asyncio.run(database.create_database("site"))
        yield {"database_url": url, "broker_url": broker.url, "blobs_url": bucket}


@contextmanager
def _s3() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=_HUB, port=_S3_PORT, verbose=False)
    server.start()
    try:
        place = f"http://{_HUB}:{_S3_PORT}"
        urllib.request.urlopen(urllib.request.Request(f"{place}/{_BUCKET}", method="PUT")).close()
        credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        os.environ.update(credentials, AWS_ENDPOINT_URL=place, AWS_ALLOW_HTTP="true")
        yield f"s3://{_BUCKET}/site"
    finally:
        server.stop()


async def run_site(setup: Setup, place: Path, given: argparse.Namespace) -> None:
    cache = image_cache_dir() if given.sandboxes else None
    async with open_installation(setup.settings(), at_the_machine=True) as installation:
        await Site(installation, setup, place, cache).run(given.trials, given.brief)


def _run_inside() -> int:
    """Runs this command in namespaces. It dies with us."""
    around = ["setpriv", "--pdeathsig=KILL", "unshare", *_NEW]
    command = [*around, sys.executable, "-m", "tests.faults.site", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, _INSIDE: "1"}, check=False).returncode


@contextmanager
def _files() -> Iterator[Path]:
    """A folder in memory, for the servers too."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", _FILES], check=True)
    tempfile.tempdir = str(_FILES)
    yield _FILES


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--capacity", type=int, default=4)
    parser.add_argument("--lease", type=float, default=6.0)
    parser.add_argument("--brief", action="store_true", help="one machine killed, one cut off, one added, all at once")
    parser.add_argument("--sandboxes", action="store_true", help="real ones on each machine")
    given = parser.parse_args()
    if os.environ.get(_INSIDE) is None:
        return _run_inside()
    began = time.monotonic()
    with _files() as place, servers() as where:
        setup = Setup(
            home=str(place / "home"),
            diary=str(place / "diary"),
            gate=str(place / "gate-{job}"),
            capacity=given.capacity,
            lease_sec=given.lease,
            heartbeat_sec=given.lease / 3,
            reap_sec=given.lease / 3,
            seconds=0.2,
            **where,
        )
        asyncio.run(run_site(setup, place, given))
        print(f"{time.monotonic() - began:6.1f} s  in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
