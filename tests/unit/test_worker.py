"""The worker and the engine around it, with a fake runner and the in-memory store: when things go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.job import AgentSpec, Job, JobSpec, RetryPolicy, plan
from seatrial.domain.result import Result
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Outcome, Phase, Trial
from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties, Duty
from seatrial.engine.fleet.tenure import Tenure
from seatrial.engine.jobs.keys import KeyRing, TrialKeys
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.trials.execute import Executor, Records, Reports, TryLimits
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.errors import SandboxFault
from seatrial.ports.runner import Order, Progress
from seatrial.ports.store import Heartbeat, TrialFilter
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.memory_store.installation import MemoryWorkers
from seatrial.testing.memory_store.records import MemoryRecords
from seatrial.worker import Claiming, Pace, Upkeep, Worker
from tests.waiting import LIMIT_SEC, eventually

TASK = Task(digest="sha256:" + "0" * 64, name="answer-file", format=TaskFormat.HARBOR, instruction="Do it.")
PASSED = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
LONG_SEC = 10 * LIMIT_SEC
"""No lease and no limit of a trial ends by itself, unless a test says so."""

Behaviour = Callable[[Order], Awaitable[Result]]


async def _canary(job: Job, agent: AgentSpec) -> TrialKeys:
    return TrialKeys({"OPENAI_API_KEY": "sk-canary-123456"})


class Library:
    """Stands in for the task library: these trials have no files."""

    async def directory(self, task: Task) -> Path:
        return Path("unused")


@dataclass
class ScriptedRunner:
    """Does what the test says for each attempt, and remembers who asked."""

    behaviour: Behaviour
    orders: list[Trial] = field(default_factory=list)
    reaches: tuple[Phase, ...] = ()

    async def run(self, order: Order, progress: Progress) -> Result:
        self.orders.append(order.trial)
        for phase in self.reaches:
            await progress.phase(phase)
        return await self.behaviour(order)


class CountedWorkers(MemoryWorkers):
    """Counts heartbeats: they tell that a worker went on in the meantime."""

    def __init__(self, records: MemoryRecords) -> None:
        super().__init__(records)
        self.beats = 0

    async def beat(self, *arguments: Any, **options: Any) -> Any:
        self.beats += 1
        return await super().beat(*arguments, **options)

    async def several_beats(self) -> None:
        before = self.beats
        await eventually(lambda: self.beats >= before + 5, "five heartbeats")


class BeatenStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.workers: CountedWorkers = CountedWorkers(self.records)


def trust() -> LeaseTrust:
    """Leases are believed nearly at once."""
    return LeaseTrust(lease_sec=0.03, heartbeat_sec=0.01, reap_sec=60)


@dataclass
class Bench:
    """A store with one job, and workers to run it."""

    store: BeatenStore
    blobs: MemoryBlobs
    wake_up: LocalWakeUp
    job: Job
    folder: Path

    def worker(
        self,
        runner: ScriptedRunner,
        name: str = "w1",
        lease_sec: float = LONG_SEC,
        capacity: int = 4,
        beat_sec: float = 0.02,
        extra: Sequence[Duty] = (),
        keys: Callable[[Job, AgentSpec], Awaitable[TrialKeys]] | None = None,
        tenure: Tenure | None = None,
        claiming: Claiming | None = None,
        at_end: Mapping[str, Callable[[], Awaitable[object]]] | None = None,
    ) -> Worker:
        keys = keys or _canary
        duties = Duties(system_clock)
        phases = PhaseLog(self.store.trials, system_clock, every_sec=0.01, duties=duties)
        executor = Executor(
            Records(self.store, self.blobs, Library(), system_clock),  # type: ignore[arg-type]
            runner,
            Reports(phases, LiveLog(self.store, system_clock, every_sec=0.01, duties=duties)),
            TryLimits(self.job.spec.trial_limit_sec or LONG_SEC),
            self.folder / name,
            keys,
        )
        about = Heartbeat(worker=name, host="here", pid=1, capacity=capacity, started_at=system_clock())
        recovery = Recovery(self.store, self.wake_up, system_clock, lambda worker: worker == "dead", trust())
        return Worker(
            self.store,
            self.wake_up,
            system_clock,
            executor,
            about,
            Pace(timedelta(seconds=lease_sec), beat_sec, beat_sec),
            Upkeep(duties, recovery, extra, at_end or {}),
            replace(claiming or Claiming(), tenure=tenure),
        )

    async def outcomes(self) -> list[Outcome | None]:
        return [row.trial.outcome async for row in self.store.trials.each(TrialFilter(job_id=self.job.id))]

    async def outcomes_are(self, outcome: Outcome) -> bool:
        return set(await self.outcomes()) == {outcome}

    async def until_ended(self, worker: Worker) -> None:
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            while None in await self.outcomes():
                await asyncio.sleep(0.01)
        worker.leave()
        await working


@asynccontextmanager
async def bench(folder: Path, attempts: int = 1, **spec: object) -> AsyncIterator[Bench]:
    store, wake_up = BeatenStore(), LocalWakeUp(folder)
    async with store:
        now = system_clock()
        await store.tasks.save(TASK, now)
        job_spec = JobSpec(
            tasks=(TaskRef(name=TASK.name, digest=TASK.digest),),
            agents=(AgentSpec(name="oracle"),),
            attempts=attempts,
            **spec,
        )
        job = await store.jobs.create(job_spec, tuple(plan(job_spec)), now)
        yield Bench(store, MemoryBlobs(), wake_up, job, folder)


async def succeed(order: Order) -> Result:
    (order.work_dir / "trial.log").write_text("done")
    return PASSED


async def test_every_trial_ends_and_is_run_once(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=20) as ground:
        runner = ScriptedRunner(succeed)
        await ground.until_ended(ground.worker(runner))
        assert await ground.outcomes() == [Outcome.PASSED] * 20
        assert len({trial.id for trial in runner.orders}) == len(runner.orders) == 20


async def test_what_the_runner_left_is_kept_without_the_key(tmp_path: Path) -> None:
    async def leave_files(order: Order) -> Result:
        (order.work_dir / "agent").mkdir()
        (order.work_dir / "agent" / "log.txt").write_text("the key is sk-canary-123456.")
        return PASSED

    async with bench(tmp_path) as ground:
        await ground.until_ended(ground.worker(ScriptedRunner(leave_files)))
        row = await ground.store.trials.get(1)
        assert row.result is not None
        assert [file.path for file in row.result.files] == ["agent/log.txt"]
        assert await ground.blobs.read(f"trials/{row.trial.id}/1/agent/log.txt") == b"the key is [REDACTED]."
        assert not list((tmp_path / "w1").iterdir())


async def test_a_fault_is_tried_again_and_both_tries_are_kept(tmp_path: Path) -> None:
    async def fail_once(order: Order) -> Result:
        if order.trial.try_number == 1:
            raise SandboxFault("It broke.")
        return PASSED

    async with bench(tmp_path, retry=RetryPolicy(max_attempts=2, backoff_sec=0)) as ground:
        await ground.until_ended(ground.worker(ScriptedRunner(fail_once)))
        assert await ground.outcomes() == [Outcome.PASSED]
        tries = await ground.store.trials.tries(1)
        assert [a_try.result.outcome for a_try in tries if a_try.result] == [Outcome.ERROR, Outcome.PASSED]


async def test_a_fault_that_stays_ends_as_an_error_never_as_failed(tmp_path: Path) -> None:
    async def always_fail(order: Order) -> Result:
        raise SandboxFault("It broke.")

    async with bench(tmp_path, retry=RetryPolicy(max_attempts=2, backoff_sec=0)) as ground:
        runner = ScriptedRunner(always_fail)
        await ground.until_ended(ground.worker(runner))
        row = await ground.store.trials.get(1)
        assert (row.trial.outcome, row.trial.cause, len(runner.orders)) == (Outcome.ERROR, Cause.SANDBOX, 2)


async def test_a_failed_attempt_is_a_result_and_not_tried_again(tmp_path: Path) -> None:
    async def fail(order: Order) -> Result:
        return Result(outcome=Outcome.FAILED, rewards={"reward": 0.0})

    async with bench(tmp_path) as ground:
        runner = ScriptedRunner(fail)
        await ground.until_ended(ground.worker(runner))
        assert await ground.outcomes() == [Outcome.FAILED]
        assert len(runner.orders) == 1


@pytest.mark.parametrize(
    ("reaches", "cause", "tries"),
    [
        ((), Cause.SANDBOX, 2),
        ((Phase.BUILD,), Cause.IMAGE, 2),
        ((Phase.BUILD, Phase.START), Cause.SANDBOX, 2),
        ((Phase.START, Phase.AGENT), Cause.AGENT, 1),
        ((Phase.START, Phase.AGENT, Phase.VERIFY), Cause.VERIFIER, 1),
    ],
)
async def test_a_whole_trial_has_a_limit_and_what_used_it_up_is_not_tried_again(
    tmp_path: Path, reaches: tuple[Phase, ...], cause: Cause, tries: int
) -> None:
    async def hang(order: Order) -> Result:
        await asyncio.sleep(60)
        return PASSED

    async with bench(tmp_path, trial_limit_sec=0.5, retry=RetryPolicy(max_attempts=2, backoff_sec=0)) as ground:
        await ground.until_ended(ground.worker(ScriptedRunner(hang, reaches=reaches)))
        row = await ground.store.trials.get(1)
        assert (row.trial.outcome, row.trial.cause, row.trial.try_number) == (Outcome.ERROR, cause, tries)
        assert row.result is not None
        assert "limit of 0.5 s" in row.result.message


async def test_a_dead_workers_trial_is_found_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        await ground.store.trials.claim("dead", timedelta(hours=1), 1, system_clock())
        await ground.until_ended(ground.worker(ScriptedRunner(succeed)))
        assert await ground.outcomes() == [Outcome.PASSED]
        assert [a_try.result.cause for a_try in await ground.store.trials.tries(1) if a_try.result] == [
            Cause.WORKER_LOST,
            None,
        ]


async def test_a_trial_that_kills_its_workers_ends_as_an_error(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        worker = ground.worker(ScriptedRunner(succeed))
        for _ in range(2):
            await ground.store.trials.claim("dead", timedelta(hours=1), 1, system_clock())
            await Recovery(ground.store, ground.wake_up, system_clock, lambda name: name == "dead", trust()).sweep()
        row = await ground.store.trials.get(1)
        assert (row.trial.outcome, row.trial.cause) == (Outcome.ERROR, Cause.WORKER_LOST)
        await ground.until_ended(worker)


async def test_a_stale_finish_is_refused(tmp_path: Path) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def freeze(order: Order) -> Result:
        if order.trial.worker == "w1":
            started.set()
            await go_on.wait()
            return Result(outcome=Outcome.FAILED, rewards={"reward": 0.0})
        return PASSED

    async with bench(tmp_path) as ground:
        # With room for one, it cannot claim the trial again when that is queued anew.
        # It is frozen: it neither beats nor notices.
        slow = ground.worker(ScriptedRunner(freeze), lease_sec=0.001, capacity=1, beat_sec=60)
        freezing = asyncio.create_task(slow.run())
        await started.wait()
        await asyncio.sleep(0.05)
        await ground.until_ended(ground.worker(ScriptedRunner(freeze), name="w2"))
        go_on.set()
        slow.leave()
        await freezing
        row = await ground.store.trials.get(1)
        assert (row.trial.outcome, row.trial.try_number) == (Outcome.PASSED, 2)


async def test_a_provider_key_that_the_worker_cannot_open_ends_the_trial_with_the_reason(tmp_path: Path) -> None:
    async with bench(tmp_path, retry=RetryPolicy(max_attempts=2, backoff_sec=0)) as ground:
        ours, theirs = FernetSeal(tmp_path, "ours"), FernetSeal(tmp_path, "theirs")
        await ground.store.provider_keys.save("OPENAI_API_KEY", theirs.close("sk-of-theirs"), system_clock())
        ring = KeyRing(ground.store.provider_keys, ground.store.jobs, ours, {}, lambda model: ("OPENAI_API_KEY",))
        runner = ScriptedRunner(succeed)
        agent = AgentSpec(name="terminus-2", model="openai/gpt-5.2")
        await ground.until_ended(ground.worker(runner, keys=lambda job, _: ring.for_agent(job, agent)))
        [row] = [row async for row in ground.store.trials.each(TrialFilter())]
        assert (row.trial.outcome, row.trial.cause, row.trial.try_number) == (Outcome.ERROR, Cause.SANDBOX, 2)
        assert row.result is not None
        assert row.result.message.startswith("A stored key was sealed with another secret key. Set SEATRIAL_SECRET_KEY")
        assert row.result.files_left_out is None or row.result.files_left_out.count == 0
        assert runner.orders == []


async def test_a_provider_key_that_the_worker_can_open_reaches_the_runner(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        ours = FernetSeal(tmp_path, "ours")
        await ground.store.provider_keys.save("OPENAI_API_KEY", ours.close("sk-of-ours"), system_clock())
        ring = KeyRing(ground.store.provider_keys, ground.store.jobs, ours, {}, lambda model: ("OPENAI_API_KEY",))
        secrets: list[Mapping[str, str]] = []

        async def note(order: Order) -> Result:
            secrets.append(order.secrets)
            return PASSED

        agent = AgentSpec(name="terminus-2", model="openai/gpt-5.2")
        await ground.until_ended(ground.worker(ScriptedRunner(note), keys=lambda job, _: ring.for_agent(job, agent)))
        assert await ground.outcomes() == [Outcome.PASSED]
        assert secrets == [{"OPENAI_API_KEY": "sk-of-ours"}]


async def test_only_a_patient_duty_waits_longer_after_each_error(tmp_path: Path) -> None:
    """What must be told within a lease is tried at its own pace, however long the store was away."""
    tried = {"patient": 0, "not": 0}

    def failing(name: str) -> Callable[[], Awaitable[object]]:
        async def step() -> None:
            tried[name] += 1
            raise SandboxFault("It is away.")

        return step

    duties = [Duty("patient", failing("patient"), 0.01), Duty("not", failing("not"), 0.01, patient=False)]
    async with bench(tmp_path) as ground:
        worker = ground.worker(ScriptedRunner(succeed), extra=duties)
        working = asyncio.create_task(worker.run())
        await eventually(lambda: tried["not"] >= 60, "tries at its own pace")
        worker.leave()
        await working
    assert tried["patient"] < tried["not"] / 2


@pytest.mark.parametrize("how", ["leaves", "is cancelled"])
async def test_what_is_shared_with_other_workers_is_given_back_after_the_last_trial(tmp_path: Path, how: str) -> None:
    order: list[str] = []
    begun = asyncio.Event()

    async def work(order_: Order) -> Result:
        begun.set()
        try:
            await asyncio.sleep(LIMIT_SEC if how == "is cancelled" else 0)
        finally:
            order.append("trial")
        return PASSED

    async def broken() -> None:
        order.append("broken")
        raise SandboxFault("It is away.")

    async def give_back() -> None:
        order.append("given back")

    async with bench(tmp_path) as ground:
        worker = ground.worker(ScriptedRunner(work), at_end={"broken": broken, "slices": give_back})
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            await begun.wait()
        worker.leave() if how == "leaves" else working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert order == ["trial", "broken", "given back"], "one that fails holds nothing up"
