"""A tenant wants the installation's provider key: an agent inside the sandbox would only have to print it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.agents.inside import NO_KEY
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.token import Role
from seatrial.errors import MissingKey, Unsupported
from seatrial.ports.runner import Order
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.attacks.tenant.doors import doors_open
from tests.command_line import SAMPLES

OURS = "sk-canary-of-the-installation"
THEIRS = "sk-of-the-tenant"
INSTALLED = ("mini-swe-agent", "claude-code", "codex", "openhands", "aider", "goose", "swe-agent")


@pytest.fixture(autouse=True)
def our_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, OURS)


async def orders_of(installation: Installation, count: int) -> list[Order]:
    """What the runner would be handed for every trial that is queued."""
    runner = FakeRunner()
    worker = assemble_worker(installation, runner, 4)
    working = asyncio.create_task(worker.run())
    while True:
        rows = [row async for row in installation.store.trials.each(TrialFilter())]
        if sum(row.trial.outcome is not None for row in rows) >= count:
            break
        await asyncio.sleep(0.05)
    worker.leave()
    await working
    return list(runner.orders)


async def sandbox_variables(order: Order, sandbox: str = "oci") -> tuple[dict[str, str], tuple[str, ...]]:
    """What the agent's commands see, and what the lock says."""
    from contextlib import AsyncExitStack

    async with ModelAccess() as models, AsyncExitStack() as doors:
        equipment = await models.equip(order, doors, sandbox)
        return dict(equipment.agent.env), tuple(equipment.notes)


ELSEWHERE: dict[str, Any] = {"allowed_sandboxes": "harbor:daytona"}
"""A sandbox that the gate has no door in."""


@pytest.mark.parametrize("agent", INSTALLED)
async def test_an_installed_agent_works_with_our_key_and_never_sees_it(tmp_path: Path, agent: str) -> None:
    async with doors_open(tmp_path, Role.USER) as doors:
        await doors.job(agents=[{"name": agent, "model": "openai/gpt-4"}])
        [order] = await orders_of(doors.api.service.installation, 1)
    assert dict(order.secrets) == {"OPENAI_API_KEY": OURS}
    variables, notes = await sandbox_variables(order)
    assert OURS not in str(variables) and variables["OPENAI_API_KEY"] == NO_KEY and notes == ()


@pytest.mark.parametrize("agent", INSTALLED)
async def test_where_the_gate_has_no_door_our_key_does_not_go_in(tmp_path: Path, agent: str) -> None:
    async with doors_open(tmp_path, Role.USER, **ELSEWHERE) as doors:
        body, there = [{"name": agent, "model": "openai/gpt-4"}], "harbor:daytona"
        answer = await doors.job(400, agents=body, sandbox=there)
        assert "inside of its sandbox" in answer["error"]["message"] and "X-Provider-Key" in answer["error"]["fix"]
        await doors.job(keys={"OPENAI_API_KEY": THEIRS}, agents=body, sandbox=there)


async def test_a_provider_that_the_gate_does_not_speak_to_is_such_a_place_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COHERE_API_KEY", OURS)
    async with doors_open(tmp_path, Role.USER) as doors:
        answer = await doors.job(400, agents=[{"name": "codex", "model": "cohere/command"}])
        assert "inside of its sandbox" in answer["error"]["message"]
        await doors.job(agents=[{"name": "terminus-2", "model": "cohere/command"}])


async def test_a_task_that_needs_another_sandbox_gets_no_key_of_ours_into_it(tmp_path: Path) -> None:
    """A job for our own sandboxes may have a task with several services, which runs elsewhere."""
    async with doors_open(tmp_path, Role.USER) as doors:
        await doors.job(agents=[{"name": "codex", "model": "openai/gpt-4"}])
        [order] = await orders_of(doors.api.service.installation, 1)
    assert not order.keys_may_enter
    with pytest.raises(Unsupported, match="would have to go into the sandbox"):
        await sandbox_variables(order, "harbor:docker")
    theirs = replace(order, secrets={"OPENAI_API_KEY": THEIRS}, keys_may_enter=True)
    assert (await sandbox_variables(theirs, "harbor:docker"))[0]["OPENAI_API_KEY"] == THEIRS


async def test_keys_of_a_jobs_other_agents_stay_out_of_the_sandbox(tmp_path: Path) -> None:
    """terminus-2 uses our key; codex beside it uses the tenant's, and neither is in a sandbox."""
    agents = [{"name": "terminus-2", "model": "openrouter/x"}, {"name": "codex", "model": "openai/gpt-4"}]
    async with doors_open(tmp_path, Role.USER) as doors:
        await doors.job(agents=agents, keys={"OPENAI_API_KEY": THEIRS})
        orders = await orders_of(doors.api.service.installation, 2)
    secrets = {order.agent.name: dict(order.secrets) for order in orders}
    assert secrets == {"terminus-2": {"OPENROUTER_API_KEY": OURS}, "codex": {"OPENAI_API_KEY": THEIRS}}
    for order in orders:
        variables, notes = await sandbox_variables(order)
        assert OURS not in str(variables) and THEIRS not in str(variables) and notes == ()


