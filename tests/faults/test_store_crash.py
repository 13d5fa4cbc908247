"""FAULTS 7: a process killed at any commit leaves a sound store; nothing is lost and nothing is recorded twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest

from seatrial.adapters.store_sql.backup import problems_of
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.domain.job import Job
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.ports.store import Store, TrialFilter
from tests.contracts.store.samples import submit
from tests.databases import SqliteFiles, sqlite_files  # noqa: F401
from tests.faults.store_worker import PASSED, work
from tests.waiting import LIMIT_SEC

LOST = Result(outcome=Outcome.ERROR, cause=Cause.WORKER_LOST)
LATER = timedelta(minutes=10)


class WorkerSupervisor:
    """Worker processes and what they said was acknowledged."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.store_worker"])
        self._members: list[tuple[ForkServerProcess, Connection]] = []

    def start(self, die_at: tuple[str, int] | None = None) -> ForkServerProcess:
        mine, theirs = self._context.Pipe(duplex=False)
        name = f"worker-{len(self._members)}"
        process = self._context.Process(target=work, args=(self._url, name, theirs, die_at))
        process.start()
        theirs.close()
        self._members.append((process, mine))
        return process

    def acknowledged(self) -> list[tuple[int, int]]:
        """Once every process is gone."""
        found: list[tuple[int, int]] = []
        for process, pipe in self._members:
            process.join(LIMIT_SEC)
            while pipe.poll():
                try:
                    found.append(pipe.recv())
                except EOFError:
                    break
        return found

    def exit_codes(self) -> list[int | None]:
        return [process.exitcode for process, _ in self._members]

    def close(self) -> None:
        for process, pipe in self._members:
            process.kill()
            process.join()
            process.close()
            pipe.close()


@pytest.fixture
async def url(sqlite_files: SqliteFiles, tmp_path: Path) -> str:  # noqa: F811
    return await sqlite_files.fresh(tmp_path)


@pytest.fixture
def supervisor(url: str) -> Iterator[WorkerSupervisor]:
    supervisor = WorkerSupervisor(url)
    yield supervisor
    supervisor.close()


async def finish_the_rest(store: Store) -> None:
    """What a surviving worker does: it recovers what was lost, then works until nothing is left."""
    now = datetime.now(UTC) + LATER
    for trial in await store.trials.expired(now):
        await store.trials.try_again(trial.id, trial.try_number, LOST, timedelta(0), now)
    while claimed := await store.trials.claim("survivor", LATER, 10, now):
        for trial in claimed:
            await store.trials.finish(trial.id, trial.try_number, PASSED, now)


async def check(url: str, path: Path, job: Job, acknowledged: list[tuple[int, int]]) -> None:
    """Sound file; every trial ended with one passing result; everything acknowledged is there."""
    assert problems_of(path) == []
    async with SqlStore.at(url) as store:
        rows = [row async for row in store.trials.each(TrialFilter(job_id=job.id))]
        assert len(rows) == len(job.spec.tasks)
        results: Counter[int] = Counter()
        for row in rows:
            assert row.trial.state is TrialState.ENDED and row.result == PASSED
            attempts = await store.trials.tries(row.trial.id)
            assert [a_try.number for a_try in attempts] == list(range(1, row.trial.try_number + 1))
            results[row.trial.id] = sum(a_try.result == PASSED for a_try in attempts)
            for trial_id, number in acknowledged:
                if trial_id == row.trial.id:
                    assert attempts[number - 1].result == PASSED
        assert set(results.values()) == {1}
        events = await store.events.read(limit=10_000)
        told = Counter(event.kind.value for event in events)
        assert told["trial.ended"] == len(rows) and told["job.ended"] == 1
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 11))
async def test_killed_at_a_commit(
    url: str, supervisor: WorkerSupervisor, tmp_path: Path, moment: str, commit: int
) -> None:
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=5)
    process = supervisor.start(die_at=(moment, commit))
    acknowledged = await asyncio.to_thread(supervisor.acknowledged)
    assert process.exitcode == -signal.SIGKILL
    assert problems_of(tmp_path / "seatrial.db") == []
    async with SqlStore.at(url) as store:
        await finish_the_rest(store)
    await check(url, tmp_path / "seatrial.db", job, acknowledged)


async def test_without_a_kill_the_worker_ends_by_itself(url: str, supervisor: WorkerSupervisor, tmp_path: Path) -> None:
    """The control: the worker has at least as many commits as the kills above go through, and does it all."""
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=5)
    process = supervisor.start(die_at=("before", 100))
    acknowledged = await asyncio.to_thread(supervisor.acknowledged)
    assert process.exitcode == 0 and len(acknowledged) == 5
    await check(url, tmp_path / "seatrial.db", job, acknowledged)


async def test_killed_at_any_moment_while_others_go_on(url: str, supervisor: WorkerSupervisor, tmp_path: Path) -> None:
    chance = random.Random(7)
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=600)

    async def kill(victim: ForkServerProcess) -> None:
        await asyncio.sleep(0.1 + chance.random() * 0.3)
        victim.kill()

    for victim in [supervisor.start() for _ in range(3)]:
        await kill(victim)
    staying = [supervisor.start(), supervisor.start()]
    for _ in range(9):
        if any(process.is_alive() for process in staying):
            await kill(supervisor.start())
    acknowledged = await asyncio.to_thread(supervisor.acknowledged)
    assert [process.exitcode for process in staying] == [0, 0]
    async with SqlStore.at(url) as store:
        await finish_the_rest(store)
    await check(url, tmp_path / "seatrial.db", job, acknowledged)


async def test_many_processes_share_the_work(url: str, supervisor: WorkerSupervisor, tmp_path: Path) -> None:
    """No process is ever told that the database is locked, and each trial is done once."""
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=300)
    for _ in range(6):
        supervisor.start()
    acknowledged = await asyncio.to_thread(supervisor.acknowledged)
    assert supervisor.exit_codes() == [0] * 6
    assert sorted(acknowledged) == [(trial_id, 1) for trial_id in range(1, 301)]
    await check(url, tmp_path / "seatrial.db", job, acknowledged)
