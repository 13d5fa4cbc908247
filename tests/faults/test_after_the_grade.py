"""Between the runner's result and the store: no fault in there loses a grade or leaves a trial to its lease."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.domain.job import AgentSpec, Job, JobSpec, RetryPolicy, plan
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.engine.clock import system_clock
from seatrial.engine.jobs.keys import TrialKeys
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.trials.execute import Executor, Records, Reports, TryLimits
from seatrial.engine.trials.found_files import SaveLimits
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.trial_files import TryFiles
from seatrial.errors import InvalidInput, StoreUnavailable
from seatrial.ports.blobs import Blobs
from seatrial.ports.runner import Order, Progress
from seatrial.testing.lasting_port import lasting_port
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.memory_store.events import MemoryOutput
from seatrial.testing.memory_store.trials import MemoryTrials
from tests.s3_server import s3_access

TASK = Task(digest="sha256:" + "0" * 64, name="answer-file", format=TaskFormat.HARBOR, instruction="Do it.")
FAILED = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, usage=Usage(input_tokens=7, cost_usd=0.5))
SPENT = Usage(input_tokens=1234, output_tokens=56, cost_usd=0.25)

Behaviour = Callable[[Order, Progress], Awaitable[Result]]


class Library:
    """Stands in for the task library: these trials have no task files."""

    async def directory(self, task: Task) -> Path:
        return Path("unused")


@dataclass(frozen=True)
class ScriptedRunner:
    behaviour: Behaviour

    async def run(self, order: Order, progress: Progress) -> Result:
        return await self.behaviour(order, progress)


async def fail(order: Order, progress: Progress) -> Result:
    for name in ("trial.log", "verifier/reward.txt"):
        (order.work_dir / name).parent.mkdir(exist_ok=True)
        (order.work_dir / name).write_text(name)
    return FAILED


class BrokenBlobs(MemoryBlobs):
    """Takes nothing whose name has ``refused`` in it, and says why in its own way."""

    def __init__(self, fault: Exception, refused: str) -> None:
        super().__init__()
        self._fault = fault
        self._refused = refused

    async def put_bytes(self, key: str, data: bytes) -> None:
        if self._refused in key:
            raise self._fault
        await super().put_bytes(key, data)


class PickyTrials(MemoryTrials):
    """Cannot write down a result that has files."""

    async def finish(self, trial_id: int, try_number: int, result: Result, now: datetime) -> Trial:
        if result.files:
            raise ValueError("not today")
        return await super().finish(trial_id, try_number, result, now)


class DeafOutput(MemoryOutput):
    """Takes no live output, for a reason that nobody foresaw."""

    async def append(self, pieces: Sequence[object], now: datetime) -> None:
        raise RuntimeError("the ring is broken")


@dataclass(frozen=True)
class Bench:
    store: MemoryStore
    blobs: Blobs
    job: Job
    folder: Path

    async def execute(self, behaviour: Behaviour, patience_sec: float = 0.0, most_files: int = 100) -> Result:
        """One claimed trial, seen through; what the store knows of it then."""

        async def secrets(job: Job, agent: AgentSpec) -> TrialKeys:
            return TrialKeys({"OPENAI_API_KEY": "sk-canary-123456"})

        executor = Executor(
            Records(self.store, self.blobs, Library(), system_clock),  # type: ignore[arg-type]
            ScriptedRunner(behaviour),
            Reports(
                PhaseLog(self.store.trials, system_clock),
                LiveLog(self.store, system_clock, every_sec=0.01, first_after_sec=0.0),
            ),
            TryLimits(
                self.job.spec.trial_limit_sec or 60,
                files=SaveLimits(files=most_files),
                blobs_patience_sec=patience_sec,
            ),
            self.folder / "work",
            secrets,
        )
        [trial] = await self.store.trials.claim("w1", timedelta(seconds=30), 1, system_clock())
        async with executor.reports.live:
            await executor.execute(trial, lambda: None)
        [a_try] = await self.store.trials.tries(trial.id)
        assert a_try.result is not None, "it was left to its lease"
        return a_try.result


@asynccontextmanager
async def bench(
    folder: Path, blobs: Blobs | None = None, store: MemoryStore | None = None, **spec: object
) -> AsyncIterator[Bench]:
    async with store or MemoryStore() as opened:
        now = system_clock()
        await opened.tasks.save(TASK, now)
        ref = TaskRef(name=TASK.name, digest=TASK.digest)
        once = RetryPolicy(max_attempts=1)
        job_spec = JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), retry=once, **spec)
        job = await opened.jobs.create(job_spec, tuple(plan(job_spec)), now)
        yield Bench(opened, blobs or MemoryBlobs(), job, folder)


FAULTS = [
    RuntimeError("out of the blue"),
    OSError(36, "File name too long"),
    InvalidInput("not a key"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    RecursionError("too deep"),
    StoreUnavailable("nobody there"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_files_that_cannot_be_kept_are_listed_beside_the_grade(tmp_path: Path, fault: Exception) -> None:
    async with bench(tmp_path, BrokenBlobs(fault, "trial.log")) as ground:
        result = await ground.execute(fail)
    assert (result.outcome, result.reward, result.usage) == (Outcome.FAILED, 0.0, FAILED.usage)
    assert result.files_left_out is not None
    [first, *_] = result.files_left_out.examples
    assert first.path == "trial.log" and first.reason
    if not isinstance(fault, StoreUnavailable):
        assert [file.path for file in result.files] == ["verifier/reward.txt"], "one bad file costs no other"


async def test_without_any_fault_nothing_is_left_out(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        result = await ground.execute(fail)
    assert [file.path for file in result.files] == ["trial.log", "verifier/reward.txt"]
    assert result.files_left_out is None and result.file_listing is None


async def test_a_store_that_cannot_take_the_whole_gets_what_matters(tmp_path: Path) -> None:
    store = MemoryStore()
    store.trials = PickyTrials(store.records)
    async with bench(tmp_path, store=store) as ground:
        result = await ground.execute(fail)
    assert (result.outcome, result.reward, result.usage) == (Outcome.FAILED, 0.0, FAILED.usage)
    assert "ValueError" in result.message


async def test_a_fault_in_what_is_only_watched_changes_nothing(tmp_path: Path) -> None:
    async def slowly(order: Order, progress: Progress) -> Result:
        (order.work_dir / "trial.log").write_text("a line\n")
        await asyncio.sleep(0.1)
        return await fail(order, progress)

    store = MemoryStore()
    store.output = DeafOutput(store.records)
    async with bench(tmp_path, store=store) as ground:
        assert (await ground.execute(slowly)).outcome is Outcome.FAILED


async def test_a_result_that_nothing_can_hold_is_mended(tmp_path: Path) -> None:
    async def hostile(order: Order, progress: Progress) -> Result:
        return FAILED.model_copy(update={"message": "half a character: \ud800, nothing: \0"})

    async with bench(tmp_path) as ground:
        result = await ground.execute(hostile)
    assert result.outcome is Outcome.FAILED and result.message.startswith("half a character: ?")
    result.model_dump_json()


@pytest.mark.parametrize(
    "fault", [RuntimeError("out of the blue"), RecursionError(), KeyError("x"), ValueError("half \ud800")], ids=repr
)
async def test_a_fault_of_the_runner_is_an_error_with_its_own_words_and_its_spend(
    tmp_path: Path, fault: Exception
) -> None:
    async def crash(order: Order, progress: Progress) -> Result:
        progress.spent(SPENT)
        raise fault

    async with bench(tmp_path) as ground:
        result = await ground.execute(crash)
    assert (result.outcome, result.cause, result.usage) == (Outcome.ERROR, Cause.SANDBOX, SPENT)
    assert result.message.startswith(type(fault).__name__)
    assert result.failure is not None and "in crash" in result.failure.traceback


async def test_a_trial_beyond_its_limit_has_its_spend(tmp_path: Path) -> None:
    async def forever(order: Order, progress: Progress) -> Result:
        try:
            await asyncio.sleep(60)
        finally:
            progress.spent(SPENT)
        return FAILED

    async with bench(tmp_path, trial_limit_sec=0.05) as ground:
        result = await ground.execute(forever)
    assert (result.outcome, result.usage) == (Outcome.ERROR, SPENT)


async def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("in the way")
    async with bench(tmp_path) as ground:
        result = await ground.execute(fail)
    assert (result.outcome, result.cause) == (Outcome.ERROR, Cause.SANDBOX)
    assert "NotADirectoryError" in result.message


async def test_a_worker_that_is_stopped_while_it_keeps_files_records_the_grade(tmp_path: Path) -> None:
    class StuckBlobs(MemoryBlobs):
        asked = asyncio.Event()

        async def put_bytes(self, key: str, data: bytes) -> None:
            self.asked.set()
            await asyncio.sleep(3600)

    async with bench(tmp_path, StuckBlobs()) as ground:
        executing = asyncio.create_task(ground.execute(fail))
        await StuckBlobs.asked.wait()
        executing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await executing
        [a_try] = await ground.store.trials.tries(1)
    assert a_try.result is not None and a_try.result.outcome is Outcome.FAILED
    assert a_try.result.files_left_out is not None


async def test_many_files_make_no_large_result_and_all_can_be_read(tmp_path: Path) -> None:
    async def litter(order: Order, progress: Progress) -> Result:
        (order.work_dir / "agent").mkdir()
        for number in range(1_500):
            (order.work_dir / "agent" / f"{number:05}").write_text(str(number))
        return await fail(order, progress)

    async with bench(tmp_path) as ground:
        result = await ground.execute(litter, most_files=1_000)
        kept = await TryFiles(ground.store.trials, ground.blobs).kept(1)
        assert await ground.blobs.read(kept.key(kept.find("agent/00997"))) == b"997"
    assert len(result.model_dump_json()) < 64 << 10
    assert result.file_totals[0] == len(kept.files) == 1_000
    assert kept.left_out is not None and kept.left_out.count == 502
    assert {"trial.log", "verifier/reward.txt"} <= {file.path for file in result.files}, "an agent crowds nobody out"


def _silent_port() -> socket.socket:
    """Nobody listens at it, and nobody else can until it is closed. Then it is given to nobody by chance."""
    kept = socket.socket()
    kept.bind(("127.0.0.1", lasting_port()))
    return kept


def _s3(port: int, bucket: str = "results") -> ObjectBlobs:
    return ObjectBlobs.at(f"s3://{bucket}", s3_access(f"http://127.0.0.1:{port}"))


@pytest.fixture
def s3_later() -> AsyncIterator[tuple[int, Callable[[], None]]]:  # type: ignore[misc]
    """A port that nobody listens at, and how to open an S3 there."""
    kept = _silent_port()
    port = int(kept.getsockname()[1])
    servers: list[ThreadedMotoServer] = []

    def open_it() -> None:
        kept.close()
        servers.append(ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False))
        servers[0].start()
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/results", method="PUT")).close()

    yield port, open_it
    kept.close()
    for server in servers:
        server.stop()


async def test_object_storage_that_is_away_is_waited_for(
    tmp_path: Path, s3_later: tuple[int, Callable[[], None]], caplog: pytest.LogCaptureFixture
) -> None:
    port, open_it = s3_later
    async with bench(tmp_path, _s3(port)) as ground:
        executing = asyncio.create_task(ground.execute(fail, patience_sec=300))
        while "one by one" not in caplog.text and not executing.done():  # it was refused, and waits
            await asyncio.sleep(0.05)
        await asyncio.to_thread(open_it)
        result = await executing
        assert await ground.blobs.read("trials/1/1/trial.log") == b"trial.log"
    assert (result.outcome, len(result.files), result.files_left_out) == (Outcome.FAILED, 2, None)


async def test_object_storage_that_stays_away_costs_the_files_only(tmp_path: Path) -> None:
    with _silent_port() as kept:
        async with bench(tmp_path, _s3(int(kept.getsockname()[1]))) as ground:
            result = await ground.execute(fail, patience_sec=0.5)
    assert (result.outcome, result.files) == (Outcome.FAILED, ())
    assert result.files_left_out is not None and result.files_left_out.count == 2
    assert "Waited 0.5 s" in result.files_left_out.examples[0].reason


async def test_a_missing_bucket_says_so_in_one_sentence(
    tmp_path: Path, s3_later: tuple[int, Callable[[], None]]
) -> None:
    port, open_it = s3_later
    open_it()
    with pytest.raises(StoreUnavailable, match=r"^The place for files, s3://missing, does not exist\. Make the bucket"):
        await _s3(port, "missing").put_bytes("a/b", b"x")
    await _s3(port).put_bytes("a/b", b"x")
