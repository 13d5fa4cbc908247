"""A tenant asks for more than the operator gives: memory, processors, storage, time, trials."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import Resources, Task, TaskFormat, TaskRef
from seatrial.domain.token import Role
from seatrial.engine.jobs.admission import Ceilings
from seatrial.errors import Unsupported
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import assemble_worker, open_installation
from tests.api_in_process import api_open
from tests.attacks.tenant.doors import Doors, doors_open
from tests.contracts.http.server import task_zip

CEILINGS: dict[str, Any] = {
    "max_memory_mb": 1024,
    "max_cpus": 2,
    "max_storage_mb": 4096,
    "max_trial_sec": 7200,
    "max_trials_per_job": 10,
    "max_attempts": 5,
}
HEAD = 'schema_version = "1.4"\n[task]\nname = "tests/greedy"\ndescription = "x"\n'
GREEDY = {
    "memory": ("[environment]\nmemory_mb = 65536\n", "65,536", "1,024", "SEATRIAL_MAX_MEMORY_MB"),
    "processors": ("[environment]\ncpus = 64\n", "64", "2", "SEATRIAL_MAX_CPUS"),
    "storage": ("[environment]\nstorage_mb = 1000000\n", "1,000,000", "4,096", "SEATRIAL_MAX_STORAGE_MB"),
    "agent time": ("[agent]\ntimeout_sec = 900000\n", "90", "7,200", "SEATRIAL_MAX_TRIAL_SEC"),
    "test time": ("[verifier]\ntimeout_sec = 900000\n", "90", "7,200", "SEATRIAL_MAX_TRIAL_SEC"),
    "build time": ("[environment]\nbuild_timeout_sec = 900000\n", "90", "7,200", "SEATRIAL_MAX_TRIAL_SEC"),
}
MODEST = "[environment]\nmemory_mb = 1024\ncpus = 2\nstorage_mb = 4096\n[agent]\ntimeout_sec = 60\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def doors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with doors_open(tmp_path_factory.mktemp("home"), Role.USER, **CEILINGS) as opened:
        yield opened


@pytest.mark.parametrize("what", GREEDY)
async def test_a_task_cannot_ask_for_more_through_any_door(doors: Doors, what: str) -> None:
    content, wanted, most, setting = GREEDY[what]
    archive = task_zip(task_dot_toml=HEAD + content)
    refused = await doors.runner(400, archive=archive, num_runs=1)
    assert wanted in refused["detail"] and most in refused["detail"] and setting in refused["detail"], refused
    answer = await doors.job(422, tasks=["greedy"])
    assert wanted in answer["error"]["message"] and setting in answer["error"]["message"], answer


async def test_a_modest_task_is_taken_through_each_door(doors: Doors) -> None:
    await doors.runner(archive=task_zip(task_dot_toml=HEAD.replace("greedy", "modest") + MODEST), num_runs=2)
    await doors.job(tasks=["modest"], attempts=5, trial_limit_sec=7200)


@pytest.mark.parametrize(
    ("wanted", "setting"),
    [
        ({"attempts": 6}, "SEATRIAL_MAX_ATTEMPTS"),
        (
            {"attempts": 5, "agents": [{"name": "oracle"}, {"name": "nop"}, {"name": "oracle", "env": {"A": "1"}}]},
            "TRIALS",
        ),
        ({"trial_limit_sec": 7201}, "SEATRIAL_MAX_TRIAL_SEC"),
        ({"timeout_multiplier": 999}, "SEATRIAL_MAX_TRIAL_SEC"),
    ],
)
async def test_a_job_cannot_ask_for_more(doors: Doors, wanted: dict[str, Any], setting: str) -> None:
    answer = await doors.job(422, **wanted)
    assert setting in answer["error"]["message"], answer


async def test_a_run_cannot_be_given_more_when_it_is_executed(doors: Doors) -> None:
    made = await doors.runner(archive=task_zip(task_dot_toml=HEAD.replace("greedy", "quick") + MODEST), num_runs=1)
    path = f"/api/tasks/{made['id']}/execute-async"
    for seconds, status in ((7201, 400), (7200, 200)):
        answer = await doors.api.client.post(path, params={"timeout_seconds": seconds}, headers=doors.headers)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    "body",
    [
        {"timeout_multiplier": 1e308},
        {"trial_limit_sec": 1e308},
        {"retry": {"max_attempts": 2**63}},
        {"retry": {"backoff_sec": 1e308}},
        {"concurrency": 2**63},
    ],
    ids=str,
)
async def test_no_number_is_larger_than_anything_can_use(doors: Doors, body: dict[str, Any]) -> None:
    await doors.job(422, **body)


async def test_a_task_that_is_older_than_the_ceiling_does_not_run(tmp_path: Path) -> None:
    """Queued before the operator lowered it."""
    async with api_open(tmp_path, _env_file=None) as api:
        files = {"files": ("x.zip", task_zip(task_dot_toml=HEAD + GREEDY["memory"][0]), "application/zip")}
        assert (await api.client.post("/api/v1/tasks", files=files)).status_code == 201
        body = {"tasks": ["greedy"], "retry": {"max_attempts": 1}}
        assert (await api.client.post("/api/v1/jobs", json=body)).status_code == 201
        settings = api.service.installation.settings.model_copy(update=CEILINGS)
    runner = FakeRunner()
    async with open_installation(settings) as installation:
        worker = assemble_worker(installation, runner, 1, job_id=1)
        row = await _ran(installation, worker)
    assert runner.orders == []
    assert row.result is not None and "65,536" in row.result.message, row.result


async def _ran(installation: Any, worker: Any) -> Any:
    working = asyncio.create_task(worker.run())
    try:
        while True:
            [row] = [row async for row in installation.store.trials.each(TrialFilter(job_id=1))]
            if row.trial.outcome is not None:
                return row
            await asyncio.sleep(0.05)
    finally:
        worker.leave()
        await working


@pytest.mark.parametrize("field", ["memory_mb", "cpus", "storage_mb"])
def test_the_ceiling_itself_is_allowed_and_none_means_none(field: str) -> None:
    task = Task(
        digest="sha256:" + "0" * 64,
        name="t",
        format=TaskFormat.HARBOR,
        instruction="x",
        resources=Resources(**{field: 8}),
    )
    Ceilings().check_task(task, 1)
    Ceilings(**{field: 8}).check_task(task, 1)
    with pytest.raises(Unsupported):
        Ceilings(**{field: 7}).check_task(task, 1)


def test_retries_wait_a_bounded_time() -> None:
    spec = JobSpec(tasks=(TaskRef(name="t", digest="d"),), agents=(AgentSpec(name="oracle"),))
    policy = spec.retry.model_copy(update={"backoff_sec": 86400.0, "max_attempts": 100})
    assert policy.delay(99) == 86400.0 and spec.retry.delay(1) == 5.0
