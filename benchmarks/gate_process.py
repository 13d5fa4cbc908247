"""The gate of a worker in a process of its own, as a worker has it: with its model client, a store, budgets and the
pace of providers. ``python -m benchmarks.gate_process HOME ADDRESS DOORS`` prints the ports of its doors, and at the
end of its input what it used and counted.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from seatrial.adapters.runner_harbor.process import collect_less_often
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.model_calls.model_call import CostBy
from seatrial.domain.model_calls.prices import NamedPrice, Price, Rates
from seatrial.domain.task import TaskRef
from seatrial.engine.budgets.slices import EVERY_SEC, Budgets
from seatrial.engine.budgets.trial_budget import TrialBudget
from seatrial.gateway.gate import Gate
from seatrial.gateway.journal import read_calls
from seatrial.gateway.routes import Route, Routes, route_to
from seatrial.gateway.spending import TrialCallBudget
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.settings import Settings
from seatrial.wiring import Installation, open_installation
from seatrial.wiring.worker import budgets_of, provider_pace_of

_TRIVIAL = Path(__file__).resolve().parent.parent / "samples" / "answer-file"
_WORKER = ("seatrial.adapters.runner_harbor.runner", "harbor.llms.lite_llm")
"""What a worker has loaded."""
PRICE = NamedPrice(price=Price(rates=Rates(input=1e-6, output=1e-5)), by=CostBy.TABLE)
BUDGET = Budget(job=Cap(dollars=1e6), trial=Cap(dollars=1e5))
"""Caps that are never reached, and are checked with every call."""


def priced_route(address: str) -> Route:
    found = route_to("openai/m", "sk-of-the-installation", address)
    assert found is not None
    return replace(found, price=PRICE)


async def submitted(installation: Installation, budget: Budget) -> int:
    """A job that nobody runs, for its budget."""
    tasks = await installation.library.add(_TRIVIAL)
    refs = tuple(TaskRef(name=one.name, digest=one.digest) for one in tasks)
    job = await installation.submission.submit(
        JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),), attempts=1, sandbox="oci", budget=budget)
    )
    return job.id


async def _serve(home: Path, address: str, doors: int) -> None:
    for module in _WORKER:
        import_module(module)
    collect_less_often()  # as a worker does
    settings = Settings(home=home, sandbox="oci")
    async with open_installation(settings) as installation, AsyncExitStack() as stack:
        pace, budgets = provider_pace_of(installation), budgets_of(installation)
        job_id = await submitted(installation, BUDGET)
        beating = asyncio.create_task(_beat(budgets))
        gate = await stack.enter_async_context(Gate(pace=pace))
        ports, folders = [], []
        for number in range(doors):
            folder = home / "tries" / f"{number}"
            folder.mkdir(parents=True)
            calls = TrialCalls(folder)
            stack.callback(calls.close)
            budget = stack.enter_context(TrialBudget(budgets, number + 1, 1, job_id, BUDGET))
            routes = Routes([priced_route(address)])
            door = await stack.enter_async_context(gate.open_for(calls, None, routes, TrialCallBudget(budget)))
            ports.append(int(door.url.rpartition(":")[2]))
            folders.append(folder)
        print(json.dumps({"ports": ports, "memory_mb": _peak_mb()}), flush=True)
        before = time.process_time()
        await asyncio.to_thread(sys.stdin.readline)
        used = time.process_time() - before
        print(json.dumps({"cpu_sec": used, "memory_mb": _peak_mb(), **counted(folders)}), flush=True)
        beating.cancel()


async def _beat(budgets: Budgets) -> None:
    while True:
        await budgets.sync()
        await asyncio.sleep(EVERY_SEC)


def counted(folders: Iterable[Path]) -> dict[str, Any]:
    calls = [call for folder in folders for call in read_calls(folder)]
    return {
        "calls": len(calls),
        "input_tokens": sum(call.usage.input_tokens or 0 for call in calls),
        "output_tokens": sum(call.usage.output_tokens or 0 for call in calls),
        "failed": sum(call.status != 200 or call.error is not None for call in calls),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
