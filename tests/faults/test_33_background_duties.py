"""FAULTS 33: whatever happens to a background duty, trials in flight end as if nothing had happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.model_calls.budget import Cap, Scope
from seatrial.domain.result import Result
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties, Duty
from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.engine.jobs.keys import TrialKeys
from seatrial.engine.jobs.settle import Settler
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.provider_pace import ProviderPace
from seatrial.engine.trials.execute import Executor, Records, Reports, TryLimits
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.errors import SandboxFault, StoreUnavailable
from seatrial.ports.platform import Notice
from seatrial.ports.runner import Order, Progress
from seatrial.ports.store import Heartbeat, TrialFilter
from seatrial.suspect_process import SuspectProcess
from seatrial.testing.fake_runner import PASS
from seatrial.testing.faulty_store import FaultyStore
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.wiring import recover_in_background
from seatrial.worker import Claiming, Pace, Upkeep, Worker
from seatrial.worker_exits import ExitNotes, ExitWatch

TASK = Task(digest="sha256:" + "0" * 64, name="answer-file", format=TaskFormat.HARBOR, instruction="Do it.")
FAULTS = [SandboxFault("The engine answered 500."), KeyError("a bug")]
AWAY = StoreUnavailable("Away.")
DUTIES = {
    "trials.renew": "leases",
    "workers.beat": "heartbeat",
    "trials.asked_to_stop": "cancellations",
    "trials.expired": "recovery",
    "trials.claim": "claims",
    "trials.enter_phases": "phases",
    "output.append": "live output",
    "clean": "leftovers",
    "wait": "wake-ups",
    "tend": "queue",
    "trials.suspects": "suspects",
    "protect": "protection",
    "notice": "notices",
    "jobs.page": "settling",
    "pace.exchange": "provider pace",
    "budgets.exchange": "budgets",
}
"""Which method of a collaborator fails, and whose duty that is."""


class Gate:
    """Runs until it is opened, and writes something now and then meanwhile."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.begun = 0

    async def run(self, order: Order, progress: Progress) -> Result:
        self.begun += 1
        (order.work_dir / "agent").mkdir()
        log = order.work_dir / "agent" / "log.txt"
        while not self.opened.is_set():
            for phase in ("start", "agent"):
                await progress.phase(phase)  # type: ignore[arg-type]
            log.write_text("x" * (log.stat().st_size + 1 if log.exists() else 1) + "\n")
            await asyncio.sleep(0.01)
        return PASS


class FaultyQueue(LocalWakeUp):
    def __init__(self, home: Path, faults: dict[str, Exception]) -> None:
        super().__init__(home)
        self._faults = faults

    async def wait(self, timeout: float) -> None:
        if "wait" in self._faults:
            raise self._faults["wait"]
        await super().wait(timeout)

    async def tend(self, about: Heartbeat | None = None) -> None:
        if "tend" in self._faults:
            raise self._faults["tend"]


class FaultyMachine:
    """The platform protects it, and says nothing. Its protection must be renewed all the time."""

    renew_sec = 0.0

    def __init__(self, faults: dict[str, Exception]) -> None:
        self._faults = faults

    async def protect(self) -> None:
        if "protect" in self._faults:
            raise self._faults["protect"]

    async def release(self) -> None:
        pass

    async def look(self) -> Notice | None:
        if "notice" in self._faults:
            raise self._faults["notice"]
        return None


class Library:
    async def directory(self, task: Task) -> Path:
        return Path("unused")


async def no_keys(job: Job, agent: AgentSpec) -> TrialKeys:
    return TrialKeys({})


class Place:
    """A worker with two trials in flight and room for more, and faults that can be switched on."""

    def __init__(self, folder: Path) -> None:
        self.store = FaultyStore()
        self.faults = self.store.faults
        self.gate = Gate()
        self.duties = Duties(system_clock)
        queue = FaultyQueue(folder, self.faults)
        machine = FaultyMachine(self.faults)
        self.pace = ProviderPace(self.store.pace, "w", system_clock)
        budgets = Budgets(self.store.budgets, "w", system_clock, timedelta(seconds=0.1))
        budgets.open_slice(Scope.of_job(1), Cap(calls=9).limits, 1)  # it reports as long as it has such a slice
        phases = PhaseLog(self.store.trials, system_clock, every_sec=0.01, duties=self.duties)
        live = LiveLog(self.store, system_clock, every_sec=0.01, first_after_sec=0.01, linger_sec=0, duties=self.duties)
        self.worker = Worker(
            self.store,
            queue,
            system_clock,
            Executor(
                Records(self.store, MemoryBlobs(), Library(), system_clock),  # type: ignore[arg-type]
                self.gate,
                Reports(phases, live),
                TryLimits(600),
                folder / "work",
                no_keys,
            ),
            Heartbeat(worker="w", host="here", pid=1, capacity=4, started_at=system_clock()),
            Pace(timedelta(seconds=30), 0.02, 0.02),
            Upkeep(
                self.duties,
                Recovery(self.store, queue, system_clock, lambda worker: False, LeaseTrust(30, 5, 10)),
                [
                    Duty("leftovers", self._clean, 0.02),
                    Duty("settling", Settler(self.store, queue, system_clock).sweep, 0.02),
                    Duty("provider pace", self.pace.sync, 0.02),
                    Duty("budgets", budgets.sync, 0.02, patient=False),
                ],
            ),
            Claiming(
                suspects=SuspectProcess(ExitWatch(ExitNotes.beside(folder / "work")), {}),
                tenure=Tenure(
                    *("w", self.store, system_clock, StayRules(notice_sec=0.02, protection_sec=0.02), machine),
                    notices=machine,
                ),
            ),
        )

    async def _clean(self) -> None:
        if "clean" in self.faults:
            raise self.faults["clean"]

    def count(self, duty: str) -> int:
        return next((trouble.count for trouble in self.duties.troubles if trouble.duty == duty), 0)

    async def submit(self, trials: int) -> None:
        refs = (TaskRef(name=TASK.name, digest=TASK.digest),)
        spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),), attempts=trials)
        await self.store.jobs.create(spec, tuple(plan(spec)), system_clock())

    async def ends(self) -> list[tuple[Outcome | None, int]]:
        return [(row.trial.outcome, row.trial.try_number) async for row in self.store.trials.each(TrialFilter())]


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not met():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def working(folder: Path) -> AsyncIterator[Place]:
    place = Place(folder)
    await place.store.tasks.save(TASK, system_clock())
    await place.submit(2)
    await place.pace.take("provider")  # a call under way is reported until it ends
    running = asyncio.create_task(place.worker.run())
    await until(lambda: place.gate.begun == 2)
    try:
        yield place
        place.worker.leave()
        await asyncio.wait_for(running, 60)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        *product(DUTIES, FAULTS),
        *((f"trials.{method}", AWAY) for method in ("renew", "expired", "claim", "enter_phases")),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
