"""The samples: each is valid without a remark, passes with its own solution, and fails when nothing is done.

They run under Harbor's own ``Trial`` in the daemonless sandbox, so what is shown here is the tasks and the mapping, and
nothing of the engine.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.domain.result import deciding_reward
from seatrial.domain.task import Task
from seatrial.ports.tasks import TaskReader
from seatrial.sandboxes.options import SandboxOptions
from seatrial.task_content.digest import content_digest

SAMPLES = Path(__file__).parents[3] / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
TERMINAL_BENCH_1 = [name for name in NAMES if (SAMPLES / name / "task.yaml").is_file()]


def reader(name: str) -> TaskReader:
    readers: tuple[TaskReader, ...] = (HarborTasks(), TerminalBench1Tasks())
    return next(reader for reader in readers if reader.recognises(SAMPLES / name))


def inspected(name: str) -> Task:
    inspection = reader(name).inspect(SAMPLES / name)
    assert inspection.problems == ()
    assert inspection.task is not None
    return inspection.task


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_valid_and_described(name: str) -> None:
    task = inspected(name)
    assert task.name == name
    assert task.category
    assert task.difficulty in ("easy", "medium", "hard")
    assert task.tags
    assert task.has_solution
    assert task.services == ()


@pytest.mark.parametrize("name", NAMES)
def test_sample_starts_from_the_one_base_image(name: str) -> None:
    text = next((SAMPLES / name).rglob("Dockerfile")).read_text()
    assert [line for line in text.splitlines() if line.startswith("FROM")] == ["FROM debian:bookworm-slim"]


def test_the_samples_show_what_there_is_to_show() -> None:
    tasks = [inspected(name) for name in NAMES]
    assert len(tasks) >= 7
    assert NAMES[0] == "answer-file"
    assert not tasks[0].steps
    assert any(task.steps for task in tasks)
    assert len(TERMINAL_BENCH_1) >= 2
    assert any((SAMPLES / name / "solution.yaml").is_file() for name in TERMINAL_BENCH_1)
    assert any((SAMPLES / name / "solution.sh").is_file() for name in TERMINAL_BENCH_1)


def test_one_image_serves_the_terminal_bench_1_samples(tmp_path: Path) -> None:
    folders = [reader(name).prepare(SAMPLES / name, tmp_path / name) / "environment" for name in TERMINAL_BENCH_1]
    assert len({content_digest(folder) for folder in folders}) == 1


async def attempt(name: str, agent: str, place: Path) -> TrialResult:
    cache = Path(os.environ.get("SEATRIAL_TEST_CACHE", "/var/tmp/seatrial-test-cache"))
    options = SandboxOptions(cache=cache).model_dump(mode="json")
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=reader(name).prepare(SAMPLES / name, place / "tasks" / name)),
            trials_dir=place / "trials",
            trial_name=f"{name}-{agent}",
            agent=AgentConfig(name=agent),
            environment=EnvironmentConfig(
                import_path="seatrial.sandboxes.oci:OciEnvironment", kwargs={"options": options}
            ),
        )
    )
    return await trial.run()


def rewards(result: TrialResult) -> dict[str, float]:
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result is not None
    return dict(result.verifier_result.rewards or {})


@pytest.mark.sandbox
@pytest.mark.parametrize("name", NAMES)
async def test_sample_passes_with_its_solution_and_fails_without(name: str, tmp_path: Path) -> None:
    solved = rewards(await attempt(name, "oracle", tmp_path))
    untouched = rewards(await attempt(name, "nop", tmp_path))
    assert solved
    assert deciding_reward(solved) == 1
    assert set(untouched) == set(solved)
    assert deciding_reward(untouched) == 0


@pytest.mark.sandbox
async def test_rewards_with_names_and_tests_with_names_are_written(tmp_path: Path) -> None:
    assert set(rewards(await attempt("tidy-the-list", "oracle", tmp_path))) == {"sorted", "unique", "trimmed"}
    await attempt("mend-a-script", "nop", tmp_path)
    for name, agent, expected in (("tidy-the-list", "oracle", "passed"), ("mend-a-script", "nop", "failed")):
        kept = json.loads((tmp_path / "trials" / f"{name}-{agent}" / "verifier" / "ctrf.json").read_text())["results"]
        assert len(kept["tests"]) == kept["summary"][expected] == 3
        assert {test["status"] for test in kept["tests"]} == {expected}


@pytest.mark.sandbox
async def test_every_step_is_graded(tmp_path: Path) -> None:
    result = await attempt("report-in-two-steps", "oracle", tmp_path)
    assert [step.step_name for step in result.step_results or []] == ["count", "report"]
    stopped = await attempt("report-in-two-steps", "nop", tmp_path)
    assert [step.step_name for step in stopped.step_results or []] == ["count"]
