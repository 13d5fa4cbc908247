"""mini-swe-agent, installed from this machine into a sandbox without any network; the gate has a door there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from seatrial.agents.inside import call_through_gate
from seatrial.scripted_models.server import ScriptedModels
from tests.gate_doors import route, way_inside
from tests.trials import Workplace

SAMPLE = Path(__file__).parents[2] / "samples" / "read-the-screen"
KEY = "sk-canary-inside-5555"


async def run_one(script: str, models: ScriptedModels, workplace: Workplace) -> Trial:
    options = workplace.options(network_mode="none")
    config = TrialConfig(
        task=TaskConfig(path=SAMPLE),
        trials_dir=workplace.directory,
        trial_name="trial",
        agent=AgentConfig(
            import_path="seatrial.agents.mini_swe_agent:OfflineMiniSweAgent",
            model_name=f"openai/{script}",
            env={"OPENAI_API_KEY": "not-the-key", "OPENAI_BASE_URL": models.base_url},
        ),
        environment=EnvironmentConfig(import_path=workplace.import_path, kwargs={"options": options}),
    )
    trial = await Trial.create(config)
    async with way_inside(workplace.directory / "trial", route(models.base_url, f"openai/{script}", KEY)) as way:
        call_through_gate(trial.agent, way)
        await trial.run()
    return trial


def reward(trial: Trial) -> float | None:
    info = trial.result.exception_info
    assert info is None, f"{info.exception_type}: {info.exception_message}"
    verified = trial.result.verifier_result
    return verified.rewards["reward"] if verified and verified.rewards else None


async def test_it_passes_by_reading_what_commands_print(workplace: Workplace) -> None:
    async with ScriptedModels(key=KEY) as models:
        trial = await run_one("solve-read-the-screen", models, workplace)
    assert reward(trial) == 1
    assert models.calls >= 5
    assert {call.headers["authorization"] for call in models.requests} == {
        f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    }
    assert trial.result.agent_info.version == "2.4.6"
    directory = workplace.directory
    assert (directory / "trial" / "agent" / "trajectory.json").is_file()
    kept = [path for path in directory.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []


@pytest.mark.long  # test_terminus_scripted.py shows a model that gives up
@pytest.mark.parametrize("workplace", [pytest.param("oci", marks=pytest.mark.sandbox)], indirect=True)
async def test_it_fails_by_giving_up(workplace: Workplace) -> None:
    async with ScriptedModels(key=KEY) as models:
        trial = await run_one("give-up", models, workplace)
    assert reward(trial) == 0
    assert models.calls == 1
