"""Trials of the library's tasks: read once, and otherwise the very trials that Harbor makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harbor.agents.oracle import OracleAgent
from harbor.models.task.task import Task
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.library_trial import LibraryTrials
from tests.task_files import write_task

SAMPLES = Path(__file__).parents[4] / "samples"
ENVIRONMENT = "seatrial.sandboxes.oci:OciEnvironment"
MCP_SERVER = '[[environment.mcp_servers]]\nname = "aid"\ntransport = "streamable-http"\nurl = "http://aid:8000/mcp"\n'
VARIANTS: dict[str, dict[str, Any]] = {
    "oracle": {},
    "nop": {"agent": AgentConfig(name="nop")},
    "stretched": {"timeout_multiplier": 2.5, "verifier": VerifierConfig(env={"SEATRIAL_TEST_TIMEOUT_SEC": "150"})},
    "equipped": {"agent": AgentConfig(name="oracle", env={"WITH": "care"}, override_timeout_sec=7)},
    "imported": {"agent": AgentConfig(import_path="harbor.agents.nop:NopAgent", model_name="openai/small")},
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


def taken_in(library: Path, sample: str) -> Path:
    return Path(shutil.copytree(SAMPLES / sample, library / "0123" / "source" / sample))


def config(task: Path, trials: Path, **more: Any) -> TrialConfig:
    kwargs = {"owner": {"install": "tests", "trial": 7, "try_number": 1}, "options": {"cache": str(trials / "cache")}}
    environment = EnvironmentConfig(import_path=ENVIRONMENT, kwargs=kwargs)
    return TrialConfig(task=TaskConfig(path=task), trials_dir=trials, trial_name="7-1", environment=environment, **more)


async def both(library: Path, task: Path, trials: Path, **more: Any) -> tuple[Trial, Trial]:
    """The second trial that our maker makes of a task, and Harbor's own."""
    maker = LibraryTrials(library)
    await maker.create(config(task, trials / "first", **more))
    ours = await maker.create(config(task, trials / "ours", **more))
    return ours, await Trial.create(config(task, trials / "ours", **more).model_copy(update={"trial_name": "theirs"}))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sample", ["answer-file", "report-in-two-steps"])
async def test_what_is_written_down_is_what_harbor_writes(
    library: Path, tmp_path: Path, sample: str, variant: str
) -> None:
    ours, theirs = await both(library, taken_in(library, sample), tmp_path, **VARIANTS[variant])
    assert json.loads(ours.paths.lock_path.read_text()) == json.loads(theirs.paths.lock_path.read_text())
    for trial in (ours, theirs):
        trial._init_result()
    results = [trial.result.model_dump(mode="json") for trial in (ours, theirs)]
    for result in results:
        result["config"].pop("trial_name")
        for own in ("id", "trial_name", "trial_uri", "started_at"):
            result.pop(own)
    assert results[0] == results[1]
    assert results[0]["task_checksum"]


@pytest.mark.parametrize("sample", ["answer-file", "report-in-two-steps"])
async def test_trial_has_all_that_harbors_has(library: Path, tmp_path: Path, sample: str) -> None:
    """Fails where a new Harbor gives its trials or its oracle something that ours would lack."""
    ours, theirs = await both(library, taken_in(library, sample), tmp_path)
    assert isinstance(ours, Trial) and set(vars(ours)) == set(vars(theirs))
    assert isinstance(ours.agent, OracleAgent) and set(vars(ours.agent)) == set(vars(theirs.agent))
    assert ours.agent.session_id == "7-1__agent" and theirs.agent.session_id == "theirs__agent"
    assert ours.agent.context_id == ours.id
    assert ours.agent.to_agent_info() == theirs.agent.to_agent_info()
    assert ours._hooks == theirs._hooks and ours.agent_timeout_sec == theirs.agent_timeout_sec


async def test_oracle_knows_what_the_task_offers_agents(library: Path, tmp_path: Path) -> None:
    task = write_task(library, "aided", more=MCP_SERVER)
    ours, theirs = await both(library, task, tmp_path, **VARIANTS["equipped"])
    for trial in (ours, theirs):
        assert [server.name for server in trial.agent.mcp_servers] == ["aid"]
        assert trial.agent.extra_env == {"WITH": "care"}
    same = ("model_name", "skills_dir", "load_trajectory", "options", "_agent_timeout_sec", "_step_index")
    assert {name: getattr(ours.agent, name) for name in same} == {name: getattr(theirs.agent, name) for name in same}


async def test_directory_outside_the_library_is_read_anew(library: Path, tmp_path: Path) -> None:
    kept, loose = write_task(library, "kept"), write_task(tmp_path / "loose", "loose")
    maker = LibraryTrials(library)
    before = {path: await maker.create(config(path, tmp_path / "before" / path.name)) for path in (kept, loose)}
    checksums = {path: trial.task.checksum for path, trial in before.items()}
    for path in (kept, loose):
        (path / "instruction.md").write_text("Write 43 instead.\n")
    after = {path: await maker.create(config(path, tmp_path / "after" / path.name)) for path in (kept, loose)}
    assert after[loose].task.instruction.startswith("Write 43 instead.")
    assert after[loose].task.checksum != checksums[loose]
    # Nobody writes to the library; that this goes unseen shows that nothing is read there a second time.
    assert after[kept].task.instruction == before[kept].task.instruction
    assert after[kept].task.checksum == checksums[kept]
    assert after[kept]._trial_lock.task.digest == before[kept]._trial_lock.task.digest


async def test_trials_of_one_task_share_nothing_that_can_be_written(library: Path, tmp_path: Path) -> None:
    task = write_task(library, "shared")
    maker = LibraryTrials(library)
    first = await maker.create(config(task, tmp_path / "first"))
    first.task.instruction = "Something else."
    first.task.config.environment.memory_mb = 1
    first.task.config.verifier.env["KEY"] = "changed"
    first.task.config.agent.timeout_sec = 1.0
    first._trial_lock.task.name = "changed"
    second = await maker.create(config(task, tmp_path / "second"))
    assert second.task.config == Task(task).config and second.task.instruction == Task(task).instruction
    assert second._trial_lock.task.name != "changed"
    assert first.task.config != second.task.config


async def test_only_the_tasks_asked_for_last_are_remembered(library: Path, tmp_path: Path) -> None:
    tasks = [write_task(library, name) for name in ("one", "two", "three")]
    maker = LibraryTrials(library, most_tasks=2)
    for number in (0, 1, 0, 2):
        await maker.create(config(tasks[number], tmp_path / f"before{number}"))
    for task in tasks:
        (task / "instruction.md").write_text("New.\n")
    said = [(await maker.create(config(task, tmp_path / task.name))).task.instruction for task in (tasks[0], tasks[1])]
    assert [text.startswith("New.") for text in said] == [False, True]


async def test_unreadable_task_is_told_as_harbor_tells_it_and_not_remembered(library: Path, tmp_path: Path) -> None:
    task = write_task(library, "broken")
    whole = (task / "task.toml").read_text()
    (task / "task.toml").write_text("not toml at all")
    maker = LibraryTrials(library)
    with pytest.raises(ValueError) as theirs:
        await Trial.create(config(task, tmp_path / "theirs"))
    with pytest.raises(type(theirs.value)):
        await maker.create(config(task, tmp_path / "ours"))
    (task / "task.toml").write_text(whole)
    assert (await maker.create(config(task, tmp_path / "mended"))).task.name == "tests/broken"
