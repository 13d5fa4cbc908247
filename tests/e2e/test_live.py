"""A real agent in a real sandbox, watched through the API while it works: its terminal, its steps, its tests."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.runner import HarborRunner
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.ports.store import TrialFilter
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import SandboxSelection
from seatrial.scripted_models.scripts import Act, View, solve_read_the_screen
from seatrial.scripted_models.server import ScriptedModels
from seatrial.settings import Settings
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.event_source import Got, client, collect
from tests.live_processes import api_process
from tests.trials import test_cache

SAMPLE = Path(__file__).parents[2] / "samples" / "read-the-screen"
KEY = "sk-canary-0987654321"
CODE = re.compile(r"Code 1 of 3: \d{6}")

pytestmark = [
    pytest.mark.sandbox,
    # LiteLLM's types make pydantic warn on first use.
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
]


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    async with open_installation(Settings(home=tmp_path / "home", cache=test_cache(), auth="none")) as opened:
        yield opened


def _terminal(got: Sequence[Got]) -> list[Got]:
    return [one for one in got if one.kind == "trial.output" and one.data["stream"] == "terminal"]


def _shown(terminal: Sequence[Got]) -> str:
    header, *lines = [json.loads(line) for one in terminal for line in one.data["text"].splitlines()]
    assert header["version"] == 2
    return "".join(data for _, kind, data in lines if kind == "o")


def _was_seen(got: Sequence[Got]) -> bool:
    """Whether enough of the agent's work was seen for it to end."""
    terminal = _terminal(got)
    return len(terminal) >= 3 and any(one.kind == "trial.step" for one in got) and bool(CODE.search(_shown(terminal)))


async def _watch_a_trial(installation: Installation, address: str) -> list[Got]:
    """The agent ends its work once it was seen, however long that takes."""
    got: list[Got] = []
    solved = False

    def solve(view: View) -> Act:
        nonlocal solved
        act = Act("Every code was accepted.", done=True) if solved else solve_read_the_screen(view)
        solved = act.done
        return Act("Nobody has seen it yet.", wait=0.5) if solved and not _was_seen(got) else act

    (task,) = await installation.library.add(SAMPLE)
    scripts = {"solve-read-the-screen": solve}
    async with ScriptedModels(scripts=scripts, key=KEY) as models, client(address) as http:
        options = {"api_base": models.base_url}
        agent = AgentSpec(name="terminus-2", model="openai/solve-read-the-screen", options=options)
        spec = JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(agent,), sandbox="oci")
        job = await installation.submission.submit(spec, keys={"OPENAI_API_KEY": KEY})
        (row,) = [row async for row in installation.store.trials.each(TrialFilter(job_id=job.id))]
        listening = asyncio.create_task(collect(got, http, f"/trials/{row.trial.id}/events"))
        sandboxes = SandboxOptions.of(installation.settings)
        async with ModelAccess() as access:
            runner = HarborRunner(sandboxes, installation.id, SandboxSelection(sandboxes), access)
            worker = assemble_worker(installation, runner, 1)
            working = asyncio.create_task(worker.run())
            async with asyncio.timeout(200):
                await listening
            worker.leave()
            await working
    return got


async def test_a_terminal_and_the_steps_are_seen_while_the_agent_works(installation: Installation) -> None:
    with api_process(installation.settings.home) as (address, _):
        got = await _watch_a_trial(installation, address)
    ended = next(number for number, one in enumerate(got) if one.kind == "trial.ended")
    assert got[ended].data["data"]["outcome"] == "passed"
    verifying = next(number for number, one in enumerate(got) if one.data.get("data", {}).get("phase") == "verify")
    assert _was_seen(got[:verifying])
    steps = [one for one in got if one.kind == "trial.step"]
    assert [one.data["data"]["step"] for one in steps] == list(range(1, len(steps) + 1))
    assert any("/app/reply.sh" in call["input"] for one in steps for call in one.data["data"]["tools"])
    assert sum(one.data["data"]["input_tokens"] or 0 for one in steps) > 0
    streams = {one.data["stream"] for one in got if one.kind == "trial.output"}
    assert {"terminal", "log", "verifier"} <= streams
    assert KEY not in json.dumps([one.data for one in got])
    assert got[-1].kind == "end"
    assert await installation.store.output.read([got[ended].data["trial_id"]]) == []  # the files have it now