async def test_a_faulty_duty_is_told_and_tried_again_and_trials_end(
    tmp_path: Path, method: str, fault: Exception
) -> None:
    duty = DUTIES[method]
    async with working(tmp_path) as place:
        place.faults[method] = fault
        await until(lambda: place.count(duty) >= 2)
        if method != "workers.beat":
            await until(lambda: _told(place, duty))
        place.gate.opened.set()
        async with asyncio.timeout(60):
            while await place.ends() != [(Outcome.PASSED, 1)] * 2:
                await asyncio.sleep(0.01)
        place.faults.clear()
        if method not in ("trials.asked_to_stop", "output.append", "trials.enter_phases"):  # nothing to do any more
            await until(lambda: place.count(duty) == 0)
        await place.submit(1)
        async with asyncio.timeout(60):
            while await place.ends() != [(Outcome.PASSED, 1)] * 3:
                await asyncio.sleep(0.01)


def _told(place: Place, duty: str) -> bool:
    rows = place.store.workers.rows.values()
    return any(trouble.duty == duty and trouble.error for row in rows for trouble in row.troubles)


async def test_nothing_is_told_while_all_is_well(tmp_path: Path) -> None:
    """The control: the same duties without a fault."""
    async with working(tmp_path) as place:
        await until(lambda: bool(place.store.workers.rows))
        place.gate.opened.set()
        assert place.duties.troubles == ()
        assert [row.troubles for row in await place.store.workers.all()] == [()]


async def test_a_faulty_duty_of_the_api_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API recovers trials and settles jobs where no worker does. It goes on, and so do its other duties."""
    faults = FAULTS[:1]

    async def step() -> None:
        if faults:
            raise faults[-1]

    upkeep = Upkeep(Duties(system_clock), SimpleNamespace(sweep=step), [Duty("settling", step, 0.01)])  # type: ignore[arg-type]
    monkeypatch.setattr("seatrial.wiring.upkeep.upkeep_of", lambda installation, clean: upkeep)
    settings = SimpleNamespace(reap_sec=0.01, heartbeat_sec=0.01, cloudwatch_namespace="")
    installation = SimpleNamespace(settings=settings, wake_up=SimpleNamespace(tend=step), clock=system_clock)
    async with recover_in_background(installation) as duties:  # type: ignore[arg-type]
        await until(lambda: _all_failed(duties, 2))
        faults += FAULTS[1:]
        await until(lambda: _all_failed(duties, 9))
        faults.clear()
        await until(lambda: not duties.troubles)


def _all_failed(duties: Duties, times: int) -> bool:
    return {trouble.duty for trouble in duties.troubles if trouble.count >= times} == {"recovery", "queue", "settling"}


async def test_a_cancellation_from_inside_ends_no_duty_and_one_from_outside_does() -> None:
    duties, steps = Duties(system_clock), 0

    async def step() -> None:
        nonlocal steps
        steps += 1
        raise asyncio.CancelledError("a task that it waited for was cancelled")

    repeating = asyncio.create_task(duties.forever("odd", step, 0.001))
    await until(lambda: steps > 3)
    assert duties.troubles[0].count >= 3 and not repeating.done()
    repeating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await repeating


async def test_patient_duties_wait_longer_after_each_fault() -> None:
    duties, at = Duties(system_clock), list[float]()

    async def step() -> None:
        at.append(asyncio.get_running_loop().time())
        raise OSError("broken")

    repeating = asyncio.create_task(duties.forever("slow", step, 0.01, patient=True))
    await until(lambda: len(at) == 5)
    repeating.cancel()
    assert at[4] - at[3] >= 0.07 > at[0] - at[0], "eight times the first pause"