async def test_a_key_among_an_agents_variables_stays_outside_too(tmp_path: Path) -> None:
    """The API refuses it; a job of the machine's admin may have one."""
    async with doors_open(tmp_path, Role.USER) as doors:
        await doors.job(agents=[{"name": "codex", "model": "openai/gpt-4"}])
        [order] = await orders_of(doors.api.service.installation, 1)
    agent = order.agent.model_copy(update={"env": {"OPENAI_API_KEY": THEIRS, "EDITOR": "vi"}})
    variables, _ = await sandbox_variables(replace(order, agent=agent, secrets={}))
    assert THEIRS not in str(variables) and variables["EDITOR"] == "vi"


async def test_running_it_again_without_the_key_does_not_fall_back_to_ours(tmp_path: Path) -> None:
    """The job's key went when it ended."""
    async with doors_open(tmp_path, Role.USER, **ELSEWHERE) as doors:
        body = [{"name": "codex", "model": "openai/gpt-4"}]
        job = await doors.job(agents=body, keys={"OPENAI_API_KEY": THEIRS}, sandbox="harbor:daytona")
        await orders_of(doors.api.service.installation, 1)
        path, every = f"/api/v1/jobs/{job['id']}/attempts", {"outcomes": ["passed", "failed"]}
        refused = await doors.api.client.post(path, json=every, headers=doors.headers)
        assert refused.status_code == 400 and "inside of its sandbox" in refused.text
        again = {**doors.headers, "X-Provider-Key": f"OPENAI_API_KEY={THEIRS}"}
        assert (await doors.api.client.post(path, json=every, headers=again)).json() == {"trials": [2]}


async def test_the_operator_may_allow_it_and_the_trial_says_so(tmp_path: Path) -> None:
    async with doors_open(tmp_path, Role.USER, allow_keys_in_sandbox=True, **ELSEWHERE) as doors:
        await doors.job(agents=[{"name": "codex", "model": "openai/gpt-4"}], sandbox="harbor:daytona")
        [order] = await orders_of(doors.api.service.installation, 1)
    variables, notes = await sandbox_variables(order, "harbor:daytona")
    assert variables["OPENAI_API_KEY"] == OURS
    assert notes[0] == "provider key in the sandbox: this installation's" and "not counted" in notes[1]


async def test_at_the_machine_ones_own_key_is_used(tmp_path: Path) -> None:
    """`seatrial run` with a key in the environment."""
    from seatrial.settings import Settings

    settings = Settings(_env_file=None, home=tmp_path)  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation:
        [task] = await installation.library.add(SAMPLES / "answer-file")
        agent = AgentSpec(name="codex", model="openai/gpt-4")
        spec = JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(agent,))
        await installation.submission.submit(spec)
        [order] = await orders_of(installation, 1)
    assert dict(order.secrets) == {"OPENAI_API_KEY": OURS} and not order.keys_are_the_jobs


@pytest.mark.parametrize("allowed", [False, True], ids=["by default", "where the operator allows it"])
async def test_at_the_machine_too_a_key_goes_in_only_if_the_operator_says_so(tmp_path: Path, allowed: bool) -> None:
    from seatrial.settings import Settings

    settings = Settings(_env_file=None, home=tmp_path, allow_keys_in_sandbox=allowed)  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation:
        [task] = await installation.library.add(SAMPLES / "answer-file")
        agent = AgentSpec(name="codex", model="openai/gpt-4")
        spec = JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(agent,), sandbox="harbor:docker")
        if not allowed:
            with pytest.raises(MissingKey, match="inside of its sandbox"):
                await installation.submission.submit(spec)
            return
        await installation.submission.submit(spec)
        [order] = await orders_of(installation, 1)
    variables, notes = await sandbox_variables(order, "harbor:docker")
    assert order.keys_may_enter and variables["OPENAI_API_KEY"] == OURS and "this installation's" in notes[0]


async def test_no_request_can_say_that_it_came_from_the_machine(tmp_path: Path) -> None:
    async with doors_open(tmp_path, Role.ADMIN) as doors:
        wanted: dict[str, Any] = {"agents": [{"name": "codex", "model": "openai/gpt-4"}]}
        await doors.job(422, own_keys_inside=True, **wanted)
        await doors.job(422, own_keys=True, **wanted)
