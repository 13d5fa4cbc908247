"""A worker's gate and budgets in a process that somebody kills: ``python -m tests.integration.killed_spender HOME JOB
URL CALLS``. It calls the model's address through the gate, some calls at once, until it is gone."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from seatrial.domain.model_calls.model_call import CostBy
from seatrial.domain.model_calls.prices import NamedPrice, Price, Rates
from seatrial.engine.budgets.trial_budget import TrialBudget
from seatrial.gateway.gate import Gate
from seatrial.gateway.routes import Routes, route_to
from seatrial.gateway.spending import TrialCallBudget
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.settings import Settings
from seatrial.wiring import open_installation
from seatrial.wiring.worker import budgets_of

_PRICE = NamedPrice(price=Price(rates=Rates(input=0.0, output=0.001)), by=CostBy.TABLE)


async def _spend(home: Path, job_id: int, url: str, at_once: int) -> None:
    settings = Settings(_env_file=None, home=home)  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation, Gate() as gate:
        budget = (await installation.store.jobs.get(job_id)).spec.budget
        calls, budgets = TrialCalls(home), budgets_of(installation)
        found = route_to("openai/m", None, url)
        assert found is not None
        routes = Routes([replace(found, price=_PRICE)])
        with TrialBudget(budgets, 1, 1, job_id, budget) as opened:
            async with gate.open_for(calls, None, routes, TrialCallBudget(opened)) as door:
                await asyncio.gather(*(_call_on(int(door.url.rpartition(":")[2])) for _ in range(at_once)))


async def _call_on(port: int) -> None:
    body = json.dumps({"model": "m", "messages": [], "max_tokens": 50}).encode()
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        writer.write(body)
        await reader.read()
        writer.close()


if __name__ == "__main__":
    asyncio.run(_spend(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
