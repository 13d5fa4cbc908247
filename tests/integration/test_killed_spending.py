"""``kill -9`` of a worker: its budget is charged with exactly what the model's service saw of it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.budget import Budget, Cap, Scope
from seatrial.domain.task import TaskRef
from seatrial.plain_http import Response, read_request
from seatrial.settings import Settings
from seatrial.wiring import open_installation
from seatrial.wiring.upkeep import recover_lost
from tests.command_line import ROOT, SAMPLES
from tests.waiting import eventually

ANSWERED, AT_ONCE = 40, 4
START_SEC = 240.0
"""A new process loads for a second; on a machine with much else to do, for minutes."""
USAGE = {"prompt_tokens": 100, "completion_tokens": 7}
CAPS = Budget(job=Cap(dollars=1000.0), trial=Cap(dollars=900.0))


@dataclass
class Service:
    """Answers so many calls, and lets all further ones wait."""

    calls: int = 0
    answered: int = 0
    waiting: int = 0
    port: int = 0
    _never: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (await read_request(reader, writer)) is not None:
            self.calls += 1
            if self.calls > ANSWERED:
                self.waiting += 1
                await self._never.wait()
            self.answered += 1
            choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
            await Response(writer).json(200, {"id": "x", "model": "m", "choices": [choice], "usage": USAGE})


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    found = Service()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        found._never.set()
        server.close()


async def test_a_killed_workers_budget_equals_what_the_service_saw(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation, service() as model:
        [task] = await installation.library.add(SAMPLES / "answer-file")
        ref = TaskRef(name=task.name, digest=task.digest)
        job = await installation.submission.submit(
            JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), attempts=1, budget=CAPS)
        )
        url = f"http://127.0.0.1:{model.port}/v1"
        command = (sys.executable, "-m", "tests.integration.killed_spender", settings.home, str(job.id), url)
        worker = await asyncio.create_subprocess_exec(*map(str, command), str(AT_ONCE), cwd=ROOT)
        try:
            await eventually(lambda: model.waiting == AT_ONCE or worker.returncode is not None, "its calls", START_SEC)
        finally:
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGKILL)
            await worker.wait()

        scopes = [Scope.of_job(job.id), Scope.of_trial(job.id, 1), Scope.of_day(installation.clock())]
        before = await installation.store.budgets.spending(scopes)
        assert before[scopes[0].name].spent.calls < model.answered, "the store was not told, or this shows nothing"
        await recover_lost(installation, lambda trials, seconds: None)
        after = await installation.store.budgets.spending(scopes)
        journal = [json.loads(line) for line in (settings.home / "calls.jsonl").read_text().splitlines()]
    assert model.calls == ANSWERED + AT_ONCE and len(journal) == ANSWERED
    for scope in scopes:
        spent, known = after[scope.name].spent, 107 * ANSWERED
        assert spent.calls == model.calls, scope.name
        # The calls under way count at their expected price: the usual length of an answer, and the prompt as estimated.
        assert known < spent.tokens <= known + 60 * AT_ONCE and after[scope.name].in_flight.calls == 0
        assert spent.nanodollars >= 7_000_000 * (ANSWERED + AT_ONCE)
